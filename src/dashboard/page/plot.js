// A chart as SVG without a page: run by `hypertune plot` in an engine that has neither a DOM nor a network. Answers and
// charts are those of the page; title and legend are added for paper.
import {bestChart, compareChart} from './charts/best.js';
import {curvesChart, rungsChart} from './charts/curves.js';
import {lineageChart, scheduleChart, schedules, timelineChart, useChart} from './charts/happened.js';
import {againstChart, edfChart, importanceChart, pairChart, pairSurface, sliceChart} from './charts/matters.js';
import {parallelChart} from './charts/parallel.js';
import {frontChart, hypervolumeChart} from './charts/tradeoffs.js';
import {fit, narrowed} from './charts/base.js';
import {number, short} from './format.js';
import {keyOf, metricField, parameterField} from './source.js';
import {composeSvg, keyOfColours, keyOfMarks, keyOfStates, paperTheme} from './paper.js';

// An error that the user can correct. Only its message is printed.
class Problem extends Error {
  name = 'Problem';
}

const listed = (names) => (names.length > 0 ? names.slice(0, 30).map((name) => short(name, 60)).join(', ') + (names.length > 30 ? ', …' : '') : 'none');
const nothing = (why) => {
  throw new Problem(`there is nothing to draw: ${why}`);
};

const maximum = 3000;   // most trials to draw

// Shared by the charts of one call: the options and the answers.
function context(ask, options, experiment) {
  const get = (path, parameters = {}) => JSON.parse(ask(keyOf(path, {...parameters, experiment})));
  const summary = get('/api/summary');
  if (summary.error) throw new Problem(summary.error);
  const objectives = summary.objectives.map((one) => one.metric);
  const varied = summary.parameters.filter((parameter) => parameter.kind !== 'fixed' && parameter.kind !== 'text');
  for (const metric of options.metrics) {
    if (!summary.metrics.includes(metric)) throw new Problem(`there is no metric '${short(metric, 100)}'; there are: ${listed(summary.metrics)}`);
  }
  for (const parameter of options.parameters) {
    if (summary.parameters.some((one) => one.name === parameter)) continue;
    throw new Problem(`there is no parameter '${short(parameter, 100)}'; there are: ${listed(summary.parameters.map((one) => one.name))}`);
  }
  for (const parameter of options.parameters) {
    if (!varied.some((one) => one.name === parameter)) throw new Problem(`the parameter '${short(parameter, 100)}' does not vary: it has nothing to draw`);
  }
  const metric = options.metrics[0] ?? objectives[0];
  const own = {
    summary, objectives, varied, options, get, metric,
    theme: paperTheme(options.font),
    mode: summary.objectives.find((one) => one.metric === metric)?.mode ?? summary.objectives[0]?.mode ?? 'min',
    field: (name) => (name === 'duration' || name === 'steps' ? name : metricField(summary, name)),
    // Trials by columns. Takes names of parameters and metrics, not of fields.
    points(parameters, metrics) {
      const fields = [...new Set([...parameters.map((name) => parameterField(summary, name)), ...metrics.map(own.field)])];
      const data = get('/api/points', {fields: fields.join(','), limit: maximum, filter: options.filter});
      if (data.trial.length === 0) nothing(options.filter ? 'no trial matches the filter' : 'there are no trials yet');
      return {...data, of: (name) => data.columns[parameterField(summary, name)], metric: (name) => data.columns[own.field(name)]};
    },
    reported() {
      if (summary.metrics.length === 0 || metric === undefined || !summary.metrics.includes(metric)) nothing('no trial has reported a metric yet');
    },
    // Fails unless some of the values can be drawn.
    drawable(values, log = options.log, name = metric) {
      if (values.some((value) => fit(value, log) !== null)) return;
      nothing(log && values.some((value) => fit(value, false) !== null) ? `no value of '${short(name, 60)}' is above 0, which a logarithm needs` : `no trial has a finite value of '${short(name, 60)}'`);
    },
    // The parameters that were asked for, or the most important ones; at least `least`, at most `most`.
    chosen(most, least = 1) {
      if (varied.length < least) nothing(varied.length === 0 ? 'there is no parameter that varies' : 'there is but one parameter that varies');
      if (options.parameters.length > most) throw new Problem(`'${options.kind}' takes ${most === 1 ? 'one parameter' : `at most ${most} parameters`}, not ${options.parameters.length}`);
      if (options.parameters.length >= least && options.parameters.length > 0) return options.parameters;
      const ranked = get('/api/importance', {metric: metricField(summary, metric)}).importance.sort((a, b) => b.value - a.value).map((row) => row.name);
      const order = [...ranked.filter((name) => varied.some((one) => one.name === name)), ...varied.map((one) => one.name).filter((name) => !ranked.includes(name))];
      return [...new Set([...options.parameters, ...order])].slice(0, options.parameters.length > 0 ? least : most);
    },
    parameter: (name) => varied.find((one) => one.name === name),
  };
  return own;
}

function objectiveOnly(c) {
  if (c.options.metrics.length > 0 && !c.objectives.includes(c.metric)) {
    throw new Problem(`'${short(c.metric, 100)}' is no objective, of which '${c.options.kind}' is drawn; there are: ${listed(c.objectives)}`);
  }
}

function best(c) {
  objectiveOnly(c);
  c.reported();
  const x = c.options.time ? 'time' : 'trial';
  const answer = c.get('/api/best', {x});
  const of = answer.objectives.find((one) => one.metric === c.metric);
  if (!of || of.x.length === 0) nothing('no trial has reported a value yet');
  c.drawable(of.value);
  return {option: bestChart(of, c.theme, {x, log: c.options.log})};
}

function curves(c) {
  c.reported();
  const {time, log, logX} = c.options;
  const data = c.get('/api/curves', {metric: metricField(c.summary, c.metric), x: time ? 'time' : 'step', limit: 100, filter: c.options.filter});
  if (data.curves.length === 0) nothing(c.options.filter ? 'no trial that matches the filter has reported this metric' : `no trial has reported '${short(c.metric, 60)}' yet`);
  c.drawable(data.curves.flatMap((curve) => curve.value));
  const ladder = c.summary.has?.rungs && c.metric === c.objectives[0] ? c.get('/api/rungs') : {cuts: []};
  // Reported steps count from 0, which has no logarithm: draw the number of steps done instead.
  const more = logX && !time ? 1 : 0;
  const shift = (x) => x.map((step) => step + more);
  const drawn = {curves: data.curves.map((curve) => ({...curve, x: shift(curve.x)})), bands: data.bands ? {...data.bands, x: shift(data.bands.x)} : null,
    cuts: ladder.cuts.map((cut) => ({...cut, step: cut.step + more}))};
  const best_ = c.objectives.length === 1 && c.objectives[0] === c.metric ? c.summary.best?.[0]?.trial : undefined;
  const states = [...new Set(drawn.curves.map((curve) => curve.state))];
  const shown = new Set(drawn.curves.map((curve) => curve.trial));
  return {
    option: curvesChart(drawn, c.theme, {metric: c.metric, x: time ? 'time' : 'step', log, logX, best: best_}),
    key: keyOfStates(c.theme, states, {best: shown.has(best_), median: Boolean(drawn.bands), cut: !time && drawn.cuts.some((cut) => shown.has(cut.trial))}),
  };
}

function rungs(c) {
  const ladder = c.summary.has?.rungs ? c.get('/api/rungs') : {rungs: []};
  if (ladder.rungs.length === 0) nothing('the schedule has no rungs, or no trial was stopped or waits at one');
  const option = rungsChart(ladder, c.theme);
  const some = new Set(option.series.filter((series) => series.data.some((value) => (value?.value ?? value) > 0)).map((series) => series.name));
  option.legend.data = option.legend.data.filter((name) => some.has(name));
  return {option};
}

function importance(c) {
  c.reported();
  const data = c.get('/api/importance', {metric: metricField(c.summary, c.metric)});
  if (data.importance.length === 0) nothing('too few trials have ended to tell');
  const option = importanceChart({importance: data.importance.slice(0, 20)}, c.theme);
  option.xAxis = {...option.xAxis, name: `share of the variance of ${short(c.metric, 40)}`, nameGap: 8};
  option.series[0].barMaxWidth = 26;
  return {option};
}

function slice(c) {
  c.reported();
  const names = c.chosen(16);
  const shown = c.options.parameters.length > 0 ? names : names.slice(0, 8);
  const data = c.points(shown, [c.metric]);
  const values = data.metric(c.metric);
  c.drawable(values);
  const columns = Math.max(1, Math.min(shown.length, Math.floor(c.options.width / 170)));
  const option = sliceChart({trial: data.trial, parameters: shown.map(c.parameter), columns: shown.map(data.of), values}, c.theme, {metric: c.metric, log: c.options.log, columns});
  option.yAxis.forEach((axis, k) => {
    axis.name = k % columns === 0 ? short(c.metric, 24) : '\u00a0';   // the charts of a row get the same height
  });
  const last = Math.max(...data.trial);
  return {option, key: keyOfColours(c.theme, ['first trial', 'last trial'], {from: 0.25}), height: Math.ceil(shown.length / columns), last};
}

function pair(c) {
  c.reported();
  const rank = c.options.kind === 'rank';
  const [across, up] = c.chosen(2, 2);
  const data = c.points([across, up], [c.metric]);
  const values = data.metric(c.metric);
  c.drawable(values, false);
  const both = {trial: data.trial, x: {parameter: c.parameter(across), values: data.of(across)}, y: {parameter: c.parameter(up), values: data.of(up)}, values};
  const look = {kind: rank ? 'rank' : 'contour', metric: c.metric, mode: c.mode};
  const bands = rank ? null : pairSurface(both, look);
  const range = rank ? ['worst', 'best'] : bands?.range.map((value) => number(value, 4));
  if (!range) nothing('a contour needs at least four trials at different places; the kind rank draws fewer');
  const key = rank ? keyOfColours(c.theme, range, {title: `rank by ${short(c.metric, 40)}`}) : keyOfColours(c.theme, range, {title: `${short(c.metric, 40)} (${c.mode})`, steps: 9});
  return {option: pairChart(both, c.theme, {...look, bands}), key};
}

function parallel(c) {
  c.reported();
  const names = c.chosen(12);
  const order = c.varied.map((one) => one.name).filter((name) => names.includes(name));
  const metrics = [...new Set([c.metric, ...c.objectives])];
  const data = c.points(order, metrics);
  c.drawable(data.metric(c.metric), false);
  const everything = {trial: data.trial, state: data.state, columns: data.columns, parameters: order.map((name) => ({...c.parameter(name), field: parameterField(c.summary, name)})), metrics: metrics.map((name) => ({name, field: c.field(name)}))};
  const option = parallelChart(everything, c.theme, {metric: c.field(c.metric), mode: c.mode});
  return {option, key: keyOfColours(c.theme, ['worst', 'best'], {title: `rank by ${short(c.metric, 40)}`, from: 0.15})};
}

function edf(c) {
  c.reported();
  const data = c.get('/api/edf', {metric: metricField(c.summary, c.metric)});
  if (data.value.length === 0) nothing(`no trial has a finite value of '${short(c.metric, 60)}'`);
  c.drawable(data.value);
  return {option: edfChart([{name: c.summary.name, ...data}], c.theme, {metric: c.metric, log: c.options.log})};
}

// Several experiments in one chart, labelled by name, or by folder if two have the same name.
function together(contexts, experiments) {
  const [{options, theme, metric, summary: {objectives}}] = contexts;
  if (contexts.length > theme.series.length) throw new Problem(`'${options.kind}' draws ${theme.series.length} experiments at most, not ${contexts.length}`);
  const mode = objectives.find((one) => one.metric === metric)?.mode;
  const named = contexts.map((c, i) => {
    const folder = experiments[i].folder ?? experiments[i].id;
    if (!c.summary.metrics.includes(metric)) throw new Problem(`no trial of the experiment in '${short(folder, 200)}' has reported ${c.summary.metrics.length === 0 ? 'a metric' : `'${short(metric, 100)}'; there are: ${listed(c.summary.metrics)}`}`);
    const own = c.summary.objectives.find((one) => one.metric === metric)?.mode;
    if (options.kind === 'best' && !own) throw new Problem(`'${short(metric, 100)}' is no objective of the experiment in '${short(folder, 200)}'; there are: ${listed(c.objectives)}`);
    if (options.kind === 'best' && own !== mode) throw new Problem(`'${short(metric, 100)}' is to ${mode} in one experiment and to ${own} in another`);
    const alone = contexts.every((other) => other === c || other.summary.name !== c.summary.name);
    return {c, name: alone && c.summary.name ? c.summary.name : experiments[i].id};
  });
  const key = keyOfMarks(theme, named.map(({name}, i) => [short(name, 60), theme.series[i], 'line']));
  const chart = (option) => ({option: {...option, legend: {...option.legend, show: false}}, key});
  return {named, chart};
}

function bestOfSeveral(contexts, experiments) {
  const [c] = contexts;
  const {named, chart} = together(contexts, experiments);
  const x = c.options.time ? 'time' : 'trial';
  const lines = named.map((one) => ({name: one.name, objective: one.c.get('/api/best', {x}).objectives.find((objective) => objective.metric === c.metric) ?? {x: [], value: []}}));
  c.drawable(lines.flatMap((line) => line.objective.value));
  return chart(compareChart(lines, c.theme, {x, log: c.options.log, metric: c.metric}));
}

function edfOfSeveral(contexts, experiments) {
  const [c] = contexts;
  const {named, chart} = together(contexts, experiments);
  const data = named.map((one) => ({name: one.name, ...one.c.get('/api/edf', {metric: metricField(one.c.summary, c.metric)})}));
  c.drawable(data.flatMap((one) => one.value));
  return chart(edfChart(data, c.theme, {metric: c.metric, log: c.options.log}));
}

const several = {best: bestOfSeveral, edf: edfOfSeveral};

// Two metrics; the second one is on the vertical axis.
function against(c) {
  c.reported();
  const {metrics, log, logX, kind} = c.options;
  const front = kind === 'pareto';
  const several = c.objectives.length > 1;
  if (metrics.length > 2) throw new Problem(`'${kind}' takes two metrics at most, not ${metrics.length}`);
  const [x, y] = metrics.length === 2 ? metrics : front && several ? (metrics.length === 0 ? c.objectives : [c.objectives.find((one) => one !== c.metric), c.metric])
    : [metrics.length === 1 && c.metric !== c.objectives[0] ? metrics[0] : 'duration', c.objectives[0]];
  if (front && several) {
    for (const metric of [x, y]) if (!c.objectives.includes(metric)) throw new Problem(`'${short(metric, 100)}' is no objective, of which the front is made; there are: ${listed(c.objectives)}`);
  }
  const name = (one) => (one === 'duration' ? 'duration in seconds' : one);
  const modeOf = (one) => c.summary.objectives.find((objective) => objective.metric === one)?.mode ?? 'min';
  const look = {x: name(x), y: name(y), modes: [modeOf(x), modeOf(y)], logX, logY: log};
  if (front && several && !c.options.filter) {
    const {front: members, points} = c.get('/api/front');
    if (points.trial.length === 0) nothing('no trial has reported all objectives yet');
    const column = (one) => points.columns[one] ?? points.columns[c.field(one)] ?? [];
    c.drawable(column(x), logX, x);
    c.drawable(column(y), log, y);
    return {option: frontChart({trial: points.trial, state: points.state, x: column(x), y: column(y), members: new Set(members.map((row) => row.trial))}, c.theme, look)};
  }
  const data = c.points([], [x, y]);
  const drawn = {trial: data.trial, state: data.state, x: data.metric(x), y: data.metric(y), members: null};
  c.drawable(drawn.x, logX, x);
  c.drawable(drawn.y, log, y);
  if (front) return {option: frontChart(drawn, c.theme, look)};
  const states = data.state.filter((_, i) => fit(drawn.x[i], logX) !== null && fit(drawn.y[i], log) !== null);
  return {option: againstChart(drawn, c.theme, look), key: keyOfStates(c.theme, [...new Set(states)], {dots: true})};
}

function hypervolume(c) {
  if (c.objectives.length < 2) nothing('a hypervolume needs several objectives, and there is one');
  const {hypervolume: data} = c.get('/api/front');
  if (data.x.length === 0) nothing('no trial has reported all objectives yet');
  return {option: hypervolumeChart(data, c.theme)};
}

// Times are drawn from the start of the run, because the time of day means nothing in a paper.
function elapsed(c) {
  const origin = c.summary.started ?? 0;
  const data = c.get('/api/timeline', {limit: 4000});
  const since = (times) => times.map((time) => time - origin);
  const moved = {...data, segments: {...data.segments, start: since(data.segments.start), end: since(data.segments.end)},
    hosts: (data.hosts ?? []).map((host) => ({...host, gained: host.gained === null ? null : host.gained - origin, lost: host.lost === null ? null : host.lost - origin})),
    use: data.use ? {...data.use, time: since(data.use.time)} : null};
  if (moved.segments.trial.length === 0) nothing('no trial has started yet');
  const fold = (values, pick, from) => values.reduce((a, b) => pick(a, b), from);
  const times = [...moved.segments.end, ...(moved.use?.time ?? [])];
  return {data: moved, from: fold(moved.segments.start, Math.min, 0), to: fold(times, Math.max, 1e-3)};
}

const sinceStart = {name: 'time since the start', nameLocation: 'middle', nameGap: 26};

function timeline(c) {
  const {data, from, to} = elapsed(c);
  const option = timelineChart(data, c.theme, {origin: 0, from, to});
  option.xAxis = {...option.xAxis, ...sinceStart};
  return {option, key: keyOfStates(c.theme, [...new Set(data.segments.kind)], {boxes: true})};
}

function slots(c) {
  const {data, from, to} = elapsed(c);
  if (!data.use || data.use.time.length === 0) nothing('it is not known which slots were in use');
  const option = useChart(data.use, c.theme, {origin: 0, from, to});
  option.xAxis = {...option.xAxis, ...sinceStart};
  return {option};
}

function populationOf(c) {
  const data = c.summary.has?.population ? c.get('/api/lineage') : {population: [], rows: []};
  if (data.population.length === 0) nothing('it is no population, or no member has gone on from another one yet');
  return data;
}

const lineage = (c) => ({option: lineageChart(populationOf(c), c.theme), key: keyOfMarks(c.theme, [['a member that went on from the other end of its line', c.theme.accent, 'dot']])});

function schedule(c) {
  const {population} = populationOf(c);
  const changed = new Set(population.flatMap((event) => Object.keys(event.changes ?? {})));
  const name = c.options.parameters[0] ?? c.varied.find((one) => changed.has(one.name))?.name;
  if (name === undefined || !changed.has(name)) nothing(name === undefined ? 'no parameter has been changed yet' : `the parameter '${short(name, 60)}' was never changed; these were: ${listed([...changed])}`);
  const last = population.reduce((most, event) => Math.max(most, event.step), 0);
  const best_ = c.objectives.length === 1 ? c.summary.best?.[0]?.trial : undefined;
  const lines = schedules(population, name, new Map(), last);
  return {option: scheduleChart(lines, c.theme, {name, log: c.options.log || c.parameter(name)?.log, best: best_}), key: lines.has(best_) ? keyOfMarks(c.theme, [['the best member', c.theme.best, 'line']]) : null};
}

export const kinds = {
  best, curves, rungs, importance, slice, contour: pair, rank: pair, parallel, pareto: against, against, hypervolume, edf, timeline, slots, lineage, schedule,
};

// The options that each kind uses besides width, height, title and font. Others are refused, so that none is ignored
// silently.
const heeded = {
  best: ['metrics', 'log', 'time'], curves: ['metrics', 'log', 'logX', 'time', 'filter'], rungs: [], importance: ['metrics'], slice: ['metrics', 'parameters', 'log', 'filter'],
  contour: ['metrics', 'parameters', 'filter'], rank: ['metrics', 'parameters', 'filter'], parallel: ['metrics', 'parameters', 'filter'], pareto: ['metrics', 'log', 'logX', 'filter'],
  against: ['metrics', 'log', 'logX', 'filter'], hypervolume: [], edf: ['metrics', 'log'], timeline: [], slots: [], lineage: [], schedule: ['parameters', 'log'],
};
const spelt = {metrics: '--metric', parameters: '--parameter', log: '--log', logX: '--log-x', time: '--time', filter: '--filter'};

// options: {kind, metrics: [], parameters: [], width, height, log, logX, time, title, font, filter}; -> the SVG
export function plot(echarts, ask, options) {
  const draw = Object.hasOwn(kinds, options.kind) ? kinds[options.kind] : null;
  if (!draw) throw new Problem(`there is no kind of chart '${short(options.kind, 100)}'; there are: ${Object.keys(kinds).join(', ')}`);
  for (const [key, word] of Object.entries(spelt)) {
    const given = Array.isArray(options[key]) ? options[key].length > 0 : Boolean(options[key]);
    if (given && !heeded[options.kind].includes(key)) throw new Problem(`'${options.kind}' takes no ${word}`);
  }
  if (options.metrics.length > 1 && !['pareto', 'against'].includes(options.kind)) throw new Problem(`'${options.kind}' takes one metric, not ${options.metrics.length}`);
  const {experiments} = JSON.parse(ask('/api/experiments'));
  if (experiments.length !== 1 && !Object.hasOwn(several, options.kind)) {
    const where = options.folders.length === 1 ? `there are ${experiments.length} experiments in '${options.folders[0]}'` : `${experiments.length} experiments are named`;
    throw new Problem(`${where}, and '${options.kind}' is drawn of one: name the folder of one; of several are drawn: ${Object.keys(several).join(', ')}`);
  }
  const contexts = experiments.map(({id}) => context(ask, options, experiments.length > 1 ? id : undefined));
  const [c] = contexts;
  const {option, key} = contexts.length > 1 ? several[options.kind](contexts, experiments) : draw(c);
  return composeSvg(echarts, options.width < 520 ? narrowed(option) : option, key ?? null, c.theme, options);
}
