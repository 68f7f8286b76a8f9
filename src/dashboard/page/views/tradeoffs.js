// Trade-offs: between several objectives, or between the only objective and its cost.
import {fill, h, name} from '../dom.js';
import {count, duration, number, plural, setting, short, yet} from '../format.js';
import {makeChart} from '../chart.js';
import {bar, makeControls} from '../controls.js';
import {frontChart, hypervolumeChart} from '../charts/tradeoffs.js';
import {metricField} from '../source.js';

export function tradeoffs(app) {
  const controls = makeControls(app);
  const several = () => app.summary.objectives.length > 1;
  // With one objective, the cost is time, steps, or another metric.
  const axes = () => (several() ? app.summary.objectives.map((objective) => [objective.metric, objective.metric])
    : [['duration', 'duration'], ['steps', 'steps'], ...app.summary.metrics.filter((metric) => metric !== app.summary.objectives[0].metric).map((metric) => [metric, metric])]);
  const x = controls.select('Across', 'tx', axes);
  const y = controls.select('up', 'ty', () => (several() ? axes() : [[app.summary.objectives[0].metric, app.summary.objectives[0].metric]]), () => (several() ? app.summary.objectives[1].metric : app.summary.objectives[0].metric));
  const logX = controls.toggle('log across', 'logx');
  const logY = controls.toggle('log up', 'log');
  const front = makeChart(app, {key: 'front', title: 'Front', size: 'tall', zoom: 'xy'});
  const volume = makeChart(app, {key: 'hypervolume', title: 'Hypervolume of the front', size: 'short', zoom: 'x'});
  const table = h('div', {class: 'table-box'});
  const tableTitle = h('h2', null, 'On the front');
  const tablePanel = h('section', {class: 'panel'}, h('header', {class: 'panel-head'}, tableTitle), table);

  const modeOf = (field) => app.summary.objectives.find((objective) => objective.metric === field)?.mode ?? 'min';

  function rows(list) {
    const {summary} = app;
    return h('table', {class: 'plain'}, h('thead', null, h('tr', null, h('th', {scope: 'col', class: 'number'}, 'trial'), summary.objectives.map((objective) => h('th', {scope: 'col', class: 'number'}, name(objective.metric), h('small', null, ` ${objective.mode}`))),
      h('th', {scope: 'col', class: 'number'}, 'steps'), h('th', {scope: 'col', class: 'number'}, 'duration'), summary.parameters.map((parameter) => h('th', {scope: 'col'}, name(parameter.name))))),
    h('tbody', null, list.map((row) => h('tr', {'aria-selected': String(row.trial === app.picked()), data: {trial: row.trial}, onclick: (event) => event.target.closest('a') || app.pick(row.trial)},
      h('td', {class: 'number'}, h('a', {href: app.trialHref(row.trial), data: {key: `f${row.trial}`}}, row.trial)), (row.values ?? [row.value]).map((value) => h('td', {class: 'number value'}, number(value))),
      h('td', {class: 'number'}, count(row.steps)), h('td', {class: 'number'}, duration(row.duration)), summary.parameters.map((parameter) => h('td', null, name(setting(row.params[parameter.name]))))))));
  }

  return {
    element: h('div', {class: 'tradeoffs'}, bar(x, y, logX, logY), front.element, volume.element, tablePanel),
    async refresh(signal) {
      controls.sync();
      const {summary} = app;
      volume.element.hidden = !several();
      const look = {x: x.value, y: y.value, modes: [modeOf(x.value), modeOf(y.value)], logX: logX.value, logY: logY.value, pick: app.picked()};
      if (!several()) {
        if (summary.metrics.length === 0) {
          tablePanel.hidden = true;
          front.show(null, {empty: `No trial has reported a value${yet(app.summary)}.`});
          return;
        }
        const own = ['duration', 'steps'].includes(x.value) ? x.value : metricField(summary, x.value);
        const objective = metricField(summary, summary.objectives[0].metric);
        const data = await app.get('/api/points', {fields: `${own},${objective}`, limit: 3000}, signal);
        if (signal.aborted) return;
        tablePanel.hidden = true;
        front.show((theme) => frontChart({trial: data.trial, state: data.state, x: data.columns[own], y: data.columns[objective], members: null}, theme, {...look, x: x.value === 'duration' ? 'duration in seconds' : x.value}), {
          heading: `${short(summary.objectives[0].metric, 40)} against ${short(x.value, 40)}`,
          empty: data.trial.length === 0 ? `No trial has reported a value${yet(app.summary)}.` : null, note: 'One objective: nothing trades off by itself. What is reached for which price is drawn instead.'});
        return;
      }
      const data = await app.get('/api/front', {}, signal);
      if (signal.aborted) return;
      const {points} = data;
      const column = (metric) => points.columns[metric] ?? points.columns[metricField(summary, metric)] ?? [];
      const members = new Set(data.front.map((row) => row.trial));
      front.show((theme) => frontChart({trial: points.trial, state: points.state, x: column(x.value), y: column(y.value), members}, theme, look), {
        heading: `Front: ${plural(data.front.length, 'trial')}`, empty: points.trial.length === 0 ? `No trial has reported all objectives${yet(app.summary)}.` : null,
        note: summary.objectives.length > 2 ? 'On the front of all objectives; the line is that of the two drawn.' : null});
      volume.show((theme) => hypervolumeChart(data.hypervolume, theme), {
        empty: data.hypervolume.x.length === 0 ? `Nothing to draw${yet(app.summary)}.` : null,
        note: data.hypervolume.reference ? `Against the reference point ${data.hypervolume.reference.map((value) => number(value, 4)).join(', ')}.` : null});
      tablePanel.hidden = data.front.length === 0;
      fill(table, [data.front, summary.parameters.map((parameter) => parameter.name), app.picked()], () => rows(data.front));
    },
  };
}
