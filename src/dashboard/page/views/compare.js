// Experiments side by side: the best value over time, the distribution of the values, and the settings that differ.
import {fill, h, hint, name} from '../dom.js';
import {count, duration, number, plural, setting, short} from '../format.js';
import {format} from '../route.js';
import {makeChart} from '../chart.js';
import {bar, makeControls} from '../controls.js';
import {compareChart} from '../charts/best.js';
import {edfChart} from '../charts/matters.js';
import {metricField} from '../source.js';

const most = 10;

const rangeText = (parameter) => (parameter.choices ? parameter.choices.map(setting).join(', ') : parameter.low !== undefined && parameter.low !== null ? `${number(parameter.low)} to ${number(parameter.high)}${parameter.log ? ', log' : ''}` : parameter.kind);

function settings(summary) {
  const out = new Map([
    ['state', summary.state], ['objectives', summary.objectives.map((one) => `${one.metric} (${one.mode})`).join(', ')],
    ['best', summary.best?.[0] ? number(summary.best[0].value) : '–'], ['trials', count(Object.values(summary.counts).reduce((a, b) => a + b, 0))], ['failed', count(summary.counts.failed)],
    ['reports', count(summary.reports)], ['took', duration(summary.elapsed)], ['search', summary.search], ['schedule', summary.schedule], ['executor', summary.executor], ['seed', setting(summary.seed)], ['trials planned', setting(summary.planned)],
  ]);
  if (summary.command) out.set('trial.command', summary.command);
  for (const [what, options] of [['search', summary.search_options], ['schedule', summary.schedule_options]]) {
    for (const option of (options || '').split(', ').filter(Boolean)) {
      const [key, ...value] = option.split(': ');
      out.set(`${what}.${key}`, value.join(': '));
    }
  }
  for (const parameter of summary.parameters) out.set(`space: ${parameter.name}`, rangeText(parameter));
  for (const [key, value] of Object.entries(summary.notes ?? {})) out.set(`note: ${key}`, setting(value));
  return out;
}

export function compare(app) {
  const controls = makeControls(app);
  let summaries = [];   // [{id, summary}]
  const shared = () => {
    const all = new Set(summaries.flatMap(({summary}) => summary.objectives.map((one) => one.metric)));
    return [...all].map((metric) => [metric, metric]);
  };
  const metric = controls.select('Metric', 'metric', shared);
  const axis = controls.segments('Axis', 'x', [['trial', 'by trial'], ['time', 'by time']]);
  const log = controls.toggle('log values', 'log');
  const logX = controls.toggle('log across', 'logx');
  const differing = controls.toggle('only what differs', 'differ', {fallback: true});
  const picker = h('fieldset', {class: 'picker panel'});
  const best = makeChart(app, {key: 'compare', title: 'Best so far', size: 'tall', zoom: 'xy'});
  const edf = makeChart(app, {key: 'edfs', title: 'How many are how good', size: 'tall', zoom: 'xy'});
  const table = h('div', {class: 'table-box'});
  const tablePanel = h('section', {class: 'panel'}, h('header', {class: 'panel-head'}, h('h2', null, 'Settings and outcomes'), h('div', {class: 'tools'}, differing.element)), table);

  // Leaves out experiments that cannot be read, as there is nothing to draw.
  function asked() {
    try {
      const list = JSON.parse(app.route.query.e || '[]');
      return Array.isArray(list) ? list.filter((id) => app.experiments.some((one) => one.id === id && !one.error)) : [];
    } catch {
      return [];
    }
  }

  // By default the experiments that tune the same metric as the latest one.
  function chosen() {
    const ids = asked();
    if (app.route.query.e) return ids.slice(0, most);
    const latest = app.experiments.filter((one) => one.best).sort((a, b) => (b.updated ?? 0) - (a.updated ?? 0));
    return latest.filter((one) => one.metric === latest[0].metric).slice(0, 5).map((one) => one.id);
  }

  return {
    element: h('div', {class: 'compare'}, picker, bar(metric, axis, logX, log), h('div', {class: 'split even'}, best.element, edf.element), tablePanel),
    async refresh(signal) {
      const ids = chosen();
      fill(picker, [app.experiments.map((one) => [one.id, one.name, one.trials, one.best?.value, one.error]), ids], () => [h('legend', null, 'Experiments'), app.experiments.map((one) => h('label', {title: hint(one.error || one.folder)},
        h('input', {type: 'checkbox', checked: ids.includes(one.id), disabled: Boolean(one.error) || (!ids.includes(one.id) && ids.length >= most), data: {key: `e${one.id.slice(0, 100)}`}, onchange: ({target}) => app.set({e: JSON.stringify(target.checked ? [...ids, one.id] : ids.filter((id) => id !== one.id))})}),
        ids.includes(one.id) ? h('i', {class: 'swatch', style: {background: `var(--series-${ids.indexOf(one.id)})`}}) : null, name(one.name), h('span', {class: 'muted'}, one.error ? 'unreadable' : plural(one.trials, 'trial'))))]);
      if (ids.length === 0) {
        summaries = [];
        tablePanel.hidden = true;
        for (const chart of [best, edf]) chart.show(null, {empty: 'Choose experiments above.'});
        return;
      }
      summaries = await Promise.all(ids.map(async (experiment) => ({id: experiment, summary: await app.source.get('/api/summary', {experiment}, signal)})));
      if (signal.aborted) return;
      controls.sync();
      const tuned = summaries.filter(({summary}) => summary.objectives.some((one) => one.metric === metric.value));
      // Experiments with the same name are labelled by folder.
      const label = ({id, summary}) => (summaries.some((other) => other.id !== id && other.summary.name === summary.name) ? id : summary.name);
      const [bests, edfs] = await Promise.all([
        Promise.all(tuned.map(({id}) => app.source.get('/api/best', {experiment: id, x: axis.value}, signal))),
        Promise.all(tuned.map(({id, summary}) => app.source.get('/api/edf', {experiment: id, metric: metricField(summary, metric.value)}, signal))),
      ]);
      if (signal.aborted) return;
      const of = (answer, {summary}) => answer.objectives?.find((one) => one.metric === metric.value) ?? {...summary.objectives[0], x: answer.x, value: answer.value};
      const colour = (theme) => ({...theme, series: tuned.map(({id}) => theme.series[ids.indexOf(id) % theme.series.length])});
      const lines = tuned.map((one, i) => ({name: label(one), objective: of(bests[i], one)}));
      best.show((theme) => compareChart(lines, colour(theme), {x: axis.value, log: log.value, logX: logX.value, metric: metric.value}), {empty: lines.every((line) => line.objective.x.length === 0) ? 'Nothing to draw.' : null});
      const spread = tuned.map((one, i) => ({name: label(one), ...edfs[i]}));
      edf.show((theme) => edfChart(spread, colour(theme), {metric: metric.value, log: log.value}), {empty: spread.every((one) => one.value.length === 0) ? 'Nothing to draw.' : null});
      tablePanel.hidden = false;
      const columns = summaries.map(({summary}) => settings(summary));
      const keys = [...new Set(columns.flatMap((column) => [...column.keys()]))];
      const differs = (key) => new Set(columns.map((column) => column.get(key) ?? '–')).size > 1;
      const rows = keys.filter((key) => !differing.value || columns.length < 2 || differs(key));
      fill(table, [rows, ids, columns.map((column) => [...column])], () => h('table', {class: 'plain settings'},
        h('thead', null, h('tr', null, h('th', {scope: 'col'}, ''), summaries.map((one, i) => h('th', {scope: 'col'}, h('i', {class: 'swatch', style: {background: `var(--series-${i})`}}), h('a', {href: format({view: 'overview', experiment: one.id, query: {}}), data: {key: `t${one.id.slice(0, 100)}`}}, name(label(one))))))),
        h('tbody', null, rows.map((key) => h('tr', {class: columns.length > 1 && differs(key) && !differing.value ? 'differs' : null}, h('th', {scope: 'row'}, name(key)), columns.map((column) => h('td', null, name(short(column.get(key) ?? '–', 300)))))))));
    },
  };
}
