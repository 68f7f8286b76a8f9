// What happened: a timeline by host and slot, hosts gained and lost, a population's lineage and schedules.
import {fill, h, name} from '../dom.js';
import {clock, moment, plural, yet} from '../format.js';
import {makeChart} from '../chart.js';
import {makeControls} from '../controls.js';
import {kinds, lineageChart, scheduleChart, schedules, timelineChart, useChart} from '../charts/happened.js';

export function happened(app) {
  const controls = makeControls(app);
  const parameter = controls.select('Parameter', 'schedule', () => {
    const changed = new Set(population.flatMap((event) => Object.keys(event.changes ?? {})));
    return app.summary.parameters.filter((one) => changed.has(one.name)).map((one) => [one.name, one.name]);
  });
  let population = [];
  // Both charts show the same time range.
  const timeline = makeChart(app, {key: 'timeline', title: 'Trials over hosts and slots', size: 'timeline', zoom: 'x', onzoom: () => app.refresh()});
  const use = makeChart(app, {key: 'use', title: 'Slots in use', size: 'short'});
  const lineage = makeChart(app, {key: 'lineage', title: 'Lineage of the population', size: 'tall', zoom: 'x'});
  const schedule = makeChart(app, {key: 'schedule', title: 'Schedule of the population', size: 'medium', zoom: 'xy', tools: [parameter.element]});
  const key = h('ul', {class: 'key'}, kinds.map((kind) => h('li', null, h('i', {class: 'swatch', data: {state: kind}}), kind)));
  timeline.element.insertBefore(key, timeline.element.children[1]);
  const hosts = h('div', {class: 'table-box'});
  const hostPanel = h('section', {class: 'panel'}, h('header', {class: 'panel-head'}, h('h2', null, 'Hosts')), hosts);
  const line = h('section', {class: 'population', hidden: true}, lineage.element, schedule.element);

  const zoomed = () => {
    const parts = (app.route.query['z.timeline'] ?? '').split(',').map(Number);
    return parts.length >= 2 && parts.slice(0, 2).every(Number.isFinite) && parts[1] > parts[0] ? parts.slice(0, 2) : null;
  };

  return {
    element: h('div', {class: 'happened'}, timeline.element, use.element, line, hostPanel),
    async refresh(signal) {
      const {summary} = app;
      const origin = summary.started ?? 0;
      const range = zoomed();
      const ask = range ? {from: origin + range[0], to: origin + range[1], limit: 4000} : {limit: 4000};
      const [data, whole] = await Promise.all([app.get('/api/timeline', ask, signal), summary.has?.population ? app.get('/api/lineage', {}, signal) : null]);
      if (signal.aborted) return;
      const {segments} = data;
      const some = segments.trial.length > 0;
      let start = 0;
      let end = 1;
      for (const moment_ of segments.start) start = Math.min(start, moment_ - origin);
      for (const moment_ of segments.end) end = Math.max(end, moment_ - origin);
      for (const moment_ of data.use?.time ?? []) end = Math.max(end, moment_ - origin);
      if (range) end = Math.max(end, summary.elapsed ?? 0);
      timeline.canvas.style.setProperty('--lanes', Math.min(60, Math.max(3, data.lanes.length)));
      const look = {origin, from: start, to: end, span: range ? range[1] - range[0] : undefined, pick: app.picked()};
      timeline.show((theme) => timelineChart(data, theme, look), {
        empty: some ? null : `No trial has started${yet(app.summary)}.`,
        note: data.merged ? `There are more pieces than can be drawn: the short ones are merged. Zoom in to see each.` : `${plural(segments.trial.length, 'piece')} of ${plural(new Set(segments.trial).size, 'trial')}. Drag to zoom.`});
      const inUse = data.use && data.use.time.length > 0;
      use.element.hidden = !inUse;
      if (inUse) use.show((theme) => useChart(data.use, theme, range ? {origin, from: range[0], to: range[1]} : {origin, from: start, to: end}));
      hostPanel.hidden = (data.hosts ?? []).length === 0;
      fill(hosts, data.hosts ?? [], () => h('table', {class: 'plain'}, h('thead', null, h('tr', null, ['host', 'came', 'went', 'why'].map((text) => h('th', {scope: 'col'}, text)))),
        h('tbody', null, data.hosts.slice(-200).map((host) => h('tr', null, h('td', null, name(host.host)), h('td', {title: moment(host.gained)}, clock(host.gained)), h('td', {title: moment(host.lost)}, clock(host.lost)), h('td', null, name(host.why ?? '–')))))));
      population = whole?.population ?? [];
      line.hidden = whole === null || whole.rows.length === 0;
      if (line.hidden) return;
      controls.sync();
      lineage.canvas.style.setProperty('--lanes', Math.min(60, Math.max(6, whole.rows.length)));
      lineage.show((theme) => lineageChart(whole, theme, {pick: app.picked()}), {empty: population.length === 0 ? `No member has gone on from another one${yet(app.summary)}.` : null, note: `${plural(population.length, 'time')} a member went on from another one’s weights, of ${plural(whole.rows.length, 'member')}.`});
      const chosen = summary.parameters.find((one) => one.name === parameter.value);
      const last = population.reduce((most, event) => Math.max(most, event.step), 0);
      schedule.show((theme) => scheduleChart(chosen ? schedules(population, chosen.name, new Map(), last) : new Map(), theme, {name: chosen?.name ?? '', log: chosen?.log, pick: app.picked(), best: summary.best?.[0]?.trial}), {
        empty: chosen ? null : `No parameter has been changed${yet(app.summary)}.`, note: 'The values that each member went through; the best member’s is the thick one.'});
    },
  };
}
