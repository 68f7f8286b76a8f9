// Controls whose values are stored in the address (URL): they show its values, and change it.
import {h, hint} from './dom.js';
import {short} from './format.js';

let made = 0;

// The controls of one view. Call sync() after each change of the address.
export function makeControls(app) {
  const all = [];

  // options(): [[value, text]]. The first one, or fallback(), is used if the address has no value or an invalid one.
  function select(label, key, options, fallback = () => options()[0]?.[0] ?? '') {
    const id = `control-${made += 1}`;
    const box = h('select', {id, data: {control: key}, onchange: () => app.set({[key]: box.value === String(fallback()) ? '' : box.value})});
    const wrap = h('span', {class: 'control'}, h('label', {for: id}, label), box);
    let print = '';
    const control = {
      element: wrap,
      get value() {
        const asked = app.route.query[key];
        return options().some(([value]) => String(value) === asked) ? asked : String(fallback());
      },
      sync() {
        const list = options();
        if (print !== JSON.stringify(list)) {
          print = JSON.stringify(list);
          box.replaceChildren(...list.map(([value, text]) => h('option', {value, title: hint(text)}, short(text, 44))));
        }
        box.value = control.value;
        wrap.hidden = list.length < 2;
      },
    };
    all.push(control);
    return control;
  }

  function toggle(label, key, {fallback = false, title = null} = {}) {
    const box = h('input', {type: 'checkbox', data: {control: key}, onchange: () => app.set({[key]: box.checked === fallback ? '' : box.checked ? '1' : '0'})});
    const wrap = h('label', {class: 'control toggle', title}, box, label);
    const control = {
      element: wrap,
      get value() {
        const asked = app.route.query[key];
        return asked === undefined || asked === '' ? fallback : asked !== '0';
      },
      sync() {
        box.checked = control.value;
      },
    };
    all.push(control);
    return control;
  }

  // A group of buttons, one for each choice.
  function segments(label, key, options, fallback = options[0][0]) {
    const wrap = h('div', {class: 'segments', role: 'group', 'aria-label': label}, options.map(([value, text, title]) => h('button', {
      type: 'button', data: {value, control: key}, title, onclick: () => app.set({[key]: value === fallback ? '' : value})}, text)));
    const control = {
      element: wrap,
      get value() {
        const asked = app.route.query[key];
        return options.some(([value]) => value === asked) ? asked : fallback;
      },
      sync() {
        for (const button of wrap.children) button.setAttribute('aria-pressed', String(button.dataset.value === control.value));
      },
    };
    all.push(control);
    return control;
  }

  return {select, toggle, segments, sync: () => all.forEach((control) => control.sync())};
}

// The metrics as options of a select.
export const metricOptions = (app) => app.summary.metrics.map((metric) => [metric, metric]);

export const bar = (...controls) => h('div', {class: 'controls'}, controls.map((control) => control.element ?? control));
