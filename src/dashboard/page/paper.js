// Adds to an exported chart a title, and a legend of its colours if the page shows them outside of the chart.
import {fit, mix} from './charts/base.js';
import {themes} from './theme.js';

// Widths of Helvetica's characters from space to tilde, in thousandths of the font size. There is no font here to
// measure; ECharts' estimate is too wide for digits and too narrow for capitals.
const widths = [278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
  1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
  333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584];

export function textWidth(text, size) {
  let sum = 0;
  for (const character of String(text)) {
    const code = character.codePointAt(0);
    sum += code >= 32 && code < 127 ? widths[code - 32] : code === 0x202f ? 200 : code === 0x2212 ? 584 : code >= 0x1100 ? 1000 : 600;
  }
  return (sum * size) / 1000;
}

// The light theme, with darker text than on a screen.
export const paperTheme = (font) => ({...themes.light, font: font || 'Helvetica, Arial, Liberation Sans, sans-serif', panel: '#ffffff', ink: '#111417', ink2: '#2b3036', ink3: '#464c53', line: '#b9bdb8', line2: '#e4e5e1'});

const escaped = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');

const textAt = (theme, x, y, text, {size = 11, anchor = 'start', weight = 'normal', color = theme.ink2} = {}) => `<text x="${x}" y="${y}" font-family="${escaped(theme.font)}" font-size="${size}" font-weight="${weight}" fill="${color}" text-anchor="${anchor}">${escaped(text)}</text>`;

// A legend is a function of the available width to {height, svg}.

// A colour bar from bad to good, with a label at each end.
export function keyOfColours(theme, ends, {title = '', from = 0, steps = 24} = {}) {
  return (width) => {
    const bar = Math.min(160, Math.max(60, width * 0.25));
    const [low, high] = ends.map((end) => textWidth(end, 11));
    const lead = title ? textWidth(title, 11) + 12 : 0;
    const total = lead + low + bar + high + 12;
    let x = Math.max(4, width - 14 - total);
    let svg = '';
    if (lead > 0) svg += textAt(theme, x, 15, title);
    x += lead;
    svg += textAt(theme, x, 15, ends[0]);
    x += low + 6;
    for (let i = 0; i < steps; i += 1) {
      svg += `<rect x="${(x + (bar * i) / steps).toFixed(2)}" y="6" width="${(bar / steps + (i + 1 < steps ? 0.3 : 0)).toFixed(2)}" height="9" fill="${mix(theme, from + ((1 - from) * i) / (steps - 1))}"/>`;
    }
    svg += textAt(theme, x + bar + 6, 15, ends[1]);
    return {height: 24, svg};
  };
}

// The colours of trial states.
export function keyOfStates(theme, states, {best = false, median = false, cut = false, dots = false, boxes = false} = {}) {
  const order = ['completed', 'stopped', 'failed', 'running', 'paused', 'pending', 'preempted', 'lost', 'pause'];
  const entries = [...(best ? [['best', theme.best, 'line']] : []),
    ...order.filter((state) => states.includes(state)).map((state) => [state === 'pause' ? 'paused' : state, theme.states[state], dots ? 'dot' : boxes ? 'box' : 'line']),
    ...(median ? [['median', theme.ink, 'dash'], ['10–90 %', theme.accent, 'band']] : []), ...(cut ? [['cut', theme.bad, 'cross']] : [])];
  return keyOfMarks(theme, entries);
}

// entries: [[text, colour, shape]]; wrapped into as many lines as necessary.
export function keyOfMarks(theme, entries) {
  const mark = {
    line: (x, color) => `<path d="M${x} 11h14" stroke="${color}" stroke-width="2"/>`,
    dash: (x, color) => `<path d="M${x} 11h14" stroke="${color}" stroke-width="1.5" stroke-dasharray="5 3"/>`,
    band: (x, color) => `<rect x="${x}" y="6" width="14" height="10" fill="${color}" fill-opacity="0.15"/>`,
    box: (x, color) => `<rect x="${x}" y="6" width="14" height="10" rx="2" fill="${color}"/>`,
    dot: (x, color) => `<circle cx="${x + 7}" cy="11" r="3.5" fill="${color}"/>`,
    cross: (x, color) => `<path d="M${x + 4} 8l6 6m0-6l-6 6" stroke="${color}" stroke-width="1.2"/>`,
  };
  return (width) => {
    const lines = [[]];
    let x = 0;
    for (const entry of entries) {
      const own = 20 + textWidth(entry[0], 11) + 14;
      if (x + own > width - 20 && lines.at(-1).length > 0) {
        lines.push([]);
        x = 0;
      }
      lines.at(-1).push([x, entry]);
      x += own;
      lines.at(-1).width = x - 14;
    }
    const svg = lines.map((line, row) => line.map(([at, [text, color, shape]]) => {
      const left = Number((Math.max(4, width - 14 - line.width) + at).toFixed(2));
      return `<g transform="translate(0 ${row * 18})">${mark[shape](left, color)}${textAt(theme, Number((left + 20).toFixed(2)), 15, text)}</g>`;
    }).join('')).join('');
    return {height: entries.length === 0 ? 0 : 6 + 18 * lines.length, svg};
  };
}

// The marks of a logarithmic axis from `low` to `high`: powers of ten and as many multiples as necessary, or evenly
// spaced marks in a short range.
export function logMarks(low, high) {
  const inside = (mark) => mark >= low * (1 - 1e-9) && mark <= high * (1 + 1e-9);
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  for (const parts of [[1], [1, 3], [1, 2, 5], [1, 2, 3, 5, 7]]) {
    const marks = [];
    for (let power = first; power <= last; power += parts.length > 1 ? 1 : Math.max(1, Math.ceil((last - first) / 7))) {
      for (const part of parts) marks.push(Number(`${part}e${power}`));
    }
    const fitting = marks.filter(inside);
    if (fitting.length > 2) return fitting;
  }
  const rough = (high - low) / 4;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((part) => part * unit).findLast((one) => one <= rough * 1.2) ?? unit;
  const out = [];
  for (let mark = Math.ceil(low / step) * step; inside(mark) && out.length < 20; mark += step) out.push(Number(mark.toPrecision(8)));
  return out;
}

// On paper a logarithmic axis ends at its least and greatest value. On the screen it ends at powers of ten, for
// zooming; with less than one decade that would leave hardly any mark.
export function fitLogAxes(option) {
  for (const [at, key] of ['xAxis', 'yAxis'].entries()) {
    [option[key]].flat().forEach((axis, index) => {
      if (axis?.type !== 'log') return;
      const values = option.series.filter((series) => series.type !== 'custom' && (series[`${key}Index`] ?? 0) === index)
        .flatMap((series) => series.data.map((item) => fit((item.value ?? item)[at], true))).filter((value) => value !== null);
      const [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      if (!(high > low)) return;
      const pad = (high / low) ** 0.03;
      const marks = logMarks(low / pad, high * pad);
      if (marks.length < 2) return;
      Object.assign(axis, {min: low / pad, max: high * pad, axisTick: {show: false, customValues: marks}});
      axis.axisLabel = {...axis.axisLabel, customValues: marks, showMaxLabel: true};
    });
  }
}

// Composes the picture: title, legend, chart.
export function composeSvg(echarts, option, key, theme, {width, height, title}) {
  echarts.setPlatformAPI({measureText: (text, font) => ({width: textWidth(text, Number(/([\d.]+)px/.exec(font ?? '')?.[1] ?? 12) * (/bold/.test(font ?? '') ? 1.06 : 1))})});
  let top = 0;
  let around = '';
  if (title) {
    const size = Math.max(8, Math.min(15, (15 * (width - 16)) / Math.max(1, textWidth(title, 15 * 1.06))));
    around += textAt(theme, width / 2, 20, title, {size: Number(size.toFixed(2)), anchor: 'middle', weight: 'bold', color: theme.ink});
    top += 28;
  }
  const made = key?.(width);
  if (made && made.height > 0) {
    around += `<g transform="translate(0 ${top})">${made.svg}</g>`;
    top += made.height;
  }
  fitLogAxes(option);
  const chart = echarts.init(null, null, {renderer: 'svg', ssr: true, width, height: Math.max(80, height - top)});
  let svg;
  try {
    chart.setOption({...option, animation: false, backgroundColor: 'transparent'});
    svg = chart.renderToSVGString();
  } finally {
    chart.dispose();
  }
  const inner = svg.slice(svg.indexOf('>') + 1, svg.lastIndexOf('</svg>'));
  const whole = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.1" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">\n`
    + `<rect width="${width}" height="${height}" fill="#ffffff"/>\n${around}${around === '' ? '' : '\n'}<g transform="translate(0 ${top})">${inner}</g>\n</svg>\n`;
  // Names can contain characters that XML does not allow.
  // eslint-disable-next-line no-control-regex
  return whole.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');
}
