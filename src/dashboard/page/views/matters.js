// What matters: the most important parameters, where in their ranges, and which of them together.
import {fill, h, name} from '../dom.js';
import {count, number, plural, setting, share, short, yet} from '../format.js';
import {makeChart} from '../chart.js';
import {bar, makeControls, metricOptions} from '../controls.js';
import {againstChart, edfChart, importanceChart, pairChart, pairLegend, sliceChart} from '../charts/matters.js';
import {axesOf, parallelChart} from '../charts/parallel.js';
import {unfit} from '../charts/base.js';
import {join, rangeTerms} from '../filter.js';
import {metricField, parameterField} from '../source.js';

const slicesShown = 8;

export function matters(app) {
  const controls = makeControls(app);
  const parameters = () => app.summary.parameters.filter((parameter) => parameter.kind !== 'fixed' && parameter.kind !== 'text');
  const names = () => parameters().map((parameter) => [parameter.name, parameter.name]);
  let ranked = [];   // by importance
  const rankedName = (i) => ranked[i] ?? names()[i]?.[0] ?? '';
  const mode = () => app.summary.objectives.find((objective) => objective.metric === metric.value)?.mode ?? app.summary.objectives[0].mode;

  const metric = controls.select('Metric', 'metric', () => metricOptions(app), () => app.summary.objectives[0].metric);
  const log = controls.toggle('log values', 'log');
  const px = controls.select('Across', 'px', names, () => rankedName(0));
  const py = controls.select('up', 'py', names, () => rankedName(1));
  const kind = controls.segments('Kind', 'kind', [['contour', 'contour'], ['rank', 'rank']]);
  const mx = controls.select('Across', 'mx', () => [['duration', 'duration'], ...metricOptions(app)], () => app.summary.metrics.find((one) => one !== metric.value) ?? 'duration');
  const logMx = controls.toggle('log', 'logmx');

  const importance = makeChart(app, {key: 'importance', title: 'Importance', size: 'medium', onclick: ({data}) => {
    if (data?.key === undefined) return false;
    app.set(data.key === py.value ? {px: data.key, py: px.value} : {px: data.key});
    return true;
  }});
  const pair = makeChart(app, {key: 'pair', title: 'Two parameters', size: 'medium', zoom: 'xy', tools: [kind.element, px.element, py.element]});
  const slices = makeChart(app, {key: 'slices', title: 'Slices', size: 'slices', resized: () => sliceColumns !== columns() && slices.redraw()});
  let sliceColumns = 0;
  const columns = () => Math.max(1, Math.min(4, Math.floor(slices.canvas.clientWidth / 230)));
  const parallel = makeChart(app, {key: 'parallel', title: 'All at once', size: 'tall parallel', label: 'Parallel coordinates; drag along an axis to choose a stretch', ready: watchBrush});
  const edf = makeChart(app, {key: 'edf', title: 'How many are how good', size: 'medium', zoom: 'xy'});
  const against = makeChart(app, {key: 'against', title: 'One metric against another', size: 'medium', zoom: 'xy', tools: [mx.element, logMx.element]});
  const chosen = h('div', {class: 'chips', hidden: true});
  const scaleBar = h('div', {class: 'scale-bar', hidden: true});
  pair.element.append(scaleBar);

  let axes = [];
  let watched = null;
  let restoring = false;

  // A range selected on an axis filters all other charts, and is kept in the address.
  function watchBrush(instance) {
    if (watched !== instance) {
      watched = instance;
      instance.on('axisareaselected', () => {
        if (!restoring) readBrush(instance);
      });
    }
  }

  function readBrush(instance) {
    const ranges = {};
    instance.getModel().eachComponent('parallelAxis', (model) => {
      const intervals = model.activeIntervals ?? [];
      if (intervals.length > 0) ranges[axes[model.get('dim')].field] = intervals[intervals.length - 1].map((value) => Number(value.toPrecision(6)));
    });
    const text = Object.keys(ranges).length > 0 ? JSON.stringify(ranges) : '';
    if (text !== (app.route.query.brush ?? '')) app.set({brush: text});
  }

  function brushRanges() {
    try {
      const ranges = JSON.parse(app.route.query.brush || '{}');
      return Object.entries(ranges).filter(([, range]) => Array.isArray(range) && range.length === 2 && range.every(Number.isFinite));
    } catch {
      return [];
    }
  }

  // The selected ranges as terms of a filter.
  function brushTerms() {
    return brushRanges().flatMap(([field, [from, to]]) => {
      const axis = axes.find((one) => one.field === field);
      if (!axis) return [];
      return axis.scale.choices ? rangeTerms({name: axis.name, choices: axis.scale.choices}, from, to) : rangeTerms({name: axis.name}, axis.scale.value ? axis.scale.value(from) : from, axis.scale.value ? axis.scale.value(to) : to);
    });
  }

  function restoreBrush() {
    const instance = parallel.instance();
    if (!instance) return;
    restoring = true;
    const ranges = new Map(brushRanges());
    axes.forEach((axis, i) => {
      const model = instance.getModel().getComponent('parallelAxis', i);
      const want = ranges.has(axis.field) ? [ranges.get(axis.field)] : [];
      const have = model?.activeIntervals ?? [];
      const close = (a, b) => a.length === b.length && a.every((range, k) => range.every((value, e) => Math.abs(value - b[k][e]) <= 1e-5 * Math.max(1e-9, Math.abs(value))));
      if (model && !close(have, want)) instance.dispatchAction({type: 'axisAreaSelect', parallelAxisId: model.id, intervals: want});
    });
    restoring = false;
  }

  function paintChips(matching) {
    const ranges = brushRanges().filter(([field]) => axes.some((axis) => axis.field === field));
    chosen.hidden = ranges.length === 0;
    fill(chosen, [ranges, matching], () => [
      h('span', {class: 'muted'}, `Chosen: ${plural(matching, 'trial')} with`),
      ranges.map(([field, [from, to]]) => {
        const axis = axes.find((one) => one.field === field);
        const text = axis.scale.choices ? axis.scale.choices.filter((_, i) => i >= from && i <= to).map((choice) => short(setting(choice), 16)).join(', ') || 'none'
          : `${number(axis.scale.value ? axis.scale.value(from) : from, 3)} to ${number(axis.scale.value ? axis.scale.value(to) : to, 3)}`;
        return h('button', {type: 'button', class: 'chip', data: {key: field.slice(0, 100)}, title: 'Take this away', onclick: () => {
          const rest = Object.fromEntries(ranges.filter(([other]) => other !== field));
          app.set({brush: Object.keys(rest).length > 0 ? JSON.stringify(rest) : ''});
        }}, name(short(axis.name, 24)), ` ${text} ×`);
      }),
      h('a', {class: 'button small', href: app.href('trials', {filter: join(app.route.query.filter, ...brushTerms()), brush: ''}), data: {key: 'as-trials'}}, 'Show these trials'),
      h('button', {type: 'button', class: 'quiet small', data: {key: 'clear'}, onclick: () => app.set({brush: ''})}, 'Choose all'),
    ]);
  }

  function paintScale(data, theme) {
    const ends = pairLegend(data, {mode: mode()});
    scaleBar.hidden = ends === null;
    if (ends) fill(scaleBar, [ends, theme.name, kind.value], () => [h('span', null, number(ends[0], 4)), h('i', {'aria-hidden': 'true'}), h('span', null, `${number(ends[1], 4)} (${mode() === 'min' ? 'lowest' : 'highest'})`)]);
  }

  return {
    element: h('div', {class: 'matters'}, bar(metric, log), h('div', {class: 'split'}, importance.element, pair.element), slices.element, parallel.element, chosen, h('div', {class: 'split even'}, edf.element, against.element)),
    async refresh(signal) {
      const {summary} = app;
      if (summary.metrics.length === 0 || parameters().length === 0) {
        controls.sync();
        for (const one of [importance, pair, slices, parallel, edf, against]) one.show(null, {empty: summary.metrics.length === 0 ? `No trial has reported a metric${yet(app.summary)}.` : 'There is no parameter that varies.'});
        return;
      }
      const asked = app.route.query.metric && summary.metrics.includes(app.route.query.metric) ? app.route.query.metric : summary.objectives[0].metric;
      const weights = await app.get('/api/importance', {metric: metricField(summary, asked)}, signal);
      if (signal.aborted) return;
      ranked = [...weights.importance].sort((a, b) => b.value - a.value).map((row) => row.name).filter((one) => parameters().some((parameter) => parameter.name === one));
      controls.sync();
      const fields = new Map(parameters().map((parameter) => [parameter.name, parameterField(summary, parameter.name)]));
      const metricOf = metricField(summary, metric.value);
      const other = mx.value === 'duration' ? 'duration' : metricField(summary, mx.value);
      const objectiveFields = summary.objectives.map((objective) => metricField(summary, objective.metric));
      // No more axes than a person can follow, the most important first; the table has the others.
      const along = [...ranked, ...parameters().map((parameter) => parameter.name).filter((one) => !ranked.includes(one))].slice(0, 12);
      const order = parameters().filter((parameter) => along.includes(parameter.name));
      const list = [...new Set([...fields.values(), metricOf, other, ...objectiveFields])].join(',');
      const filter = app.route.query.filter;
      const all = await app.get('/api/points', {fields: list, limit: 3000, filter}, signal);
      if (signal.aborted) return;
      const metricAxes = [...new Set([metric.value, ...summary.objectives.map((objective) => objective.metric)])].map((one) => ({name: one, field: metricField(summary, one)}));
      const everything = {trial: all.trial, state: all.state, columns: all.columns, parameters: order.map((parameter) => ({...parameter, field: fields.get(parameter.name)})), metrics: metricAxes};
      axes = axesOf(everything);
      const terms = brushTerms();
      const data = terms.length > 0 ? await app.get('/api/points', {fields: list, limit: 3000, filter: join(filter, ...terms)}, signal) : all;
      if (signal.aborted) return;
      const values = data.columns[metricOf];
      const sample = (answer) => (answer.shown < answer.matching ? `The best and a sample of the others: ${count(answer.shown)} of ${plural(answer.matching, 'trial')}.` : null);
      const nothing = data.trial.length === 0 ? (filter || terms.length > 0 ? 'No trial matches.' : `No trial has reported${yet(app.summary)}.`) : null;

      const together = typeof weights.interactions === 'number' ? weights.interactions : 0;
      importance.show((theme) => importanceChart({importance: weights.importance.slice(0, 20)}, theme, {chosen: [px.value, py.value]}), {
        empty: weights.importance.length === 0 ? 'Too few trials have ended to tell.' : null,
        note: weights.importance.length > 0 ? [`Of ${short(metric.value, 40)}, from ${plural(weights.from_trials, 'trial')}.`, together > 0.005 ? `${share(together)} is owed to several of them together.` : null, 'Click one to see it beside.'].filter(Boolean).join(' ') : null});
      const find = (one) => parameters().find((parameter) => parameter.name === one);
      const both = {trial: data.trial, x: {parameter: find(px.value), values: data.columns[fields.get(px.value)]}, y: {parameter: find(py.value) ?? find(px.value), values: data.columns[fields.get(py.value)] ?? data.columns[fields.get(px.value)]}, values};
      const alone = names().length < 2;
      pair.show((theme) => {
        paintScale(both, theme);
        return pairChart(both, theme, {kind: kind.value, metric: metric.value, mode: mode(), pick: app.picked()});
      }, {empty: nothing ?? (alone ? 'There is but one parameter.' : null)});
      if (nothing || alone) scaleBar.hidden = true;
      const shown = along.slice(0, slicesShown).map(find);
      slices.canvas.style.setProperty('--lines', Math.ceil(shown.length / columns()));
      slices.show((theme) => {
        sliceColumns = columns();
        slices.canvas.style.setProperty('--lines', Math.ceil(shown.length / sliceColumns));
        return sliceChart({trial: data.trial, parameters: shown, columns: shown.map((parameter) => data.columns[fields.get(parameter.name)]), values}, theme, {metric: metric.value, log: log.value, pick: app.picked(), columns: sliceColumns});
      }, {empty: nothing, heading: `Slices: ${short(metric.value, 40)} by each parameter`, note: [sample(data), 'The stronger the colour, the later the trial.'].filter(Boolean).join(' ')});
      parallel.canvas.style.setProperty('--axes', axes.length);
      await parallel.show((theme) => parallelChart(everything, theme, {metric: metricOf, mode: mode(), pick: app.picked()}), {
        empty: all.trial.length === 0 ? nothing ?? `No trial has reported${yet(app.summary)}.` : null, note: 'Drag along an axis to choose a stretch of it: all charts here then show these trials alone. A click on the axis takes it away.'});
      if (signal.aborted) return;
      restoreBrush();
      paintChips(data.matching);
      const known = values.filter((value) => typeof value === 'number');
      let distribution;
      if (terms.length > 0 || filter) {
        const sorted = [...known].sort((a, b) => a - b);
        distribution = {value: sorted, share: sorted.map((_, i) => (i + 1) / sorted.length)};
      } else {
        distribution = await app.get('/api/edf', {metric: metricOf}, signal);
        if (signal.aborted) return;
      }
      edf.show((theme) => edfChart([{name: summary.name, ...distribution}], theme, {metric: metric.value, log: log.value}), {empty: distribution.value.length === 0 ? nothing ?? 'No trial has reported this metric.' : null});
      const pairsOf = {trial: data.trial, state: data.state, x: data.columns[other], y: values};
      const left = unfit(pairsOf.y, log.value) + unfit(pairsOf.x, logMx.value);
      against.show((theme) => againstChart(pairsOf, theme, {x: mx.value === 'duration' ? 'duration in seconds' : mx.value, y: metric.value, logX: logMx.value, logY: log.value, pick: app.picked()}), {empty: nothing, note: left > 0 ? `${plural(left, 'value')} not drawn: not finite, or not above 0.` : null});
    },
  };
}
