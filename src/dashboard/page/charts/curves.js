// The curve of each trial, the spread of all curves, and where trials were stopped early.
import {fit, frame, legend, pairs, tooltip, valueAxis} from './base.js';
import {count, duration, number, short} from '../format.js';

const band = (theme, bands, log) => {
  const rows = bands.x.map((x, i) => [x, fit(bands.p10[i], log), fit(bands.p90[i], log)]).filter((row) => row[1] !== null && row[2] !== null);
  return {
    type: 'custom', id: 'band', name: '10–90 %', data: rows.length > 1 ? [rows[0]] : [], z: 1, silent: true, encode: {x: 0, y: [1, 2]},
    renderItem: (params, api) => {
      const up = rows.map((row) => api.coord([row[0], row[2]]));
      const down = rows.map((row) => api.coord([row[0], row[1]])).reverse();
      return {type: 'polygon', shape: {points: [...up, ...down]}, style: {fill: theme.accent, opacity: 0.1}, clipPath: {
        type: 'rect', shape: {x: params.coordSys.x, y: params.coordSys.y, width: params.coordSys.width, height: params.coordSys.height}}};
    },
    itemStyle: {color: theme.accent, opacity: 0.25},
    // Its edges count for the range of the axis, though nothing is drawn for them.
    tooltip: {show: false},
  };
};

// data: /api/curves, and `cuts` of /api/rungs; look: {metric, x, log, logX, pick, best, bands, lines, cuts}
export function curvesChart(data, theme, look = {}) {
  const time = look.x === 'time';
  const bands = look.bands === false ? null : data.bands;
  const curves = look.lines === false ? [] : data.curves;
  const many = curves.length > 40;
  const format = time ? duration : count;
  // Draw the least important states first, and the best and the chosen trial last.
  const rank = (curve) => (curve.trial === look.pick ? 3 : curve.trial === look.best ? 2 : curve.state === 'stopped' ? 0 : 1);
  const sorted = [...curves].sort((a, b) => rank(a) - rank(b));
  const lines = sorted.map((curve) => {
    const points = pairs(curve.x, curve.value, {logX: look.logX, logY: look.log, extra: () => [curve.trial, curve.state]});
    const front = rank(curve) >= 2;
    return {
      type: 'line', id: `trial ${curve.trial}`, name: `trial ${curve.trial}`, data: points, symbol: 'circle', symbolSize: points.length === 1 ? 4 : 3,
      showSymbol: points.length === 1, z: front ? 6 : 2 + rank(curve), triggerLineEvent: true,
      lineStyle: {color: curve.trial === look.pick ? theme.ink : curve.trial === look.best ? theme.best : theme.states[curve.state], width: front ? 2.25 : 1,
        opacity: front ? 1 : curve.state === 'stopped' ? (many ? 0.35 : 0.55) : (many ? 0.6 : 0.85)},
      itemStyle: {color: curve.trial === look.best ? theme.best : theme.states[curve.state]},
      emphasis: {lineStyle: {width: 2.5, opacity: 1}, disabled: false},
      selectedMode: false,
    };
  });
  const cuts = look.cuts === false || time ? [] : (data.cuts ?? []);
  const drawn = new Set(curves.map((curve) => curve.trial));
  return {
    ...frame(theme),
    legend: legend(theme, []),
    tooltip: tooltip(theme, ({value, seriesId, seriesName, data: point}) => {
      if (seriesId === 'cuts') return [[`trial ${point[2]} was cut`, ''], [look.metric, number(point[1])], ['needed', number(point[3])], ['after steps', count(point[0] + 1)]];
      if (seriesId === 'median') return [['median', ''], [look.metric, number(value[1])], [time ? 'after' : 'step', format(value[0])], ['of trials', count(value[2])]];
      return [[seriesName, value[3] ?? ''], [look.metric, number(value[1])], [time ? 'after' : 'step', format(value[0])]];
    }),
    xAxis: valueAxis(theme, {side: 'x', name: time ? 'time since the trial\'s start' : 'step', format, integer: !time, scale: false, log: look.logX, max: 'dataMax'}),
    yAxis: valueAxis(theme, {name: look.metric, log: look.log}),
    series: [
      ...(bands ? [band(theme, bands, look.log), {
        type: 'line', id: 'median', name: 'median', z: 5, symbol: 'none', data: pairs(bands.x, bands.p50, {logX: look.logX, logY: look.log, extra: (i) => [bands.n[i]]}),
        lineStyle: {color: theme.ink, width: 1.5, type: [5, 3]}, itemStyle: {color: theme.ink},
      }] : []),
      ...lines,
      {
        type: 'scatter', id: 'cuts', name: 'cut', z: 4, symbol: 'path://M-4,-4L4,4M-4,4L4,-4', symbolSize: 5,
        data: pairs(cuts.map((cut) => cut.step), cuts.map((cut) => cut.value), {logX: look.logX, logY: look.log, extra: (i) => [cuts[i].trial, cuts[i].needed]})
          .filter((point) => drawn.has(point[2])),
        itemStyle: {color: 'transparent', borderColor: theme.bad, borderWidth: 1.25, opacity: 0.8},
      },
    ],
  };
}

// How many trials each rung let through. data: /api/rungs
export function rungsChart(data, theme) {
  const rungs = data.rungs;
  const part = (key, color, name = key) => ({
    type: 'bar', id: key, name, stack: 'all', data: rungs.map((rung) => rung[key] ?? 0), barMaxWidth: 34,
    itemStyle: {color, borderColor: theme.panel, borderWidth: 1},
  });
  const rest = rungs.map((rung) => Math.max(0, rung.reached - (rung.promoted ?? 0) - (rung.stopped ?? 0) - (rung.paused ?? 0)));
  return {
    ...frame(theme),
    legend: legend(theme, ['went on', 'stopped', 'paused', 'open'], {itemHeight: 8}),
    tooltip: tooltip(theme, ({dataIndex}) => {
      const rung = rungs[dataIndex];
      return [[`rung of ${count(rung.step)} steps`, ''], ['reached', count(rung.reached)], ['went on', count(rung.promoted)], ['stopped', count(rung.stopped)],
        ...(rung.paused ? [['paused', count(rung.paused)]] : []), ...(rung.threshold === null || rung.threshold === undefined ? [] : [['threshold now', number(rung.threshold)]])];
    }),
    xAxis: {...valueAxis(theme, {side: 'x', name: 'steps done'}), type: 'category', data: rungs.map((rung) => count(rung.step)), axisLabel: {color: theme.ink3, fontSize: 10.5}},
    yAxis: valueAxis(theme, {name: 'trials', scale: false, integer: true}),
    series: [
      part('promoted', theme.states.completed, 'went on'), part('stopped', theme.states.stopped), part('paused', theme.states.paused),
      {...part('open', theme.states.pending), data: rest},
    ],
  };
}

// One trial's curve of one metric, with the starts of its attempts. data: {step, time, value, marks: [x]}; look: {x, log, metric}
export function trialCurve(data, theme, look = {}) {
  const time = look.x === 'time';
  const points = pairs(time ? data.time : data.step, data.value, {logY: look.log});
  return {
    ...frame(theme),
    tooltip: tooltip(theme, ([point]) => (point ? [[time ? 'after' : 'step', time ? duration(point.value[0]) : count(point.value[0])], [look.metric, number(point.value[1])]] : []), {trigger: 'axis'}),
    xAxis: valueAxis(theme, {side: 'x', name: time ? 'time since its start' : 'step', format: time ? duration : count, integer: !time, scale: false, max: data.value.length > 1 ? 'dataMax' : null}),
    yAxis: valueAxis(theme, {name: short(look.metric, 40), log: look.log}),
    series: [{
      type: 'line', id: 'curve', data: points, symbol: 'circle', symbolSize: 4, showSymbol: points.length < 60,
      lineStyle: {color: theme.accent, width: 1.75}, itemStyle: {color: theme.accent},
      markLine: {silent: true, symbol: 'none', label: {show: false}, lineStyle: {color: theme.ink3, type: [2, 3]}, data: (data.marks ?? []).map((x) => ({xAxis: x}))},
    }],
  };
}
