// Functions shared by all charts. A chart is a pure function (data, theme, look) -> ECharts option. `theme.tip(rows)`, if
// set, makes a tooltip of [name, value] rows. src/plot draws the same charts for paper.
import {finite, number, short} from '../format.js';

export const dash = '-';  // ECharts: no value here

export function frame(theme, {grid, click = false} = {}) {
  return {
    animation: false,
    progressive: 0,   // draw everything at once, so that no half-drawn picture is seen or saved
    backgroundColor: 'transparent',
    textStyle: {fontFamily: theme.font, color: theme.ink2, fontSize: 11},
    grid: {left: 6, right: 14, top: 4, bottom: 4, outerBoundsMode: 'same', outerBoundsContain: 'all', ...grid},
    cursor: click ? 'pointer' : 'default',
    series: [],
  };
}

export const edge = (theme, dashed = false) => ({lineStyle: {color: theme.line2, type: dashed ? [3, 3] : 'solid'}});

// The text on an axis, shortened, because names can have any length.
const title = (name) => short(name, 40);

export function valueAxis(theme, {name = '', log = false, side = 'y', format = (value) => number(value, 4), min, max, integer = false, grid = true, ...rest} = {}) {
  const x = side === 'x';
  return {
    type: log ? 'log' : 'value',
    name: title(name),
    nameLocation: x ? 'middle' : 'end',
    nameGap: x ? 26 : 9,
    nameTextStyle: {color: theme.ink2, fontSize: 11, align: x ? 'center' : 'left', padding: x ? 0 : [0, 0, 0, -4]},
    scale: true,
    min: min ?? null,
    max: max ?? null,
    minInterval: integer ? 1 : undefined,
    axisLine: {show: x, onZero: false, lineStyle: {color: theme.line}},
    axisTick: {show: false},
    axisLabel: {color: theme.ink3, fontSize: 10.5, hideOverlap: true, formatter: format, ...(max === 'dataMax' && !integer ? {showMaxLabel: false} : {})},
    splitLine: {show: grid && !x, ...edge(theme)},
    splitNumber: 4,
    ...rest,
  };
}

// Values that are not finite, or not positive on a logarithmic axis, are not drawn; `unfit` counts them.
export const fit = (value, log) => {
  const known = finite(value);
  return known === null || (log && known <= 0) ? null : known;
};

export function unfit(values, log) {
  return values.reduce((sum, value) => sum + (value !== null && value !== undefined && fit(value, log) === null ? 1 : 0), 0);
}

// [[x, y, ...]] of the values that can be drawn. `extra(i)` adds data for tooltips and clicks.
export function pairs(x, y, {logX = false, logY = false, extra = () => []} = {}) {
  const out = [];
  for (let i = 0; i < x.length; i += 1) {
    const a = fit(x[i], logX);
    const b = fit(y[i], logY);
    if (a !== null && b !== null) out.push([a, b, ...extra(i)]);
  }
  return out;
}

export function tooltip(theme, rows, {trigger = 'item'} = {}) {
  if (!theme.tip) return {show: false};
  return {
    show: true,
    trigger,
    confine: true,
    transitionDuration: 0,
    enterable: false,
    padding: 0,
    borderWidth: 0,
    backgroundColor: 'transparent',
    extraCssText: 'box-shadow:none',
    axisPointer: {type: trigger === 'axis' ? 'line' : 'none', lineStyle: {color: theme.ink3, width: 1, type: [2, 3]}},
    formatter: (params) => theme.tip(rows(params)),
  };
}

export function legend(theme, names, {icon = 'roundRect', ...rest} = {}) {
  return {
    show: names.length > 1,
    type: 'scroll',
    top: 0,
    right: 8,
    icon,
    itemWidth: 10,
    itemHeight: 3,
    itemGap: 12,
    data: names,
    formatter: (name) => short(name, 24),
    textStyle: {color: theme.ink2, fontSize: 11},
    inactiveColor: theme.line,
    pageIconColor: theme.ink2,
    pageIconInactiveColor: theme.line,
    pageTextStyle: {color: theme.ink3},
    ...rest,
  };
}

// A colour interpolated from theme.scale; `at` from 0 to 1.
export function mix(theme, at) {
  const stops = theme.scale;
  const place = Math.min(1, Math.max(0, at)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(place));
  const part = place - low;
  const channel = (color, i) => parseInt(color.slice(1 + 2 * i, 3 + 2 * i), 16);
  const of = (i) => Math.round(channel(stops[low], i) * (1 - part) + channel(stops[low + 1], i) * part);
  return `rgb(${of(0)},${of(1)},${of(2)})`;
}

// The ring around the chosen trial.
export function picked(theme, points) {
  return {
    type: 'scatter', id: 'picked', name: 'chosen', data: points, symbolSize: 15, z: 20, silent: true,
    itemStyle: {color: 'transparent', borderColor: theme.ink, borderWidth: 1.5}, tooltip: {show: false},
  };
}

// How the values of a parameter are placed on an axis: numbers as they are or as powers of ten, choices by their index.
export function scaleOf(parameter) {
  const choices = parameter.choices ?? (parameter.kind === 'bool' ? [false, true] : null);
  if (choices) {
    const places = new Map(choices.map((choice, place) => [JSON.stringify(choice), place]));
    return {
      choices,
      log: false,
      ticks: choices.length <= 12 ? choices.map((_, place) => place) : undefined,
      low: -0.5,
      high: choices.length - 0.5,
      at: (value) => places.get(JSON.stringify(value)) ?? null,
      text: (place) => (Number.isInteger(place) && place >= 0 && place < choices.length ? short(choices[place], 16) : ''),
    };
  }
  const log = Boolean(parameter.log);
  const ticks = log ? decades(parameter.low, parameter.high) : undefined;
  const at = (value) => (fit(value, log) === null ? null : log ? Math.log10(value) : value);
  return {
    choices: null,
    log,
    ticks,
    low: at(parameter.low),
    high: at(parameter.high),
    at,
    value: (place) => (log ? 10 ** place : place),
    text: (place) => number(log ? 10 ** place : place, 3),
  };
}

// The marks of a logarithmic axis, in powers of ten: whole powers, and in a short range also 2, 3 and 5 times them.
export function decades(low, high) {
  if (fit(low, true) === null || fit(high, true) === null || high <= low) return undefined;
  const [from, to] = [Math.log10(low), Math.log10(high)];
  const parts = to - from >= 2 ? [1] : to - from >= 1 ? [1, 3] : [1, 2, 5];
  const out = [];
  for (let power = Math.floor(from); power <= Math.ceil(to); power += Math.max(1, Math.ceil((to - from) / 8))) {
    for (const part of parts) {
      const place = power + Math.log10(part);
      if (place >= from - 1e-9 && place <= to + 1e-9) out.push(Number(place.toPrecision(12)));
    }
  }
  return out.length > 1 ? out : undefined;
}

// A narrow chart has no room for a legend beside the name of the axis, so the legend gets a line of its own.
export function narrowed(option) {
  if (option.legend?.show && option.grid && !Array.isArray(option.grid)) option.grid = {...option.grid, top: 24};
  return option;
}

// An axis for a scale from scaleOf().
export function scaleAxis(theme, scale, options) {
  return valueAxis(theme, {
    ...options,
    min: scale.low ?? undefined,
    max: scale.high ?? undefined,
    axisLabel: {color: theme.ink3, fontSize: 10.5, hideOverlap: true, formatter: (place) => scale.text(place), customValues: scale.ticks, ...(scale.ticks ? {} : {showMinLabel: true})},
    axisTick: {show: false, customValues: scale.ticks},   // at the grid lines
  });
}
