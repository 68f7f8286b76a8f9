// Trade-offs: the Pareto front of two objectives, and how its hypervolume grew.
import {frame, legend, pairs, picked, tooltip, valueAxis} from './base.js';
import {count, number, short} from '../format.js';

// The trials that no other trial beats in both objectives. points: [[x, y, ...]]; modes: [x, y]
export function front(points, modes) {
  const sign = modes.map((mode) => (mode === 'min' ? 1 : -1));
  const sorted = [...points].sort((a, b) => sign[0] * (a[0] - b[0]) || sign[1] * (a[1] - b[1]));
  const out = [];
  let best = Infinity;
  for (const point of sorted) {
    if (sign[1] * point[1] < best) {
      best = sign[1] * point[1];
      out.push(point);
    }
  }
  return out;
}

// The front as a staircase. A corner between two of its points has the worse value of both in each objective.
export function stairs(points) {
  const out = [];
  points.forEach((point, i) => {
    if (i > 0) out.push([point[0], points[i - 1][1]]);
    out.push([point[0], point[1]]);
  });
  return out;
}

// data: {trial, state, x, y, members: Set of trials on the front of all objectives | null};
// look: {x, y, modes: [x, y], logX, logY, pick}
export function frontChart(data, theme, look = {}) {
  const all = pairs(data.x, data.y, {logX: look.logX, logY: look.logY, extra: (i) => [data.trial[i], data.state[i]]});
  const line = front(all.filter((point) => point[3] !== 'failed'), look.modes);
  const own = new Set(data.members ?? line.map((point) => point[2]));
  const on = all.filter((point) => own.has(point[2]));
  return {
    ...frame(theme),
    legend: legend(theme, ['on the front', 'the others'], {icon: 'circle', itemHeight: 7, itemWidth: 7}),
    tooltip: tooltip(theme, ({value}) => [[`trial ${value[2]}`, own.has(value[2]) ? 'on the front' : ''], [short(look.x, 40), number(value[0])], [short(look.y, 40), number(value[1])]]),
    xAxis: valueAxis(theme, {side: 'x', name: `${short(look.x, 30)} (${look.modes[0]})`, log: look.logX}),
    yAxis: valueAxis(theme, {name: `${short(look.y, 30)} (${look.modes[1]})`, log: look.logY}),
    series: [
      {type: 'scatter', id: 'others', name: 'the others', data: all.filter((point) => !own.has(point[2])), symbolSize: all.length > 1200 ? 3 : 5, itemStyle: {color: theme.states.stopped, opacity: 0.55}},
      {type: 'line', id: 'stairs', name: 'front', data: stairs(line), symbol: 'none', silent: true, lineStyle: {color: theme.best, width: 1.25, type: [4, 3]}, itemStyle: {color: theme.best}},
      {type: 'scatter', id: 'front', name: 'on the front', data: on, symbolSize: 8, z: 4, itemStyle: {color: theme.best, borderColor: theme.panel, borderWidth: 1}},
      picked(theme, all.filter((point) => point[2] === look.pick)),
    ],
  };
}

// data: {x, value, reference}
export function hypervolumeChart(data, theme) {
  return {
    ...frame(theme),
    tooltip: tooltip(theme, ([point]) => (point ? [['after trials', count(point.value[0])], ['hypervolume', number(point.value[1])]] : []), {trigger: 'axis'}),
    xAxis: valueAxis(theme, {side: 'x', name: 'trials', format: count, integer: true, scale: false, max: 'dataMax'}),
    yAxis: valueAxis(theme, {name: 'hypervolume'}),
    series: [{type: 'line', id: 'hypervolume', step: 'end', symbol: 'none', data: pairs(data.x, data.value), lineStyle: {color: theme.accent, width: 2}, areaStyle: {color: theme.accent, opacity: 0.08}}],
  };
}
