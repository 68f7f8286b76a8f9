// All experiments of the server.
import {fill, h, hint, name} from '../dom.js';
import {ago, count, moment, number} from '../format.js';
import {format} from '../route.js';

const planned = (one) => one.planned || one.trials;   // the same as on each experiment's page

export function experiments(app) {
  const box = h('div', {class: 'table-box'});
  const empty = h('p', {class: 'empty', hidden: true}, 'There is no experiment in the folders given. One that is started there appears by itself.');

  return {
    element: h('div', {class: 'experiments'}, h('section', {class: 'panel'}, box, empty)),
    async refresh() {
      const list = [...app.experiments].sort((a, b) => Number(b.state === 'running') - Number(a.state === 'running') || (b.updated ?? 0) - (a.updated ?? 0));
      empty.hidden = list.length > 0;
      const now = Date.now() / 1000;
      fill(box, list, () => (list.length === 0 ? [] : h('table', {class: 'plain list'}, h('thead', null, h('tr', null, [['experiment'], ['state'], ['trials', 'number'], ['best', 'number'], ['metric'], ['started'], ['last record']].map(([text, kind]) => h('th', {scope: 'col', class: kind}, text)))),
        h('tbody', null, list.map((one) => h('tr', null,
          h('td', null, h('a', {href: format({view: 'overview', experiment: one.id, query: {}}), data: {key: one.id.slice(0, 100), experiment: one.id.slice(0, 100)}, title: hint(one.folder)}, name(one.name))),
          h('td', null, h('span', {class: 'run-state', data: {run: one.state}}, h('i', {class: 'dot', 'aria-hidden': 'true'}), one.state), one.error ? h('p', {class: 'muted trouble'}, one.error) : null),
          h('td', {class: 'number'}, h('span', {class: 'of'}, `${count(one.finished)} of ${count(planned(one))}`), h('span', {class: 'thin', 'aria-hidden': 'true'}, h('i', {style: {width: `${planned(one) > 0 ? (100 * one.finished) / planned(one) : 0}%`}}))),
          h('td', {class: 'number value'}, one.best ? number(one.best.value) : '–'), h('td', null, name(one.metric ?? '–'), h('small', {class: 'muted'}, ` ${one.mode ?? ''}`)),
          h('td', null, moment(one.started)), h('td', {title: moment(one.updated)}, ago(one.updated, now))))))));
    },
  };
}
