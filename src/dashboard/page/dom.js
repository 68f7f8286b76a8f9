// Makes elements. Text from experiments is never parsed as markup: it becomes a text node or the value of an attribute.

const svgNames = new Set(['svg', 'path', 'circle', 'line', 'rect', 'polyline', 'g']);

// h('a', {class: 'x', href: '#', onclick: f, data: {key: 'k'}}, 'text', [more], null)
export function h(tag, attributes, ...children) {
  const element = svgNames.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'data') Object.assign(element.dataset, value);
    else if (key === 'style') for (const [name, what] of Object.entries(value)) element.style.setProperty(name, what);
    else if (key === 'value') element.value = value;
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// Rebuilds the content of `element` if `data` has changed since it was built. Keeps the focus, by `data-key`.
export function fill(element, data, build) {
  const print = JSON.stringify(data);
  if (element.madeOf === print) return false;
  element.madeOf = print;
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const {scrollTop, scrollLeft} = element;
  const content = [];
  append({append: (node) => content.push(node)}, [build(data)]);
  element.replaceChildren(...content);
  element.scrollTop = scrollTop;
  element.scrollLeft = scrollLeft;
  if (focused !== undefined) {
    for (const candidate of element.querySelectorAll('[data-key]')) if (candidate.dataset.key === focused) candidate.focus({preventScroll: true});
  }
  return true;
}

// A tooltip text (title), limited in length.
export const hint = (text) => (String(text).length > 600 ? `${String(text).slice(0, 600)}…` : String(text));

// A name of any length, in a place of limited width.
export const name = (text, attributes = {}) => h('span', {...attributes, class: `name ${attributes.class ?? ''}`, title: hint(text), dir: 'auto'}, String(text).slice(0, 2000));

export const state = (which, text = which) => h('span', {class: 'state', data: {state: which}}, h('i', {class: 'dot', 'aria-hidden': 'true'}), text);

const paths = {
  sun: 'M8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 1 0 0-5.6',
  moon: 'M13.2 9.6A5.8 5.8 0 0 1 6.4 2.8a5.8 5.8 0 1 0 6.8 6.8z',
  auto: 'M8 2.2a5.8 5.8 0 1 0 0 11.6a5.8 5.8 0 1 0 0-11.6M8 2.2v11.6',
  close: 'M4 4l8 8M12 4l-8 8',
  left: 'M10 3.5L5.5 8l4.5 4.5',
  right: 'M6 3.5L10.5 8L6 12.5',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M10.4 10.4L14 14',
  columns: 'M2.5 3h11v10h-11zM6.2 3v10M9.9 3v10',
};

export function icon(which) {
  return h('svg', {class: 'icon', viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true'}, h('path', {d: paths[which]}));
}

export function panel(title, attributes, ...children) {
  const {tools, note, ...rest} = attributes ?? {};
  return h('section', {...rest, class: `panel ${rest.class ?? ''}`},
    title ? h('header', {class: 'panel-head'}, h('h2', null, title), note ?? null, tools ? h('div', {class: 'tools'}, tools) : null) : null, ...children);
}

export function save(blob, filename) {
  const url = URL.createObjectURL(blob);
  const link = h('a', {href: url, download: filename});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// navigator.clipboard exists only on pages from loopback or over TLS.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', {class: 'away', 'aria-hidden': 'true', value: text});
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
