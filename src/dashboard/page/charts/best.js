// The best value so far, over a sample of all trials.
import {dash, fit, frame, legend, pairs, picked, tooltip, valueAxis} from './base.js';
import {count, duration, number, short} from '../format.js';

// data: an objective of /api/best {metric, mode, x, value, points}; look: {x: 'trial'|'time', log, pick}
export function bestChart(data, theme, look = {}) {
  const time = look.x === 'time';
  const format = time ? duration : count;
  const points = data.points ?? {x: [], value: [], state: [], trial: []};
  const states = ['completed', 'stopped', 'failed', 'paused', 'running'];
  const of = (state) => pairs(points.x, points.value, {logY: look.log, extra: (i) => [points.trial[i], points.state[i]]})
    .filter((point) => point[3] === state);
  const chosen = pairs(points.x, points.value, {logY: look.log, extra: (i) => [points.trial[i]]}).filter((point) => point[2] === look.pick);
  const many = points.x.length > 1200;
  // Only the corners of a step chart have data; the line continues to the last trial.
  const line = data.x.map((x, i) => [x, fit(data.value[i], look.log) ?? dash]);
  return {
    ...frame(theme),
    legend: legend(theme, ['best so far', ...states.filter((state) => of(state).length > 0)], {icon: 'circle', itemHeight: 7, itemWidth: 7}),
    tooltip: tooltip(theme, ({value}) => [[`trial ${value[2]}`, value[3]], [short(data.metric, 60), number(value[1])], ...(time ? [['after', duration(value[0])]] : [])]),
    xAxis: valueAxis(theme, {side: 'x', name: time ? 'time since the start' : 'trial', format, integer: !time, scale: false, max: 'dataMax'}),
    yAxis: valueAxis(theme, {name: `${short(data.metric, 32)} (${data.mode})`, log: look.log}),
    series: [
      ...states.map((state) => ({
        type: 'scatter', id: state, name: state, data: of(state), symbolSize: many ? 3 : 5, z: 2, large: false,
        itemStyle: {color: theme.states[state], opacity: state === 'stopped' ? 0.55 : 0.75},
        emphasis: {itemStyle: {opacity: 1, borderColor: theme.ink, borderWidth: 1}},
      })),
      {
        // Its corners are trials; the points below the line take the clicks.
        type: 'line', id: 'best', name: 'best so far', silent: true, data: line, step: 'end', symbol: line.length < 60 ? 'circle' : 'none', symbolSize: 5, z: 5,
        lineStyle: {color: theme.best, width: 2}, itemStyle: {color: theme.best}, connectNulls: true,
      },
      picked(theme, chosen),
    ],
  };
}

// Several experiments in one chart. data: [{name, objective}]; look: {x, log, metric}
export function compareChart(data, theme, look = {}) {
  const time = look.x === 'time';
  const format = time ? duration : count;
  return {
    ...frame(theme),
    color: theme.series,
    legend: legend(theme, data.map((one) => one.name)),
    tooltip: tooltip(theme, ({value, seriesName}) => [[short(seriesName, 60), ''], [look.metric, number(value[1])], [time ? 'after' : 'trial', format(value[0])]]),
    xAxis: valueAxis(theme, {side: 'x', name: time ? 'time since the start' : 'trial', format, integer: !time, scale: false, log: look.logX}),
    yAxis: valueAxis(theme, {name: `best ${short(look.metric, 32)} so far`, log: look.log}),
    series: data.map((one, i) => ({
      type: 'line', id: `of ${i}`, name: one.name, step: 'end', symbol: 'circle', symbolSize: 4, showSymbol: one.objective.x.length < 200,
      data: pairs(one.objective.x, one.objective.value, {logX: look.logX, logY: look.log}),
      lineStyle: {width: 2, color: theme.series[i % theme.series.length]}, itemStyle: {color: theme.series[i % theme.series.length]},
    })),
  };
}
