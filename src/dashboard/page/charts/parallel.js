// Every trial as a line across all its parameters and metrics; a range of an axis can be selected.
import {fit, frame, mix, scaleOf} from './base.js';
import {finite, number, short} from '../format.js';
import {ranks} from './matters.js';

// The axes to draw, in order: parameters, then metrics. scaleOf() places choices and powers of ten.
// data: {trial, state, parameters: [], metrics: [name], columns: {field: []}}; -> [{name, field, scale, values}]
export function axesOf(data, logMetrics = false) {
  const parameters = data.parameters.map((parameter) => ({name: parameter.name, field: parameter.field, scale: scaleOf(parameter)}));
  const metrics = data.metrics.map((metric) => ({
    name: metric.name,
    field: metric.field,
    scale: {choices: null, log: logMetrics, low: null, high: null, at: (value) => { const known = fit(value, logMetrics); return known === null ? null : logMetrics ? Math.log10(known) : known; },
      value: (place) => (logMetrics ? 10 ** place : place), text: (place) => number(logMetrics ? 10 ** place : place, 3)},
  }));
  return [...parameters, ...metrics].map((axis) => ({...axis, values: data.columns[axis.field] ?? []}));
}

// look: {metric: field that gives the colour, mode, pick, width}
export function parallelChart(data, theme, look = {}) {
  const axes = axesOf(data);
  const rank = ranks(data.columns[look.metric] ?? [], look.mode);
  const many = data.trial.length > 400;
  const rows = data.trial.map((trial, i) => ({i, trial, rank: rank[i] ?? 0}));
  rows.sort((a, b) => a.rank - b.rank);  // the best are drawn on top
  const range = (axis) => {
    if (axis.scale.low !== null && axis.scale.high !== null) return [axis.scale.low, axis.scale.high];
    const known = axis.values.map(axis.scale.at).map(finite).filter((value) => value !== null);
    if (known.length === 0) return [0, 1];
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const around = high > low ? 0 : Math.abs(low) / 2 || 1;   // puts a single value into the middle
    return [low - around, high + around];
  };
  return {
    ...frame(theme),
    grid: undefined,
    parallel: {left: 44, right: 70, top: 34, bottom: 16, axisExpandable: false, parallelAxisDefault: {type: 'value'}},
    parallelAxis: axes.map((axis, k) => {
      const [min, max] = range(axis);
      return {
        dim: k,
        name: short(axis.name, 14),
        type: 'value',
        min,
        max: max > min ? max : min + 1,
        nameLocation: 'end',
        nameGap: 12,
        nameTextStyle: {color: theme.ink, fontSize: 11},
        axisLine: {lineStyle: {color: theme.ink3, width: 1}},
        axisTick: {show: false},
        splitNumber: 4,
        axisLabel: {color: theme.ink2, fontSize: 10, showMinLabel: true, showMaxLabel: true, formatter: (place) => axis.scale.text(place),
          textBorderColor: theme.panel, textBorderWidth: 3, customValues: axis.scale.ticks},
        areaSelectStyle: {width: 18, borderColor: theme.accent, borderWidth: 1, color: theme.accent, opacity: 0.25},
      };
    }),
    series: [{
      type: 'parallel', id: 'trials', smooth: false, inactiveOpacity: 0.03, activeOpacity: many ? 0.45 : 0.75, progressive: 0, silent: false,
      lineStyle: {width: 1, opacity: many ? 0.35 : 0.6},
      data: rows.map((row) => ({
        value: axes.map((axis) => axis.scale.at(axis.values[row.i]) ?? '-'),
        trial: row.trial,
        lineStyle: row.trial === look.pick ? {color: theme.ink, width: 3, opacity: 1} : {color: mix(theme, 0.15 + 0.85 * row.rank), opacity: (many ? 0.08 : 0.18) + 0.7 * row.rank ** 3, width: row.rank > 0.95 ? 1.75 : 1},
      })),
    }],
  };
}
