// The keyboard: shortcuts, and the overlay that lists them.
import {h, icon} from './dom.js';

const shortcuts = [
  ['Views', [['1 … 6', 'overview, trials, curves, what matters, trade-offs, what happened'], ['7', 'compare experiments'], ['e', 'all experiments']]],
  ['Trials', [['/', 'filter'], ['j  k', 'next and previous trial'], ['Enter', 'open the chosen trial'], ['b', 'choose the best trial'], ['Esc', 'close, choose none']]],
  ['Charts (with the focus on one)', [['+  −', 'zoom in and out'], ['← → ↑ ↓', 'move'], ['0', 'show all'], ['drag', 'zoom into what is marked; Ctrl and wheel as well']]],
  ['Page', [['t', 'light, dark, or as the system has it'], ['l', 'copy the link of this view'], ['?', 'this list']]],
];

const filterHelp = [
  ['state:failed', 'pending, running, paused, completed, stopped, failed'],
  ['host:lab1', 'on this host'],
  ['trial:3-10', 'numbers'],
  ['note:KEY', 'that have this note'],
  ['lr>=0.001', 'a parameter or metric: = != < <= > >='],
  ['"top 5"<0.1', 'quotes round odd names'],
  ['adam', 'in a parameter\'s text or a cause'],
];

export function helpOverlay(app) {
  const keys = (text) => text.split(/\s{2}/).map((key) => h('kbd', null, key));
  const dialog = h('dialog', {class: 'help', 'aria-label': 'Keyboard and filters', onclose: () => dialog.remove(), onclick: (event) => event.target === dialog && dialog.close()},
    h('div', {class: 'help-body'},
      h('header', null, h('h2', null, 'Keyboard'), h('button', {type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: () => dialog.close()}, icon('close'))),
      h('div', {class: 'help-columns'},
        shortcuts.map(([title, rows]) => h('section', null, h('h3', null, title), h('dl', null, rows.map(([key, what]) => [h('dt', null, keys(key)), h('dd', null, what)])))),
        h('section', null, h('h3', null, 'Filter: all terms must hold'), h('dl', null, filterHelp.map(([term, what]) => [h('dt', null, h('code', null, term)), h('dd', null, what)]))))));
  app.root.append(dialog);
  dialog.showModal();
}

// Runs actions by key, but not while the user types into a field.
export function listen(actions) {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const {target} = event;
    const typing = target instanceof HTMLElement && (target.matches('input:not([type=checkbox]), textarea, select') || target.isContentEditable);
    if (typing && event.key !== 'Escape') return;
    if (document.querySelector('dialog[open]')) return;
    const action = actions[event.key];
    if (action && action(event) !== false) event.preventDefault();
  });
}
