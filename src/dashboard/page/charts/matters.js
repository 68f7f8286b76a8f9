// What matters: importance, slices, contour and rank of two parameters, one metric against another, the distribution.
import {frame, legend, mix, pairs, picked, scaleAxis, scaleOf, tooltip, valueAxis, fit} from './base.js';
import {grid, levels} from './surface.js';
import {finite, number, setting, share, short} from '../format.js';

// data: /api/importance; look: {chosen}
export function importanceChart(data, theme, look = {}) {
  const rows = [...data.importance].filter((row) => finite(row.value) !== null).sort((a, b) => a.value - b.value);
  return {
    ...frame(theme, {grid: {top: 4, right: 44}}),
    tooltip: tooltip(theme, ({data: row}) => [[short(row.key, 60), ''], ['share of the variance', share(row.value)]]),
    xAxis: valueAxis(theme, {side: 'x', scale: false, min: 0, axisLabel: {show: false}, axisLine: {show: false}}),
    yAxis: {type: 'category', data: rows.map((_, i) => i), axisLine: {show: false}, axisTick: {show: false},
      axisLabel: {color: theme.ink2, fontSize: 11.5, formatter: (i) => short(rows[i]?.name ?? '', 22)}},
    series: [{
      type: 'bar', id: 'importance', barMaxWidth: 18, barCategoryGap: '30%',
      data: rows.map((row) => ({value: row.value, key: row.name, itemStyle: {color: theme.accent, opacity: !look.chosen || look.chosen.includes(row.name) ? 1 : 0.45, borderRadius: 2}})),
      label: {show: true, position: 'right', color: theme.ink2, fontSize: 11, formatter: ({data: row}) => share(row.value)},
    }],
  };
}

const tip = (theme, names, rows) => tooltip(theme, ({value}) => [[`trial ${value[2]}`, ''], ...rows(value).map((text, i) => [short(names[i], 40), text])]);

// A small chart for each parameter: its values against the metric. data: {trial, parameters, columns: [[]], values};
// look: {metric, log, pick, columns}
export function sliceChart(data, theme, look = {}) {
  const n = data.parameters.length;
  const columns = Math.max(1, Math.min(look.columns ?? 4, n));
  const lines = Math.ceil(n / columns);
  const last = Math.max(1, ...data.trial);
  const part = {x: 100 / columns, y: 100 / lines};
  const scales = data.parameters.map(scaleOf);
  const points = data.parameters.map((_, k) => pairs(data.columns[k].map(scales[k].at), data.values, {logY: look.log, extra: (i) => [data.trial[i], data.columns[k][i]]}));
  return {
    ...frame(theme),
    tooltip: tooltip(theme, ({value, seriesIndex}) => [[`trial ${value[2]}`, ''], [short(data.parameters[seriesIndex % Math.max(1, n)].name, 40), short(setting(value[3]), 60)], [short(look.metric, 40), number(value[1])]]),
    grid: data.parameters.map((_, k) => ({
      left: `${(k % columns) * part.x}%`, width: `${part.x - (columns > 1 ? 1.2 : 0)}%`, top: `${Math.floor(k / columns) * part.y + 1}%`, height: `${part.y - 2}%`,
      outerBoundsMode: 'same', outerBoundsContain: 'all',
    })),
    xAxis: data.parameters.map((parameter, k) => ({...scaleAxis(theme, scales[k], {side: 'x', name: short(parameter.name, 26), nameGap: 22}), gridIndex: k})),
    yAxis: data.parameters.map((_, k) => ({...valueAxis(theme, {log: look.log, name: k === 0 ? '' : ''}), gridIndex: k})),
    series: [
      ...data.parameters.map((parameter, k) => ({
        type: 'scatter', id: `slice ${k}`, xAxisIndex: k, yAxisIndex: k, symbolSize: data.trial.length > 800 ? 3 : 5,
        data: points[k], itemStyle: {color: ({value}) => mix(theme, 0.25 + 0.75 * (value[2] / last)), opacity: 0.8},
      })),
      ...data.parameters.map((parameter, k) => ({...picked(theme, points[k].filter((point) => point[2] === look.pick)), id: `picked ${k}`, xAxisIndex: k, yAxisIndex: k})),
    ],
  };
}

// Ranks from 0 (worst) to 1 (best); equal values get the mean of their ranks.
export function ranks(values, mode) {
  const known = values.map((value, i) => [finite(value), i]).filter(([value]) => value !== null);
  known.sort((a, b) => (mode === 'min' ? b[0] - a[0] : a[0] - b[0]));
  const out = values.map(() => null);
  for (let i = 0; i < known.length;) {
    let end = i + 1;
    while (end < known.length && known[end][0] === known[i][0]) end += 1;
    const rank = known.length < 2 ? 1 : (i + end - 1) / 2 / (known.length - 1);
    for (; i < end; i += 1) out[known[i][1]] = rank;
  }
  return out;
}

const surfaceOf = (points, sx, sy, look) => {
  const surface = grid(points.map((point) => [point[0], point[1], point[3]]), {low: [sx.low, sy.low], high: [sx.high, sy.high]});
  return surface ? levels(surface, look.mode === 'min', 9) : null;
};

// Two parameters and a metric. data: {trial, x: {parameter, values}, y: {parameter, values}, values}; look: {kind: 'contour'|'rank', metric, mode, pick}
export function pairChart(data, theme, look = {}) {
  const sx = scaleOf(data.x.parameter);
  const sy = scaleOf(data.y.parameter);
  const rank = ranks(data.values, look.mode);
  const names = [data.x.parameter.name, data.y.parameter.name, look.metric];
  const points = pairs(data.x.values.map(sx.at), data.y.values.map(sy.at), {extra: (i) => [data.trial[i], data.values[i], rank[i], data.x.values[i], data.y.values[i]]})
    .filter((point) => finite(point[3]) !== null);
  const contour = look.kind !== 'rank';
  const cells = (contour && surfaceOf(points, sx, sy, look)?.cells) || [];
  return {
    ...frame(theme, {}),
    tooltip: tip(theme, names, (value) => [short(setting(value[5]), 40), short(setting(value[6]), 40), number(value[3])]),
    xAxis: scaleAxis(theme, sx, {side: 'x', name: names[0]}),
    yAxis: scaleAxis(theme, sy, {name: names[1]}),
    series: [
      {
        type: 'custom', id: 'surface', silent: true, z: 1, data: cells, encode: {x: [0, 1], y: [2, 3]}, tooltip: {show: false}, clip: true,
        renderItem: (params, api) => {
          const a = api.coord([api.value(0), api.value(2)]);
          const b = api.coord([api.value(1), api.value(3)]);
          const x = Math.min(a[0], b[0]);
          const y = Math.min(a[1], b[1]);
          return {type: 'rect', shape: {x, y, width: Math.abs(a[0] - b[0]) + 0.7, height: Math.abs(a[1] - b[1]) + 0.7}, style: {fill: mix(theme, api.value(4))}};
        },
      },
      {
        type: 'scatter', id: 'trials', z: 3, data: points, symbolSize: contour ? (points.length > 500 ? 3 : 5) : 7,
        itemStyle: contour ? {color: theme.panel, borderColor: theme.ink, borderWidth: 0.8, opacity: 0.75} : {color: ({value}) => mix(theme, value[4]), borderColor: theme.ink3, borderWidth: 0.4},
      },
      picked(theme, points.filter((point) => point[2] === look.pick)),
    ],
  };
}

// The values at the ends of pairChart's colours, from worst to best: for a legend beside it.
export function pairLegend(data, look = {}) {
  const known = data.values.map(finite).filter((value) => value !== null).sort((a, b) => a - b);
  if (known.length === 0) return null;
  const ends = [known[0], known[known.length - 1]];
  return look.mode === 'min' ? ends.reverse() : ends;
}

// data: {trial, state, x, y}; look: {x, y, logX, logY, pick, front: [[x, y, trial]] | null}
export function againstChart(data, theme, look = {}) {
  const extra = {logX: look.logX, logY: look.logY, extra: (i) => [data.trial[i], data.state[i]]};
  const points = pairs(data.x, data.y, extra);
  return {
    ...frame(theme),
    tooltip: tip(theme, [look.x, look.y, 'state'], (value) => [number(value[0]), number(value[1]), value[3]]),
    xAxis: valueAxis(theme, {side: 'x', name: look.x, log: look.logX}),
    yAxis: valueAxis(theme, {name: look.y, log: look.logY}),
    series: [
      {
        type: 'scatter', id: 'trials', data: points, symbolSize: points.length > 1200 ? 3 : 5,
        itemStyle: {color: ({value}) => theme.states[value[3]], opacity: 0.7},
      },
      picked(theme, points.filter((point) => point[2] === look.pick)),
    ],
  };
}

// data: [{name, value: [], share: []}]; look: {metric, log}
export function edfChart(data, theme, look = {}) {
  return {
    ...frame(theme),
    color: theme.series,
    legend: legend(theme, data.map((one) => one.name)),
    tooltip: tooltip(theme, ({value, seriesName}) => [...(data.length > 1 ? [[short(seriesName, 60), '']] : []), [`trials up to ${number(value[0])}`, share(value[1])]]),
    xAxis: valueAxis(theme, {side: 'x', name: look.metric, log: look.log}),
    yAxis: valueAxis(theme, {name: 'share of trials', min: 0, max: 1, interval: 0.25, format: share}),
    series: data.map((one, i) => ({
      type: 'line', id: `edf ${i}`, name: one.name, step: 'end', symbol: 'circle', symbolSize: 4, showSymbol: one.value.length < 40,
      data: one.value.map((value, k) => [fit(value, look.log), one.share[k]]).filter(([value]) => value !== null),
      lineStyle: {color: theme.series[i % theme.series.length], width: 1.75}, itemStyle: {color: theme.series[i % theme.series.length]},
    })),
  };
}
