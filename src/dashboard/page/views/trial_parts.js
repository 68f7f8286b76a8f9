// Everything about one trial. The side panel beside another view is the same, but narrower and without the log.
import {copy, fill, h, hint, icon, name, panel, state} from '../dom.js';
import {bytes, clock, count, duration, finite, moment, number, plural, setting, yet} from '../format.js';
import {makeChart} from '../chart.js';
import {trialCurve} from '../charts/curves.js';
import {scaleOf, unfit} from '../charts/base.js';
import {makeControls} from '../controls.js';
import {Refused} from '../source.js';
import {makeLog} from './log.js';

const metricsShown = 8;

// Shows where in its range a value is.
function track(parameter, value) {
  const scale = scaleOf(parameter);
  const at = scale.at(value);
  if (at === null || scale.low === null || scale.high === null || scale.low === undefined || scale.high <= scale.low) return h('span', {class: 'track none'});
  const part = Math.min(1, Math.max(0, (at - scale.low) / (scale.high - scale.low)));
  const text = scale.choices ? plural(scale.choices.length, 'choice') : `${number(parameter.low)} to ${number(parameter.high)}${parameter.log ? ', log' : ''}`;
  return h('span', {class: 'track', title: text, 'aria-hidden': 'true'}, h('i', {style: {left: `${part * 100}%`}}));
}

function head(app, row, compact, number_) {
  const total = Object.values(app.summary.counts).reduce((a, b) => a + b, 0);
  const best = (app.summary.best ?? []).some((one) => one.trial === row.trial);
  const copied = (format) => async () => {
    try {
      const answer = await app.get('/api/config', {trial: number_, format});
      app.say(await copy(answer.text) ? `The parameters of trial ${number_} are copied as ${format === 'yaml' ? 'YAML' : 'C++'}.` : 'The parameters could not be copied.');
    } catch (error) {
      app.say(error.message);
    }
  };
  const button = (text, key, action, label = text) => h('button', {type: 'button', class: 'quiet small', data: {key}, title: label, 'aria-label': label, onclick: action}, text);
  const title = h(compact ? 'h2' : 'h1', null, `Trial ${row.trial}`);
  return h('header', {class: 'trial-head'}, h('div', {class: 'trial-title'}, title, state(row.state), best ? h('span', {class: 'badge'}, app.summary.objectives.length > 1 ? 'on the front' : 'the best') : null,
    h('span', {class: 'push'}, compact ? [h('a', {class: 'button small', href: app.trialHref(row.trial), data: {key: 'open'}}, 'Open'), h('button', {type: 'button', class: 'quiet icon-button', data: {key: 'close'}, 'aria-label': 'Close', title: 'Close (Esc)', onclick: () => app.pick(null)}, icon('close'))]
      : [h('button', {type: 'button', class: 'quiet icon-button', data: {key: 'before'}, disabled: row.trial <= 0, 'aria-label': 'The trial before', title: 'The trial before (k)', onclick: () => app.openTrial(row.trial - 1)}, icon('left')),
        h('button', {type: 'button', class: 'quiet icon-button', data: {key: 'next'}, disabled: row.trial >= total - 1, 'aria-label': 'The next trial', title: 'The next trial (j)', onclick: () => app.openTrial(row.trial + 1)}, icon('right'))])),
  h('dl', {class: 'facts'},
    app.summary.objectives.map((objective, i) => {
      const value = row.values?.[i] ?? (i === 0 ? row.value : null);
      return h('div', {class: 'fact'}, h('dt', null, name(objective.metric)), h('dd', {class: i === 0 ? 'value' : null}, number(value), i === 0 && finite(row.at_step) !== null ? h('small', null, ` at step ${count(row.at_step)}`) : null));
    }),
    h('div', {class: 'fact'}, h('dt', null, 'steps'), h('dd', null, count(row.steps))),
    h('div', {class: 'fact'}, h('dt', null, 'took'), h('dd', null, duration(row.duration))),
    row.host ? h('div', {class: 'fact'}, h('dt', null, 'host'), h('dd', null, name(row.host))) : null,
    row.created ? h('div', {class: 'fact'}, h('dt', null, 'created'), h('dd', null, moment(row.created))) : null),
  row.cause ? h('p', {class: `cause ${row.state === 'failed' ? 'bad' : ''}`}, h('b', null, row.state === 'failed' ? 'Failed: ' : 'Cause: '), name(row.cause)) : null,
  row.feasible === false ? h('p', {class: 'cause bad'}, 'It breaks a constraint, and does not count as a result.') : null,
  row.waits_for ? h('p', {class: 'cause'}, h('b', null, 'Waits: '), name(row.waits_for)) : null,
  h('div', {class: 'copies'}, button('Copy as YAML', 'yaml', copied('yaml')), button('Copy as C++', 'cpp', copied('c++'))));
}

function parameters(app, row) {
  const known = new Map(app.summary.parameters.map((parameter) => [parameter.name, parameter]));
  return h('table', {class: 'plain parameters'}, h('tbody', null, Object.entries(row.params).map(([key, value]) => h('tr', null,
    h('th', {scope: 'row'}, name(key)), h('td', {class: 'number'}, name(setting(value))), h('td', {class: 'track-cell'}, known.has(key) ? track(known.get(key), value) : null)))));
}

function metrics(row) {
  return h('div', {class: 'table-box'}, h('table', {class: 'plain of-metrics'}, h('thead', null, h('tr', null, ['metric', 'last', 'best', 'at step'].map((text, i) => h('th', {scope: 'col', class: i > 0 ? 'number' : null}, text)))),
    h('tbody', null, Object.entries(row.metrics).map(([key, one]) => h('tr', null, h('th', {scope: 'row'}, name(key)), h('td', {class: 'number'}, number(one.last)), h('td', {class: 'number'}, number(one.best)), h('td', {class: 'number'}, count(one.best_step)))))));
}

function attempts(row) {
  return h('div', {class: 'table-box'}, h('table', {class: 'plain attempts'}, h('thead', null, h('tr', null, ['', 'host', 'from', 'for', 'steps', 'ended'].map((text) => h('th', {scope: 'col'}, text)))),
    h('tbody', null, row.attempts.map((one) => h('tr', null,
      h('td', {class: 'number'}, one.attempt), h('td', null, name(one.host ?? '–'), one.workers?.length > 1 ? h('small', null, ` ${one.workers.length} workers`) : null),
      h('td', {title: moment(one.start)}, clock(one.start)), h('td', null, finite(one.start) === null ? '–' : finite(one.end) !== null ? duration(one.end - one.start) : 'goes on'),
      h('td', null, finite(one.to_step) === null ? '–' : `${count(one.from_step)} – ${count(one.to_step)}`),
      h('td', null, state(one.end_kind ?? 'running'), one.cause ? h('div', {class: 'muted'}, name(one.cause)) : null))))));
}

function checkpoints(row) {
  return h('div', {class: 'table-box'}, h('table', {class: 'plain'}, h('thead', null, h('tr', null, ['step', 'size', 'state', 'path'].map((text, i) => h('th', {scope: 'col', class: i < 2 ? 'number' : null}, text)))),
    h('tbody', null, [...row.checkpoints].reverse().slice(0, 50).map((one) => h('tr', {class: one.state === 'dropped' ? 'faint' : null}, h('td', {class: 'number'}, count(one.step)), h('td', {class: 'number'}, bytes(one.bytes)),
      h('td', null, one.state, one.why ? h('span', {class: 'muted'}, ` (${one.why})`) : null), h('td', null, h('code', null, name(one.path ?? ''))))))),
  row.checkpoints.length > 50 ? h('p', {class: 'more muted'}, `and ${count(row.checkpoints.length - 50)} earlier ones`) : null);
}

function lineage(app, row) {
  return h('ul', {class: 'lineage'}, row.lineage.slice(-40).map((one) => h('li', null, h('span', {class: 'muted'}, `step ${count(one.step)} `),
    one.donor !== null && one.donor !== undefined ? [one.trial === row.trial ? 'went on from ' : [h('a', {href: app.trialHref(one.trial), data: {key: `l${one.step}-${one.trial}`}}, `trial ${one.trial}`), ' went on from '], h('a', {href: app.trialHref(one.donor), data: {key: `d${one.step}-${one.donor}`}}, `trial ${one.donor}`)] : null,
    h('span', {class: 'changes'}, Object.entries(one.changes ?? {}).map(([key, [from, to]]) => h('span', null, name(key), ` ${setting(from)} → ${setting(to)}`))))));
}

export function makeTrial(app, trial, {compact = false} = {}) {
  const top = h('div', null);
  const boxes = {
    params: panel('Parameters', {}, h('div', {class: 'pad'})),
    metrics: panel('Metrics', {}, h('div', {class: 'pad'})),
    attempts: panel('Attempts', {}, h('div', {class: 'pad'})),
    checkpoints: panel('Checkpoints', {}, h('div', {class: 'pad'})),
    lineage: panel('Lineage', {}, h('div', {class: 'pad'})),
    notes: panel('Notes', {}, h('div', {class: 'pad'})),
  };
  const controls = makeControls(app);
  const axis = controls.segments('Axis', compact ? 'side.x' : 'x', [['step', 'by step'], ['time', 'by time']]);
  const log = controls.toggle('log', compact ? 'side.log' : 'log', {title: 'Values on a logarithmic scale'});
  const charts = new Map();
  const curves = h('div', {class: 'curves-grid'});
  const curveTools = h('div', {class: 'controls'}, axis.element, log.element);
  const logView = compact ? null : makeLog(app, trial);
  const inside = (box) => box.lastElementChild;
  const side = [boxes.params, boxes.metrics, boxes.notes, boxes.lineage];
  const wide = [h('section', null, curveTools, curves), boxes.attempts, boxes.checkpoints, logView?.element ?? null];
  const element = h('article', {class: `trial ${compact ? 'compact' : ''}`}, top, compact ? [curves, boxes.params, boxes.metrics, boxes.notes, boxes.attempts] : h('div', {class: 'columns'}, h('div', {class: 'narrow-column'}, side), h('div', {class: 'wide-column'}, wide)));

  function paintCurves(row) {
    const names = Object.keys(row.curves);
    const first = app.summary.objectives.map((objective) => objective.metric).filter((metric) => names.includes(metric));
    const all = [...first, ...names.filter((metric) => !first.includes(metric))];
    const list = compact ? all.slice(0, 1) : app.route.query.all === '1' ? all : all.slice(0, metricsShown);
    for (const [metric, chart] of charts) {
      if (list.includes(metric)) continue;
      chart.element.remove();
      chart.dispose();
      charts.delete(metric);
    }
    const start = row.started ?? row.attempts[0]?.start ?? row.created ?? 0;
    for (const metric of list) {
      if (!charts.has(metric)) {
        const chart = makeChart(app, {key: `${compact ? 'side' : 'curve'}${all.indexOf(metric)}`, title: metric, size: compact ? 'small' : list.length === 1 ? 'medium' : 'short', zoom: 'xy', file: `trial-${trial}-${metric}`});
        charts.set(metric, chart);
        curves.append(chart.element);
      }
      const curve = row.curves[metric];
      const time = axis.value === 'time';
      const data = {step: curve.step, time: curve.time.map((moment_) => moment_ - start), value: curve.value,
        marks: row.attempts.slice(1).map((one) => (time ? one.start - start : one.from_step)).filter((mark) => finite(mark) !== null)};
      const left = unfit(curve.value, log.value);
      charts.get(metric).show((theme) => trialCurve(data, theme, {x: axis.value, log: log.value, metric: ''}), {
        empty: curve.value.length === 0 ? `No report${yet(app.summary)}.` : left === curve.value.length ? 'All of its values are not finite.' : null,
        note: left > 0 && left < curve.value.length ? `${plural(left, 'value')} not drawn: not finite${log.value ? ', or not above 0' : ''}.` : null});
    }
    curves.hidden = list.length === 0;
    const rest = all.length - list.length;
    curveTools.hidden = list.length === 0;
    let more = curveTools.querySelector('.more-metrics');
    if (!compact && rest > 0 && !more) {
      more = h('button', {type: 'button', class: 'quiet small more-metrics', onclick: () => app.set({all: '1'})});
      curveTools.append(more);
    }
    if (more) {
      more.hidden = rest === 0;
      more.textContent = `Show ${count(rest)} more`;
    }
  }

  return {
    element,
    async refresh(signal) {
      controls.sync();
      // The summary was loaded before, so an id that it does not count is known to be wrong without a request.
      if (trial >= Object.values(app.summary.counts).reduce((a, b) => a + b, 0)) throw new Refused(app.summary.reading ? `The record is still being read; trial ${trial} comes later in it.` : `There is no trial ${trial}.`);
      const row = await app.get('/api/trial', {trial, points: 500}, signal);
      if (signal.aborted) return;
      const {curves: _, attempts: __, checkpoints: ___, ...rest} = row;
      fill(top, [rest, app.summary.best?.map((one) => one.trial), app.summary.counts, compact], () => head(app, row, compact, trial));
      fill(inside(boxes.params), [row.params, app.summary.parameters], () => parameters(app, row));
      boxes.metrics.hidden = Object.keys(row.metrics).length === 0;
      fill(inside(boxes.metrics), row.metrics, () => metrics(row));
      boxes.attempts.hidden = row.attempts.length === 0;
      fill(inside(boxes.attempts), row.attempts, () => attempts(row));
      boxes.checkpoints.hidden = row.checkpoints.length === 0;
      fill(inside(boxes.checkpoints), row.checkpoints, () => checkpoints(row));
      boxes.lineage.hidden = (row.lineage ?? []).length === 0;
      fill(inside(boxes.lineage), row.lineage ?? [], () => lineage(app, row));
      const notes = Object.entries(row.notes ?? {});
      boxes.notes.hidden = notes.length === 0;
      fill(inside(boxes.notes), notes, () => h('dl', {class: 'params'}, notes.map(([key, value]) => [h('dt', null, name(key)), h('dd', {title: hint(setting(value))}, setting(value))])));
      paintCurves(row);
      await logView?.refresh(row.log_bytes, signal);
    },
    dispose() {
      for (const chart of charts.values()) chart.dispose();
    },
  };
}
