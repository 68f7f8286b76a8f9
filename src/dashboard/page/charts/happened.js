// What happened: trials by host and slot, how many slots were busy, a population's lineage and parameter schedules.
import {edge, fit, frame, legend, tooltip, valueAxis} from './base.js';
import {clock, count, duration, number, setting, short} from '../format.js';

export const kinds = ['running', 'completed', 'stopped', 'paused', 'preempted', 'failed', 'lost'];

// A short run shows the time since its start, because the time of day would be the same on all marks. A long one shows
// the time of day, with fractions of a second if zoomed in that far. `span`: the visible range.
const timeAxis = (theme, origin, {span, ...options}) => {
  const seen = span ?? options.max - options.min;
  const parts = seen < 0.5 ? 3 : seen < 5 ? 2 : 1;
  const fine = (unix) => {
    const rounded = Math.round(unix * 10 ** parts) / 10 ** parts;
    return clock(rounded) + (rounded % 1).toFixed(parts).slice(1);
  };
  const shown = (seconds) => (origin < 1e8 || options.max < 10 ? duration(seconds) : seen < 10 ? fine(origin + seconds) : clock(origin + seconds));
  // The end of a run is no round time: rounded, it would repeat the mark before it.
  const format = (seconds) => (options.max - seconds < seen * 1e-9 ? '' : shown(seconds));
  return valueAxis(theme, {side: 'x', format, scale: true, minInterval: 0.001, ...options});
};

// Times are drawn as seconds since `look.origin`. data: /api/timeline; look: {origin, from, to, pick, height of a lane}
export function timelineChart(data, theme, look = {}) {
  const origin = look.origin ?? 0;
  const {lane, trial, start, end, kind} = data.segments;
  const rows = trial.map((number, i) => [start[i] - origin, end[i] - origin, lane[i], number, kind[i]]);
  const hosts = new Map();
  data.lanes.forEach((one, i) => hosts.set(one.host, [...(hosts.get(one.host) ?? []), i]));
  const name = (i) => {
    const one = data.lanes[i];
    return one ? (hosts.get(one.host)[0] === i ? `${short(one.host, 18)}  ${one.slot}` : String(one.slot)) : '';
  };
  const marks = (data.hosts ?? []).flatMap((host) => [['lost', host.lost], ['gained', host.gained]]
    .filter(([, when]) => when !== null && when !== undefined && hosts.has(host.host))
    .map(([what, when]) => [when - origin, hosts.get(host.host)[0], hosts.get(host.host).length, what, host.host, host.why]));
  return {
    ...frame(theme, {grid: {top: 8}}),
    tooltip: tooltip(theme, ({value, seriesId}) => (seriesId === 'hosts'
      ? [[short(value[4], 40), value[3]], ['at', clock(origin + value[0])], ...(value[5] ? [['why', short(value[5], 80)]] : [])]
      : [[`trial ${value[3]}`, value[4] === 'pause' ? 'paused' : value[4]], ['from', clock(origin + value[0])], ['for', duration(value[1] - value[0])], ['on', `${short(data.lanes[value[2]]?.host ?? '', 30)}, slot ${data.lanes[value[2]]?.slot}`]])),
    xAxis: timeAxis(theme, origin, {min: look.from, max: look.to, span: look.span, name: '', position: 'bottom'}),
    yAxis: {
      type: 'value', inverse: true, min: -0.5, max: Math.max(0.5, data.lanes.length - 0.5), interval: 1, axisLine: {show: false}, axisTick: {show: false},
      splitLine: {show: false},
      axisLabel: {color: theme.ink2, fontSize: 10.5, formatter: name, customValues: data.lanes.length <= 60 ? data.lanes.map((_, i) => i) : [...hosts.values()].map(([first]) => first)},
    },
    series: [
      {
        type: 'custom', id: 'lanes', silent: true, z: 0, data: [...hosts.values()].map((own) => [0, own[0], own.length]), encode: {x: -1, y: -1}, tooltip: {show: false},
        renderItem: (params, api) => {
          const {x, width} = params.coordSys;
          const y = api.coord([0, api.value(1) - 0.5])[1];
          return {type: 'line', shape: {x1: x, y1: y, x2: x + width, y2: y}, style: {stroke: theme.line, lineWidth: 1}};
        },
      },
      {
        type: 'custom', id: 'segments', z: 2, data: rows, encode: {x: [0, 1], y: 2}, clip: true, dimensions: [null, null, null, null, {name: 'kind', type: 'ordinal'}],
        renderItem: (params, api) => {
          const row = rows[params.dataIndex];
          const [x0, y] = api.coord([row[0], row[2]]);
          const [x1] = api.coord([row[1], row[2]]);
          const height = Math.max(2, Math.min(22, Math.abs(api.size([0, 1])[1]) * 0.72));
          const left = Math.max(x0, params.coordSys.x);
          const right = Math.min(x1, params.coordSys.x + params.coordSys.width);
          const width = Math.max(1.5, right - left - (right - left > 4 ? 1 : 0));
          const fill = theme.states[row[4]] ?? theme.states.stopped;
          const chosen = row[3] === look.pick;
          const label = String(row[3]);
          return {
            type: 'rect', shape: {x: left, y: y - height / 2, width, height, r: Math.min(2, width / 3)},
            style: {fill, opacity: row[4] === 'pause' ? 0.9 : look.pick === undefined || look.pick === null || chosen ? 1 : 0.55, stroke: chosen ? theme.ink : null, lineWidth: chosen ? 2 : 0},
            textContent: width > Math.max(26, 10 + 6.5 * label.length) ? {style: {text: label, fill: row[4] === 'pause' || row[4] === 'pending' ? theme.ink2 : theme.panel, fontSize: 10}} : undefined,
            textConfig: {position: 'inside'},
          };
        },
      },
      {
        type: 'custom', id: 'hosts', z: 4, data: marks, encode: {x: 0, y: 1}, clip: true,
        renderItem: (params, api) => {
          const row = marks[params.dataIndex];
          const [x, y0] = api.coord([row[0], row[1] - 0.5]);
          const [, y1] = api.coord([row[0], row[1] + row[2] - 0.5]);
          return {type: 'line', shape: {x1: x, y1: y0, x2: x, y2: y1}, style: {stroke: row[3] === 'lost' ? theme.bad : theme.states.running, lineWidth: 1.5, lineDash: row[3] === 'lost' ? null : [3, 3]}};
        },
      },
    ],
  };
}

// data: `use` of /api/timeline; look: {origin, from, to}
export function useChart(data, theme, look = {}) {
  const origin = look.origin ?? 0;
  const row = (key) => data.time.map((time, i) => [time - origin, data[key][i]]);
  return {
    ...frame(theme),
    legend: legend(theme, ['busy', 'slots', 'pending']),
    tooltip: tooltip(theme, (points) => (points.length === 0 ? [] : [['at', clock(origin + points[0].value[0])], ...points.map((point) => [point.seriesName, number(point.value[1], 3)])]), {trigger: 'axis'}),
    xAxis: timeAxis(theme, origin, {min: look.from, max: look.to}),
    yAxis: valueAxis(theme, {name: 'slots, trials', scale: false, integer: true, format: count}),
    series: [
      {type: 'line', id: 'busy', name: 'busy', step: 'end', symbol: 'none', data: row('busy'), lineStyle: {width: 0}, itemStyle: {color: theme.states.running}, areaStyle: {color: theme.states.running, opacity: 0.55}},
      {type: 'line', id: 'slots', name: 'slots', step: 'end', symbol: 'none', data: row('slots'), lineStyle: {color: theme.ink2, width: 1.25}, itemStyle: {color: theme.ink2}},
      {type: 'line', id: 'pending', name: 'pending', step: 'end', symbol: 'none', data: row('pending'), lineStyle: {color: theme.states.paused, width: 1.25, type: [4, 3]}, itemStyle: {color: theme.states.paused}},
    ],
  };
}

// Which trial took whose weights. data: {population: [...], rows: [trial]}; look: {pick}
export function lineageChart(data, theme, look = {}) {
  const place = new Map(data.rows.map((trial, i) => [trial, i]));
  const events = data.population.filter((event) => place.has(event.trial));
  const points = events.map((event) => [event.step, place.get(event.trial), event.trial, event.donor, event.changes]);
  const arrows = events.filter((event) => place.has(event.donor) && event.donor !== event.trial).map((event) => [event.step, place.get(event.donor), place.get(event.trial), event.trial, event.donor]);
  return {
    ...frame(theme),
    tooltip: tooltip(theme, ({value}) => [[`trial ${value[2]}`, `step ${count(value[0])}`], ...(value[3] === null || value[3] === undefined ? [] : [['went on from', `trial ${value[3]}`]]),
      ...Object.entries(value[4] ?? {}).slice(0, 8).map(([key, [from, to]]) => [short(key, 24), `${short(setting(from), 20)} → ${short(setting(to), 20)}`])]),
    xAxis: valueAxis(theme, {side: 'x', name: 'step', format: count, integer: true, scale: false}),
    yAxis: {...valueAxis(theme, {name: 'member', scale: false}), inverse: true, nameLocation: 'start', min: -0.5, max: Math.max(0.5, data.rows.length - 0.5), interval: 1, splitLine: {show: data.rows.length <= 60, ...edge(theme)},
      axisLabel: {color: theme.ink3, fontSize: 10.5, customValues: data.rows.length <= 40 ? data.rows.map((_, i) => i) : undefined, formatter: (i) => (Number.isInteger(i) && data.rows[i] !== undefined ? String(data.rows[i]) : '')}},
    series: [
      {
        type: 'custom', id: 'arrows', z: 1, data: arrows, encode: {x: 0, y: [1, 2]}, silent: true, clip: true, tooltip: {show: false},
        renderItem: (params, api) => {
          const row = arrows[params.dataIndex];
          const [x, y0] = api.coord([row[0], row[1]]);
          const [, y1] = api.coord([row[0], row[2]]);
          const bend = Math.min(26, Math.abs(y1 - y0) * 0.25 + 6);
          const chosen = look.pick === row[3] || look.pick === row[4];
          return {type: 'bezierCurve', shape: {x1: x, y1: y0, x2: x, y2: y1, cpx1: x - bend, cpy1: (y0 + y1) / 2},
            style: {stroke: chosen ? theme.best : theme.ink3, fill: null, lineWidth: chosen ? 2 : 1, opacity: look.pick === undefined || look.pick === null || chosen ? 0.75 : 0.25}};
        },
      },
      {type: 'scatter', id: 'takers', z: 3, data: points, symbolSize: 7, itemStyle: {color: ({value}) => (value[2] === look.pick ? theme.best : theme.accent), borderColor: theme.panel, borderWidth: 1}},
    ],
  };
}

// The values that a parameter had in each member: {trial: [[step, value]]}. `now`: {trial: the present value}
export function schedules(population, name, now, last) {
  const out = new Map();
  for (const event of [...population].sort((a, b) => a.step - b.step)) {
    const change = event.changes?.[name];
    if (!change) continue;
    if (!out.has(event.trial)) out.set(event.trial, [[0, change[0]]]);
    out.get(event.trial).push([event.step, change[1]]);
  }
  for (const [trial, value] of now) if (!out.has(trial)) out.set(trial, [[0, value]]);
  for (const line of out.values()) line.push([Math.max(last, line[line.length - 1][0]), line[line.length - 1][1]]);
  return out;
}

// data: Map of trial to [[step, value]]; look: {name, log, pick, best}
export function scheduleChart(data, theme, look = {}) {
  const lines = [...data.entries()];
  const colour = (trial, i) => (trial === look.pick ? theme.ink : trial === look.best ? theme.best : theme.series[i % theme.series.length]);
  return {
    ...frame(theme),
    tooltip: tooltip(theme, ({value, seriesName}) => [[seriesName, ''], [short(look.name, 40), number(value[1])], ['from step', count(value[0])]]),
    xAxis: valueAxis(theme, {side: 'x', name: 'step', format: count, integer: true, scale: false}),
    yAxis: valueAxis(theme, {name: look.name, log: look.log}),
    series: lines.map(([trial, line], i) => ({
      type: 'line', id: `member ${trial}`, name: `trial ${trial}`, step: 'end', symbol: 'circle', symbolSize: 4, triggerLineEvent: true,
      data: line.map(([step, value]) => [step, fit(value, look.log), trial]).filter((point) => point[1] !== null), z: trial === look.pick || trial === look.best ? 5 : 2,
      lineStyle: {width: trial === look.best || trial === look.pick ? 2.25 : 1.25, color: colour(trial, i), opacity: trial === look.best || trial === look.pick ? 1 : 0.6}, itemStyle: {color: colour(trial, i)},
    })),
  };
}
