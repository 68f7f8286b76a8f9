// All trials as a table. Rows are loaded when they become visible, so that 100,000 rows are as fast as ten.
import {fill, h, hint, icon, name, state} from '../dom.js';
import {count, duration, number, plural, setting, yet} from '../format.js';

const rowHeight = 30;
const page = 100;
const pagesKept = 24;
// Browsers limit the height of an element; beyond this one, the scroll bar is scaled.
const highest = 12e6;

function columnsOf(summary) {
  return [
    {key: 'trial', title: 'trial', width: 84, sort: 'trial', of: (row) => row.trial, number: true},
    {key: 'state', title: 'state', width: 112, sort: 'state', of: (row) => row.state},
    ...summary.objectives.map((objective, i) => ({key: `value${i}`, title: objective.metric, note: objective.mode, width: 118, sort: i === 0 ? 'value' : objective.metric, metric: i === 0 ? null : objective.metric, of: (row) => row.values?.[i] ?? (i === 0 ? row.value : null), number: true, value: true,
      down: objective.mode === 'max'})),
    {key: 'steps', title: 'steps', width: 74, sort: 'steps', of: (row) => row.steps, number: true, down: true},
    ...summary.parameters.map((parameter) => ({key: `p.${parameter.name}`, title: parameter.name, width: parameter.kind === 'choice' || parameter.kind === 'text' ? 120 : 104, sort: `params.${parameter.name}`, parameter: parameter.name, of: (row) => row.params[parameter.name], number: !['choice', 'text', 'bool'].includes(parameter.kind)})),
    {key: 'duration', title: 'duration', width: 106, sort: 'duration', of: (row) => row.duration, number: true, text: duration, down: true},
    {key: 'failures', title: 'failures', width: 84, sort: 'failures', of: (row) => row.failures, number: true, down: true},
    {key: 'host', title: 'host', width: 130, of: (row) => row.host},
    {key: 'cause', title: 'cause', width: 260, of: (row) => row.cause ?? ''},
  ];
}

export function trials(app) {
  const summaryLine = h('p', {class: 'muted matching', 'aria-live': 'polite'});
  const columnsButton = h('button', {type: 'button', class: 'quiet', 'aria-expanded': 'false', data: {action: 'columns'}, onclick: () => chooser.hidden ? openChooser() : closeChooser()}, icon('columns'), 'Columns');
  const chooser = h('div', {class: 'chooser', hidden: true});
  const head = h('div', {class: 'grid-head', role: 'rowgroup'});
  const space = h('div', {class: 'grid-space', role: 'rowgroup'});
  const scroller = h('div', {class: 'grid', role: 'grid', tabindex: 0, 'aria-label': 'Trials', data: {key: 'grid'}}, head, space);
  const empty = h('p', {class: 'empty', hidden: true});
  const element = h('div', {class: 'trials'}, h('div', {class: 'panel grid-panel'}, h('div', {class: 'panel-head'}, summaryLine, h('div', {class: 'tools'}, columnsButton, chooser)), scroller, empty));

  let columns = [];
  let shownColumns = [];
  let pages = new Map();   // page number -> rows, or a promise of them
  let version = 0;
  let matching = 0;
  let request = '';
  let current = null;      // index of the chosen row in the displayed order
  let gone = false;
  const rows = new Map();  // index -> element

  const hiddenKeys = () => new Set((app.route.query.hide ?? '').split(',').filter((part) => part !== ''));
  const idOf = (column) => (column.parameter ? `p${app.summary.parameters.findIndex((parameter) => parameter.name === column.parameter)}` : column.key);

  function openChooser() {
    chooser.hidden = false;
    columnsButton.setAttribute('aria-expanded', 'true');
    paintChooser();
    chooser.querySelector('input')?.focus();
  }

  function closeChooser() {
    chooser.hidden = true;
    columnsButton.setAttribute('aria-expanded', 'false');
  }

  chooser.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    closeChooser();
    columnsButton.focus();
  });

  function paintChooser() {
    const off = hiddenKeys();
    fill(chooser, [columns.map((column) => column.title), [...off]], () => columns.slice(1).map((column) => h('label', null,
      h('input', {type: 'checkbox', checked: !off.has(idOf(column)), data: {key: `c${idOf(column)}`}, onchange: ({target}) => {
        const next = hiddenKeys();
        if (target.checked) next.delete(idOf(column));
        else next.add(idOf(column));
        app.set({hide: [...next].join(',')});
      }}), name(column.title))));
  }

  // The order in the address, if the column exists.
  function order() {
    const asked = app.route.query.sort;
    const column = columns.find((one) => one.sort === asked);
    if (!column) return {sort: 'trial', order: 'asc', column: columns[0]};
    return {sort: column.sort, order: app.route.query.order === 'desc' ? 'desc' : 'asc', column};
  }

  const fieldOf = (column) => {
    if (column.parameter !== undefined) {
      const place = app.summary.parameters.findIndex((parameter) => parameter.name === column.parameter);
      return column.parameter.length > 80 || /[,"@]/.test(column.parameter) ? `params.@${place}` : column.sort;
    }
    if (column.metric) return column.metric.length > 80 || /[,"@]/.test(column.metric) ? `@${app.summary.metrics.indexOf(column.metric)}` : column.metric;
    return column.sort;
  };

  function sortBy(column) {
    const now = order();
    const next = now.column === column ? (now.order === 'asc' ? 'desc' : 'asc') : column.down ? 'desc' : 'asc';
    app.set({sort: column.sort === 'trial' && next === 'asc' ? '' : column.sort, order: next === 'asc' ? '' : 'desc'});
  }

  function paintHead() {
    const off = hiddenKeys();
    shownColumns = columns.filter((column) => !off.has(idOf(column)));
    scroller.style.setProperty('--columns', shownColumns.map((column) => `${column.width}px`).join(' '));
    scroller.style.setProperty('--width', `${shownColumns.reduce((sum, column) => sum + column.width, 0)}px`);
    scroller.setAttribute('aria-colcount', shownColumns.length);
    const now = order();
    fill(head, [shownColumns.map((column) => [column.title, column.note]), now.sort, now.order], () => h('div', {class: 'grid-row', role: 'row', 'aria-rowindex': 1}, shownColumns.map((column) => {
      const sorted = now.column === column && (app.route.query.sort || column.sort === 'trial');
      const text = [name(column.title), column.note ? h('small', null, column.note) : null];
      return h('div', {role: 'columnheader', class: column.number ? 'number' : null, 'aria-sort': sorted ? (now.order === 'asc' ? 'ascending' : 'descending') : null},
        column.sort ? h('button', {type: 'button', data: {key: `sort ${column.key}`, sort: column.sort}, title: hint(`Sort by ${column.title}`), onclick: () => sortBy(column)}, text, h('i', {class: 'arrow', 'aria-hidden': 'true'}, sorted ? (now.order === 'asc' ? '↑' : '↓') : '')) : text);
    })));
  }

  function paintRow(place, row) {
    const best = app.summary.best ?? [];
    const isBest = best.some((one) => one.trial === row.trial);
    return h('div', {class: `grid-row${isBest ? ' is-best' : ''}`, role: 'row', id: `row-${row.trial}`, 'aria-rowindex': place + 2, 'aria-selected': String(row.trial === app.picked()), data: {trial: row.trial, place}},
      shownColumns.map((column) => {
        const value = column.of(row);
        if (column.key === 'trial') return h('div', {role: 'gridcell', class: 'number first'}, h('a', {href: app.trialHref(row.trial), tabindex: -1}, row.trial));
        if (column.key === 'state') return h('div', {role: 'gridcell'}, state(row.state));
        const text = column.text ? column.text(value) : column.number ? number(value) : value === null || value === undefined ? '–' : setting(value);
        return h('div', {role: 'gridcell', class: `${column.number ? 'number' : ''}${column.value ? ' value' : ''}`}, name(text));
      }));
  }

  const factor = () => Math.max(1, (matching * rowHeight) / highest);

  function window_() {
    const headHeight = head.offsetHeight;
    const height = scroller.clientHeight - headHeight;
    const first = Math.max(0, Math.floor((scroller.scrollTop * factor()) / rowHeight) - 6);
    return {first, last: Math.min(matching - 1, first + Math.ceil(height / rowHeight) + 12)};
  }

  // Loads one page. Rows with very long texts come in several answers, because the size of an answer is limited.
  async function rowsOf(n, signal) {
    const {order: direction, column} = order();
    const ask = (offset, limit) => app.get('/api/trials', {filter: app.route.query.filter, sort: fieldOf(column), order: direction, offset, limit}, signal);
    const answer = await ask(n * page, page);
    let last = answer;
    while (last.cut && last.rows.length > 0 && answer.rows.length < page) {
      last = await ask(n * page + answer.rows.length, page - answer.rows.length);
      answer.rows = [...answer.rows, ...last.rows];
    }
    return answer;
  }

  async function pageOf(n) {
    const own = version;
    const have = pages.get(n);
    if (have) return have;
    const promise = rowsOf(n).then(({rows: list}) => {
      if (own === version) {
        pages.set(n, list);
        while (pages.size > pagesKept) pages.delete(pages.keys().next().value);
      }
      return list;
    });
    promise.catch(() => own === version && pages.delete(n));
    pages.set(n, promise);
    return promise;
  }

  function paintRows() {
    if (gone || !scroller.isConnected) return;
    const {first, last} = window_();
    space.style.height = `${Math.min(highest, matching * rowHeight)}px`;
    for (const [place, element_] of rows) {
      if (place < first || place > last) {
        element_.remove();
        rows.delete(place);
      }
    }
    const base = scroller.scrollTop - (scroller.scrollTop * factor());
    const missing = new Set();
    for (let place = first; place <= last; place += 1) {
      const loaded = pages.get(Math.floor(place / page));
      const row = Array.isArray(loaded) ? loaded[place % page] : null;
      if (!row) missing.add(Math.floor(place / page));
      const print = row ? JSON.stringify([row, shownColumns.length, row.trial === app.picked()]) : 'waiting';
      let drawn = rows.get(place);
      if (drawn?.madeOf !== print && (row || !drawn)) {
        const next = row ? paintRow(place, row) : h('div', {class: 'grid-row waiting', role: 'row', 'aria-rowindex': place + 2}, h('div', {role: 'gridcell', class: 'number first'}, '…'));
        next.madeOf = print;
        if (drawn) drawn.replaceWith(next);
        else space.append(next);
        rows.set(place, next);
        drawn = next;
      }
      drawn.style.transform = `translateY(${place * rowHeight + (factor() > 1 ? base : 0)}px)`;
    }
    for (const n of missing) pageOf(n).then(paintRows, () => {});
  }

  let ticking = false;
  scroller.addEventListener('scroll', () => {
    if (ticking) return;
    ticking = true;
    requestAnimationFrame(() => {
      ticking = false;
      paintRows();
    });
  }, {passive: true});
  const observer = new ResizeObserver(() => paintRows());
  observer.observe(scroller);

  function reveal(place) {
    const top = (place * rowHeight) / factor();
    const view = scroller.clientHeight - head.offsetHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + rowHeight > scroller.scrollTop + view) scroller.scrollTop = top + rowHeight - view;
  }

  async function choose(place) {
    if (matching === 0) return;
    const next = Math.min(matching - 1, Math.max(0, place));
    const list = await pageOf(Math.floor(next / page));
    const row = list[next % page];
    if (!row || gone) return;
    current = next;
    reveal(next);
    app.pick(row.trial);
    scroller.setAttribute('aria-activedescendant', `row-${row.trial}`);
    paintRows();
  }

  scroller.addEventListener('keydown', (event) => {
    if (event.target !== scroller || event.ctrlKey || event.metaKey || event.altKey) return;
    const screen = Math.max(1, Math.floor((scroller.clientHeight - head.offsetHeight) / rowHeight) - 1);
    const to = {ArrowDown: (current ?? -1) + 1, ArrowUp: (current ?? 1) - 1, PageDown: (current ?? 0) + screen, PageUp: (current ?? 0) - screen, Home: 0, End: matching - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  space.addEventListener('click', (event) => {
    if (event.target.closest('a')) return;
    const row = event.target.closest('[data-trial]');
    if (!row) return;
    current = Number(row.dataset.place);
    app.pick(Number(row.dataset.trial));
    paintRows();
  });
  space.addEventListener('dblclick', (event) => {
    const row = event.target.closest('[data-trial]');
    if (row) app.openTrial(Number(row.dataset.trial));
  });

  return {
    element,
    step(by) {
      choose(current === null ? 0 : current + by);
    },
    async refresh(signal) {
      columns = columnsOf(app.summary);
      paintHead();
      if (!chooser.hidden) paintChooser();
      const {order: direction, column} = order();
      const asked = JSON.stringify([app.route.query.filter ?? '', fieldOf(column), direction]);
      // The first answer has the total; visible pages are reloaded now, others when they become visible.
      const {first, last} = asked === request ? window_() : {first: 0, last: 0};
      const inSight = new Set();
      for (let n = Math.floor(first / page); n <= Math.floor(Math.max(first, last) / page); n += 1) inSight.add(n);
      const answers = await Promise.all([...inSight].map((n) => rowsOf(n, signal)));
      if (signal.aborted) return;
      version += 1;
      if (asked !== request) {
        scroller.scrollTop = 0;
        current = null;
      }
      request = asked;
      pages = new Map([...inSight].map((n, i) => [n, answers[i].rows]));
      matching = answers[0].matching;
      scroller.setAttribute('aria-rowcount', matching + 1);
      const {total} = answers[0];
      summaryLine.textContent = matching === total ? plural(total, 'trial') : `${count(matching)} of ${plural(total, 'trial')}`;
      empty.hidden = matching > 0;
      empty.textContent = total === 0 ? `There are no trials${yet(app.summary)}.` : 'No trial matches the filter.';
      scroller.hidden = matching === 0;
      if (current === null && app.picked() !== null) {
        for (const [n, list] of pages) {
          const at = list.findIndex((row) => row.trial === app.picked());
          if (at >= 0) current = n * page + at;
        }
      }
      paintRows();
    },
    dispose() {
      gone = true;
      observer.disconnect();
    },
  };
}
