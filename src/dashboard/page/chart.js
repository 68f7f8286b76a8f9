// A chart on the page: drawn by a pure function, zoomed by dragging, saved as SVG or PNG, redrawn when data or theme
// change.
import {h, hint, save} from './dom.js';
import {themes} from './theme.js';
import {narrowed} from './charts/base.js';

let loading = null;

// The library has a megabyte and is loaded separately, so that the page shows text before it arrives.
function library() {
  loading ??= new Promise((resolve, reject) => {
    if (globalThis.echarts) {
      resolve(globalThis.echarts);
      return;
    }
    const wait = (script, failed) => {
      script.addEventListener('load', () => resolve(globalThis.echarts));
      script.addEventListener('error', failed);
    };
    const again = () => {
      const script = h('script', {src: 'vendor/echarts/echarts.min.js'});
      wait(script, () => {
        loading = null;
        reject(new Error('The chart library could not be loaded.'));
      });
      document.head.append(script);
    };
    // The document loads it first; if that failed before there was a listener, load it again.
    const first = document.getElementById('chart-library');
    if (!first || performance.getEntriesByName(first.src).some((entry) => entry.responseStatus === 0)) again();
    else wait(first, again);
  });
  return loading;
}

// Converts [name, value] rows to elements; the first row is the title.
export function tip(rows) {
  return h('div', {class: 'tip'}, rows.map(([key, value], i) => h('div', {class: i === 0 ? 'tip-title' : 'tip-row'},
    h('span', {dir: 'auto'}, key), value === '' ? null : h('b', {dir: 'auto'}, value))));
}

// The trial that was clicked.
function trialOf({seriesType, seriesId, seriesName, value, data}) {
  if (seriesType === 'parallel') return data?.trial ?? null;
  if (seriesId === 'segments') return value[3];
  if (seriesType === 'scatter') return value[2];
  const named = /^(?:trial|member) (\d+)$/.exec(seriesId ?? seriesName ?? '');
  return named ? Number(named[1]) : null;
}

const slug = (text) => String(text).toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60) || 'chart';

const zoomKeys = {x: ['xAxisIndex', 'zx'], y: ['yAxisIndex', 'zy']};

// options: {key (in the address), title, label, height: CSS class, zoom: 'xy'|'x'|'', pick(trial), ready(instance), note}
export function makeChart(app, {key, title, label = title, size = 'medium', zoom = '', tools = [], onclick = null, onzoom = null, ready = null, resized = null, file = null}) {
  const canvas = h('div', {class: `chart ${size}`, tabindex: 0, role: 'img', 'aria-label': `${label}. Keys: + and − zoom, arrows move, 0 shows all.`, data: {chart: key}});
  const message = h('p', {class: 'empty', hidden: true});
  const noteLine = h('p', {class: 'note', hidden: true});
  const button = (text, what, hintText) => h('button', {type: 'button', class: 'quiet small', title: hintText, onclick: what}, text);
  const reset = button('Show all', () => setZoom(null), 'Show all again (double click, or 0)');
  reset.hidden = true;
  const heading = h('h2', {title: hint(title)}, title);
  const element = h('figure', {class: 'panel figure', data: {figure: key}},
    h('figcaption', {class: 'panel-head'}, heading, h('div', {class: 'tools'}, tools, reset,
      button('SVG', () => saveSvg(), 'Save as SVG, in light colours'), button('PNG', () => savePng(), 'Save as PNG, in light colours'))),
    h('div', {class: 'chart-box'}, canvas, message), noteLine);

  let instance = null;
  let build = null;
  let shape = '';
  let gone = false;
  let selected = {};

  const zoomName = `z.${key}`;
  const readZoom = () => {
    const parts = (app.route.query[zoomName] ?? '').split(',').map((part) => (part === '' ? null : Number(part)));
    return parts.length === 4 && parts.every((part) => part === null || Number.isFinite(part)) && parts.some((part) => part !== null) ? parts : null;
  };

  function option(theme) {
    const made = canvas.clientWidth < 520 ? narrowed(build(theme)) : build(theme);
    made.backgroundColor ??= 'transparent';
    if (made.legend) made.legend.selected = selected;
    const range = readZoom();
    made.dataZoom = [...zoom].map((axis, i) => ({
      type: 'inside', id: zoomKeys[axis][1], [zoomKeys[axis][0]]: 'all', filterMode: 'none', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: false, moveOnMouseWheel: false,
      ...(range && range[2 * i] !== null ? {startValue: range[2 * i], endValue: range[2 * i + 1], start: null, end: null} : {start: 0, end: 100, startValue: null, endValue: null}),
    }));
    return made;
  }

  async function draw() {
    const echarts = await library();
    if (gone || !build || !canvas.isConnected || canvas.clientWidth === 0) return;
    if (!instance) {
      instance = echarts.init(canvas, null, {renderer: 'canvas'});
      listen();
    }
    const made = option({...app.theme, tip});
    const now = [made.grid, made.xAxis, made.yAxis, made.parallelAxis].map((part) => (Array.isArray(part) ? part.length : part ? 1 : 0)).join()
      + [made.xAxis, made.yAxis].flat().map((axis) => axis?.type).join();
    instance.setOption(made, now === shape ? {replaceMerge: ['series']} : {notMerge: true});
    shape = now;
    reset.hidden = readZoom() === null;
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn ?? 0) + 1);
    ready?.(instance);
  }

  function setZoom(range) {
    const text = range ? range.map((value) => (value === null ? '' : Number(value.toPrecision(7)))).join(',') : '';
    app.set({[zoomName]: text}, {refresh: false});
    draw();
    onzoom?.(range);
  }

  // The ranges shown now, in the units of the axes.
  function extent() {
    const of = (axis) => {
      const model = instance.getModel().getComponent(`${axis}Axis`, 0);
      return model ? model.axis.scale.getExtent() : [0, 1];
    };
    return {x: of('x'), y: of('y')};
  }

  const logOf = (axis) => instance.getModel().getComponent(`${axis}Axis`, 0)?.get('type') === 'log';

  function along(axis, change) {
    if (!instance || !zoom.includes(axis)) return;
    const log = logOf(axis);
    const ends = readRange(axis).map((value) => (log ? Math.log10(value) : value));
    const next = change(ends[0], ends[1]).map((value) => (log ? 10 ** value : value));
    const range = readZoom() ?? new Array(4).fill(null);
    while (range.length < 4) range.push(null);
    const at = 2 * zoom.indexOf(axis);
    [range[at], range[at + 1]] = next;
    setZoom(range);
  }

  function readRange(axis) {
    const range = readZoom();
    const at = 2 * zoom.indexOf(axis);
    return range && range[at] !== null ? [range[at], range[at + 1]] : extent()[axis];
  }

  function listen() {
    // On a touch screen a finger scrolls the page, and must not select a range.
    const draggable = !matchMedia('(pointer: coarse)').matches && zoom !== '';
    instance.on('click', (params) => {
      if (onclick?.(params)) return;
      const trial = trialOf(params);
      if (trial !== null && trial !== undefined) app.pick(trial);
    });
    instance.on('legendselectchanged', (event) => {
      selected = event.selected;
    });
    instance.on('datazoom', () => {
      const zooms = instance.getOption().dataZoom;
      const range = [...zoom].flatMap((axis) => {
        const one = zooms.find((candidate) => candidate.id === zoomKeys[axis][1]);
        return one.start > 0.01 || one.end < 99.99 ? [one.startValue, one.endValue] : [null, null];
      });
      while (range.length < 4) range.push(null);
      setZoom(range.every((value) => value === null) ? null : range);
    });
    if (!draggable) return;
    const area = h('div', {class: 'drag', hidden: true});
    canvas.parentElement.append(area);
    let from = null;
    const inside = (x, y) => instance.containPixel({gridIndex: 0}, [x, y]);
    instance.getZr().on('mousedown', ({offsetX, offsetY, event}) => {
      if (event.button === 0 && inside(offsetX, offsetY)) from = [offsetX, offsetY];
    });
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [Math.min(box.width, Math.max(0, event.clientX - box.left)), Math.min(box.height, Math.max(0, event.clientY - box.top))];
    };
    const move = (event) => {
      if (!from) return;
      const [x, y] = place(event);
      const both = zoom === 'xy';
      area.hidden = Math.abs(x - from[0]) < 5 && Math.abs(y - from[1]) < 5;
      area.style.left = `${Math.min(x, from[0])}px`;
      area.style.width = `${Math.abs(x - from[0])}px`;
      area.style.top = both ? `${Math.min(y, from[1])}px` : '0';
      area.style.height = both ? `${Math.abs(y - from[1])}px` : '100%';
    };
    const up = (event) => {
      if (!from) return;
      const to = place(event);
      const start = from;
      from = null;
      const moved = !area.hidden;
      area.hidden = true;
      if (!moved || Math.abs(to[0] - start[0]) < 5 || (zoom === 'xy' && Math.abs(to[1] - start[1]) < 5)) return;
      const a = instance.convertFromPixel({gridIndex: 0}, start);
      const b = instance.convertFromPixel({gridIndex: 0}, to);
      const order = (i) => [Math.min(a[i], b[i]), Math.max(a[i], b[i])];
      setZoom(zoom === 'xy' ? [...order(0), ...order(1)] : [...order(0), null, null]);
    };
    // Capture the events before the library, which keeps those of a pressed button to itself.
    window.addEventListener('pointermove', move, true);
    window.addEventListener('pointerup', up, true);
    element.cleanup = () => {
      window.removeEventListener('pointermove', move, true);
      window.removeEventListener('pointerup', up, true);
    };
    instance.getZr().on('dblclick', () => setZoom(null));
  }

  canvas.addEventListener('keydown', (event) => {
    if (zoom === '' || event.ctrlKey || event.metaKey || event.altKey) return;
    const scale = (factor) => (low, high) => [(low + high) / 2 - ((high - low) * factor) / 2, (low + high) / 2 + ((high - low) * factor) / 2];
    const shift = (part) => (low, high) => [low + (high - low) * part, high + (high - low) * part];
    const actions = {
      '+': () => along('x', scale(0.7)), '=': () => along('x', scale(0.7)), '-': () => along('x', scale(1 / 0.7)),
      ArrowLeft: () => along('x', shift(-0.15)), ArrowRight: () => along('x', shift(0.15)),
      ArrowUp: () => zoom.includes('y') && along('y', shift(0.15)), ArrowDown: () => zoom.includes('y') && along('y', shift(-0.15)),
      0: () => setZoom(null),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  });

  // The chart for export: light theme, no tooltip, the current zoom.
  const printed = () => ({...option(themes.light), backgroundColor: themes.light.panel});
  const sizeOf = () => ({width: Math.max(320, canvas.clientWidth), height: Math.max(160, canvas.clientHeight)});
  const filename = (ending) => `${slug(app.summary?.name ?? 'hypertune')}-${slug(file ?? title)}.${ending}`;

  async function svg() {
    const echarts = await library();
    const offscreen = echarts.init(null, null, {renderer: 'svg', ssr: true, ...sizeOf()});
    try {
      offscreen.setOption(printed());
      return offscreen.renderToSVGString();
    } finally {
      offscreen.dispose();
    }
  }

  async function saveSvg() {
    if (build) save(new Blob([await svg()], {type: 'image/svg+xml'}), filename('svg'));
  }

  async function savePng() {
    if (!build) return;
    const echarts = await library();
    const target = document.createElement('canvas');
    const offscreen = echarts.init(target, null, {renderer: 'canvas', devicePixelRatio: 2, ...sizeOf()});
    offscreen.setOption(printed());
    await new Promise((resolve) => target.toBlob((blob) => {
      if (blob) save(blob, filename('png'));
      resolve();
    }, 'image/png'));
    offscreen.dispose();
  }

  const observer = new ResizeObserver(() => {
    if (!instance) {
      draw();
    } else if (canvas.clientWidth > 0) {
      instance.resize();
      resized?.();
    }
  });
  observer.observe(canvas);

  const chart = {
    element,
    canvas,
    // builder: theme -> option. `empty`: a sentence to show instead of the chart. `note`: a line below it.
    show(builder, {empty = null, note = null, heading: text = null} = {}) {
      build = empty ? null : builder;
      message.hidden = !empty;
      message.textContent = empty ?? '';
      canvas.classList.toggle('none', Boolean(empty));
      noteLine.hidden = !note || Boolean(empty);
      noteLine.textContent = note ?? '';
      if (text) heading.textContent = text;
      return draw();
    },
    redraw: draw,
    instance: () => instance,
    svg,
    dispose() {
      gone = true;
      observer.disconnect();
      element.cleanup?.();
      app.charts.delete(chart);
      instance?.dispose();
    },
  };
  app.charts.add(chart);
  return chart;
}
