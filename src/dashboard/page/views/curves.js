// The curve of each trial, and where schedulers stopped trials.
import {fill, h} from '../dom.js';
import {count, number, plural, yet} from '../format.js';
import {makeChart} from '../chart.js';
import {bar, makeControls, metricOptions} from '../controls.js';
import {curvesChart, rungsChart} from '../charts/curves.js';
import {unfit} from '../charts/base.js';
import {metricField} from '../source.js';

export function curves(app) {
  const controls = makeControls(app);
  const metric = controls.select('Metric', 'metric', () => metricOptions(app), () => app.summary.objectives[0].metric);
  const axis = controls.segments('Axis', 'x', [['step', 'by step'], ['time', 'by time']]);
  const limit = controls.select('Trials', 'limit', () => [[100, '100'], [25, '25'], [300, '300']]);
  const lines = controls.toggle('lines', 'lines', {fallback: true, title: 'A line for each trial'});
  const bands = controls.toggle('spread', 'bands', {fallback: true, title: 'The median, and from the lowest to the highest tenth'});
  const cuts = controls.toggle('cuts', 'cuts', {fallback: true, title: 'Where the schedule stopped trials'});
  const logX = controls.toggle('log steps', 'logx');
  const log = controls.toggle('log values', 'log');
  const chart = makeChart(app, {key: 'curves', title: 'Curves', size: 'tall', zoom: 'xy'});
  const rungs = makeChart(app, {key: 'rungs', title: 'Rungs', size: 'short'});
  const table = h('div', {class: 'table-box rung-table'});
  const rungBox = h('div', {class: 'split'}, rungs.element, h('section', {class: 'panel'}, h('header', {class: 'panel-head'}, h('h2', null, 'What each rung let through')), table));

  return {
    element: h('div', {class: 'curves'}, bar(metric, axis, limit, lines, bands, cuts, logX, log), chart.element, rungBox),
    async refresh(signal) {
      const {summary} = app;
      controls.sync();
      if (summary.metrics.length === 0) {
        rungBox.hidden = true;
        chart.show(null, {empty: `No trial has reported a metric${yet(app.summary)}.`});
        return;
      }
      const needed = summary.has?.rungs;
      const objective = summary.objectives[0].metric;
      const [data, ladder] = await Promise.all([
        app.get('/api/curves', {metric: metricField(summary, metric.value), x: axis.value, limit: limit.value, filter: app.route.query.filter}, signal),
        needed ? app.get('/api/rungs', {}, signal) : {rungs: [], cuts: []}]);
      if (signal.aborted) return;
      const zero = logX.value && axis.value === 'step';
      // Reported steps count from 0, which has no logarithm: draw the number of steps done instead.
      const shift = (x) => (zero ? x.map((step) => step + 1) : x);
      const drawn = {
        curves: data.curves.map((curve) => ({...curve, x: shift(curve.x)})),
        bands: data.bands ? {...data.bands, x: shift(data.bands.x)} : null,
        cuts: metric.value === objective ? ladder.cuts.map((cut) => ({...cut, step: zero ? cut.step + 1 : cut.step})) : [],
      };
      const look = {metric: metric.value, x: axis.value, log: log.value, logX: logX.value, lines: lines.value, bands: bands.value, cuts: cuts.value, pick: app.picked(), best: summary.objectives.length === 1 ? summary.best?.[0]?.trial : undefined};
      const left = data.curves.reduce((sum, curve) => sum + unfit(curve.value, log.value), 0);
      const parts = [data.matching > data.shown ? `The best and a sample of the others: ${count(data.shown)} of ${plural(data.matching, 'trial')}.` : null,
        left > 0 ? `${plural(left, 'value')} not drawn: not finite${log.value ? ', or not above 0' : ''}.` : null];
      chart.show((theme) => curvesChart(drawn, theme, look), {
        empty: data.curves.length === 0 ? (app.route.query.filter ? 'No trial that matches the filter has reported this metric.' : `No trial has reported this metric${yet(app.summary)}.`) : null,
        note: parts.filter(Boolean).join(' ') || null});
      rungBox.hidden = ladder.rungs.length === 0;
      if (ladder.rungs.length > 0) rungs.show((theme) => rungsChart(ladder, theme));
      fill(table, ladder.rungs, () => h('table', {class: 'plain'}, h('thead', null, h('tr', null, ['steps done', 'reached', 'went on', 'stopped', 'paused', 'threshold now'].map((text) => h('th', {scope: 'col', class: 'number'}, text)))),
        h('tbody', null, ladder.rungs.map((rung) => h('tr', null, [rung.step, rung.reached, rung.promoted, rung.stopped, rung.paused].map((value) => h('td', {class: 'number'}, count(value))), h('td', {class: 'number'}, number(rung.threshold)))))));
    },
  };
}
