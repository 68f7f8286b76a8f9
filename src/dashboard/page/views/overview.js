// The best value over time, the progress, and what is going on now.
import {fill, h, hint, name, panel, state} from '../dom.js';
import {count, duration, finite, moment, number, plural, setting, share, short, yet} from '../format.js';
import {makeChart} from '../chart.js';
import {makeControls} from '../controls.js';
import {bestChart} from '../charts/best.js';
import {unfit} from '../charts/base.js';

const order = ['completed', 'stopped', 'failed', 'running', 'paused', 'pending'];
const shown = 10;

function progress(app, summary) {
  const {counts} = summary;
  const created = order.reduce((sum, key) => sum + counts[key], 0);
  const all = summary.planned || created;
  const parts = order.filter((key) => counts[key] > 0);
  return [
    h('div', {class: 'progress', role: 'img', 'aria-label': parts.map((key) => `${counts[key]} ${key}`).join(', ') || 'no trials yet'},
      parts.map((key) => h('span', {data: {state: key}, style: {'flex-grow': counts[key]}})), all > created ? h('span', {data: {state: 'open'}, style: {'flex-grow': all - created}}) : null),
    h('ul', {class: 'counts'}, order.map((key) => h('li', {class: counts[key] === 0 ? 'zero' : null},
      h('a', {href: app.href('trials', {filter: `state:${key}`}), data: {key}}, state(key, h('span', null, h('b', null, count(counts[key])), ` ${key}`))))),
    all > created ? h('li', {class: 'muted'}, `${count(all - created)} to come`) : null),
  ];
}

function fact(label, value, title = null, attributes = {}) {
  return h('div', {...attributes, class: `fact ${attributes.class ?? ''}`, title}, h('dt', null, label), h('dd', null, value));
}

function money(amount, currency) {
  return finite(amount) === null ? null : `${number(amount, 3)} ${currency ?? ''}`.trim();
}

function facts(app, summary) {
  const {cost, failures} = summary;
  const lost = failures ? failures.user + failures.infrastructure + failures.preemption - failures.counted : 0;
  const rate = summary.elapsed > 0 ? summary.reports / summary.elapsed : null;
  return [summary.why ? h('p', {class: `cause ${summary.state === 'running' ? '' : 'bad'}`}, name(summary.why)) : null, h('dl', {class: 'facts'},
    fact(summary.state === 'running' ? 'running for' : 'ran for', duration(summary.elapsed), `from ${moment(summary.started)}`),
    fact('left', summary.state === 'running' ? (finite(summary.left) === null ? 'not known yet' : `about ${duration(summary.left)}`) : '–'),
    fact('reports', count(summary.reports), rate ? `${number(rate, 3)} a second` : null),
    fact('failures', failures ? [count(failures.counted), lost > 0 ? h('small', null, ` and ${count(lost)} without blame`) : null] : '–', failures ? `of trials: ${failures.user}, of machines: ${failures.infrastructure}, preemptions: ${failures.preemption}; lost hosts and preemptions count against no trial` : null),
    cost ? fact('cost', [money(cost.spent, cost.currency) ?? '–', finite(cost.budget) !== null ? h('small', null, ` of ${money(cost.budget, cost.currency)}`) : null], finite(cost.rate) !== null ? `${money(cost.rate, cost.currency)} an hour now` : null) : null,
    summary.resumed > 0 ? fact('resumed', plural(summary.resumed, 'time')) : null)];
}

function bestOf(app, summary) {
  const [first] = summary.best;
  const objective = summary.objectives[0];
  if (!first) {
    const {failed} = summary.counts;
    if (failed === 0) return h('p', {class: 'empty'}, `No trial has reported a value${yet(summary)}.`);
    return h('p', {class: 'empty'}, `No trial has a result${yet(summary)}: `, h('a', {href: app.href('trials', {filter: 'state:failed'}), data: {key: 'failed'}}, `${count(failed)} failed`), '.');
  }
  const several = summary.objectives.length > 1;
  return [
    several ? h('p', {class: 'headline'}, h('a', {href: app.href('tradeoffs'), data: {key: 'front'}}, plural(summary.best.length, 'trial')), ' on the front of ', summary.objectives.map((one, i) => [i > 0 ? ', ' : '', name(`${one.metric} (${one.mode})`)]))
      : h('p', {class: 'headline'}, h('b', {class: 'big'}, number(first.value)), h('span', {class: 'muted'}, ' ', name(objective.metric), ` (${objective.mode})`)),
    several ? h('dl', {class: 'facts'}, summary.objectives.map((one, i) => {
      const values = summary.best.map((row) => finite(row.values[i])).filter((value) => value !== null);
      return values.length > 0 ? fact(short(one.metric, 24), number(one.mode === 'min' ? Math.min(...values) : Math.max(...values)), hint(one.metric)) : null;
    })) : h('p', {class: 'muted'}, h('a', {href: app.trialHref(first.trial), data: {key: 'trial'}}, `trial ${first.trial}`),
      first.at_step !== null && first.at_step !== undefined ? ` at step ${count(first.at_step)} of ${count(first.steps)}` : '', first.host ? [' on ', name(first.host)] : null),
    several ? null : h('dl', {class: 'params'}, Object.entries(first.params).map(([key, value]) => [h('dt', null, name(key)), h('dd', null, name(setting(value)))])),
  ];
}

function runningTable(app, now) {
  const {running} = now;
  const total = now.running_total ?? running.length;
  const objective = app.summary.objectives[0];
  return h('div', {class: 'table-box running'}, h('table', {class: 'plain'}, h('thead', null, h('tr', null, ['trial', 'step', name(objective.metric), 'last report', 'host'].map((text) => h('th', {scope: 'col'}, text)))),
    h('tbody', null, running.slice(0, shown).map((row) => h('tr', null,
      h('td', null, h('a', {href: app.trialHref(row.trial), data: {key: `r${row.trial}`}}, row.trial)), h('td', null, count(row.step)), h('td', null, number(row.value)),
      h('td', null, finite(row.since_report) === null ? 'none yet' : `${duration(Math.round(row.since_report))} ago`), h('td', null, name(row.host ?? '–')))))),
  total > shown ? h('p', {class: 'more'}, h('a', {href: app.href('trials', {filter: 'state:running'}), data: {key: 'more'}}, `and ${count(total - Math.min(shown, running.length))} more`)) : null);
}

// Trials that wait for the same reason share a line.
function waitingList(app, now) {
  const groups = new Map();
  for (const {trial, why} of now.waiting) groups.set(why ?? '', [...(groups.get(why ?? '') ?? []), trial]);
  const total = now.waiting_total ?? now.waiting.length;
  return [now.nothing_runs ? h('p', {class: 'cause'}, name(now.nothing_runs)) : null, h('ul', {class: 'waiting'}, [...groups.entries()].slice(0, shown).map(([why, trials]) => h('li', null,
    h('span', {class: 'who'}, trials.slice(0, 4).map((trial, i) => [i > 0 ? ', ' : '', h('a', {href: app.trialHref(trial), data: {key: `w${trial}`}}, trial)]), trials.length > 4 ? ` and ${count(trials.length - 4)} more` : ''),
    h('span', {class: 'why'}, name(why || 'It waits for its turn.')))),
  total > now.waiting.length ? h('li', {class: 'muted'}, `${count(total)} wait in all`) : null)];
}

const meter = (label, value) => (finite(value) === null ? null : h('span', {class: 'meter', title: `${label}: ${share(value)}`},
  h('span', null, label), h('i', {'aria-hidden': 'true'}, h('i', {style: {width: `${Math.min(100, Math.max(0, value * 100))}%`}})), h('b', null, share(value))));

function hostList(now) {
  return h('ul', {class: 'hosts'}, now.hosts.map((host) => h('li', null,
    h('div', {class: 'host-head'}, name(host.host, {class: 'strong'}), host.state ? h('span', {class: 'muted'}, host.state) : null, h('span', {class: 'push'}, `${count(host.busy)} of ${plural(host.slots, 'slot')} busy`)),
    h('div', {class: 'meters'}, meter('CPU', host.cpu), meter('memory', host.memory), (host.gpu ?? []).slice(0, 16).map((gpu, i) => meter(host.gpu.length > 1 ? `GPU ${i}` : 'GPU', gpu))),
    host.why ? h('p', {class: 'muted'}, name(host.why)) : null)));
}

// What `hypertune serve` does with the experiment's model.
function serverList(app, {servers}) {
  const version = (one) => h('tr', {class: one.state === 'ready' ? null : 'muted'},
    h('td', null, finite(one.trial) === null ? name(one.version) : h('a', {href: app.trialHref(one.trial), data: {key: `s${one.version}`}}, name(one.version))),
    h('td', null, one.state), h('td', {class: 'number'}, `${count(one.replicas)} of ${count(one.wanted)}`), h('td', {class: 'number'}, count(one.answered)), h('td', {class: 'number'}, count(one.failed)));
  const refused = (requests) => Object.entries(requests).reduce((sum, [code, many]) => sum + (code === '200' ? 0 : many), 0);
  return servers.map((one) => h('div', {class: 'server'},
    h('div', {class: 'host-head'}, name(one.address, {class: 'strong'}), one.pinned ? h('span', {class: 'muted'}, 'pinned to ', name(one.pinned)) : null),
    h('dl', {class: 'facts'}, fact('requests', count(one.requests?.['200'] ?? 0), `${number(one.requests_per_second ?? 0, 3)} a second now`), fact('refused or failed', count(refused(one.requests ?? {}))),
      fact('waiting', count((one.versions ?? []).reduce((sum, each) => sum + each.queued, 0))), fact('p50', duration(one.p50_seconds)), fact('p99', duration(one.p99_seconds)), fact('swaps', count(one.swaps)), fact('replicas lost', count(one.replicas_lost))),
    h('div', {class: 'table-box'}, h('table', {class: 'plain'}, h('thead', null, h('tr', null, ['version', 'state', 'replicas', 'answered', 'failed'].map((text) => h('th', {scope: 'col'}, text)))), h('tbody', null, (one.versions ?? []).map(version)))),
    one.rejection ? h('p', {class: 'cause bad'}, name(one.rejection)) : null));
}

function about(summary) {
  const withOptions = (what, options) => (what && options ? `${what} (${options})` : what);
  const rows = [['command', summary.command], ['search', withOptions(summary.search, summary.search_options)], ['schedule', withOptions(summary.schedule, summary.schedule_options)], ['executor', summary.executor], ['seed', summary.seed], ['trials planned', finite(summary.planned) === null ? null : count(summary.planned)], ['folder', summary.folder]]
    .filter(([, value]) => value !== null && value !== undefined && value !== '');
  const space = summary.parameters.map((parameter) => [parameter.name, parameter.choices ? parameter.choices.slice(0, 12).map((choice) => short(setting(choice), 24)).join(', ') + (parameter.choices.length > 12 ? ', …' : '')
    : parameter.kind === 'bool' ? 'true, false' : parameter.low !== undefined && parameter.low !== null ? `${number(parameter.low)} to ${number(parameter.high)}${parameter.log ? ', log' : ''}${parameter.kind === 'int' ? ', whole' : ''}` : parameter.kind]);
  return h('div', {class: 'about'}, h('dl', {class: 'params'}, rows.map(([key, value]) => [h('dt', null, key), h('dd', null, name(value))])),
    space.length === 0 ? null : h('div', null, h('h3', null, 'Search space'), h('dl', {class: 'params'}, space.map(([key, value]) => [h('dt', null, name(key)), h('dd', null, name(value))]))),
    Object.keys(summary.notes ?? {}).length > 0 ? h('div', null, h('h3', null, 'Notes'), h('dl', {class: 'params'}, Object.entries(summary.notes).map(([key, value]) => [h('dt', null, name(key)), h('dd', null, name(setting(value)))]))) : null);
}

export function overview(app) {
  const controls = makeControls(app);
  const objective = controls.select('Objective', 'objective', () => app.summary.objectives.map((one, i) => [String(i), one.metric]));
  const axis = controls.segments('Axis', 'x', [['trial', 'by trial'], ['time', 'by time']]);
  const log = controls.toggle('log', 'log', {title: 'Values on a logarithmic scale'});
  const chart = makeChart(app, {key: 'best', title: 'Best so far', size: 'tall', zoom: 'xy', tools: [objective.element, axis.element, log.element]});
  const top = h('div', {class: 'progress-box'});
  const factsBox = h('div', null);
  const best = panel('The best', {class: 'best-panel'}, h('div', {class: 'pad'}));
  const running = panel('Running', {}, h('div', {class: 'pad'}));
  const waiting = panel('Waiting', {}, h('div', {class: 'pad'}));
  const hosts = panel('Hosts', {}, h('div', {class: 'pad'}));
  const served = panel('Served', {class: 'served'}, h('div', {class: 'pad'}));
  const setup = panel('Set-up', {class: 'setup'}, h('div', {class: 'pad'}));
  const inside = (box) => box.lastElementChild;
  let later = null;

  return {
    element: h('div', {class: 'overview'}, h('section', {class: 'panel status'}, top, factsBox), h('div', {class: 'columns'}, h('div', {class: 'wide-column'}, chart.element, setup), h('div', {class: 'narrow-column'}, best, served, running, waiting, hosts))),
    async refresh(signal) {
      const {summary} = app;
      controls.sync();
      fill(top, [summary.counts, summary.planned], () => progress(app, summary));
      fill(factsBox, [summary.elapsed, summary.left, summary.reports, summary.failures, summary.cost, summary.resumed, summary.state, summary.why], () => facts(app, summary));
      fill(inside(best), [summary.best, summary.objectives, summary.counts.failed, summary.state], () => bestOf(app, summary));
      fill(inside(setup), [summary.parameters, summary.notes, summary.command, summary.search, summary.search_options, summary.schedule, summary.schedule_options, summary.executor, summary.folder, summary.seed, summary.planned], () => about(summary));
      const [data, now, serving] = await Promise.all([app.get('/api/best', {x: axis.value === 'time' ? 'time' : 'trial'}, signal), app.get('/api/now', {}, signal), app.source.live ? app.get('/api/serving', {}, signal) : {servers: []}]);
      if (signal.aborted) return;
      const index = Number(objective.value);
      const of = data.objectives?.[index] ?? {...summary.objectives[index], x: data.x, value: data.value, points: data.points};
      const left = unfit(of.points?.value ?? [], log.value);
      chart.show((theme) => bestChart(of, theme, {x: axis.value, log: log.value, pick: app.picked()}), {
        empty: of.x.length > 0 ? null : `Nothing to draw${yet(summary)}: no trial has a result.`,
        note: left > 0 ? `${plural(left, 'value')} ${log.value ? 'that a logarithm cannot take, or that are' : 'that are'} not finite ${left === 1 ? 'is' : 'are'} not drawn.` : null,
      });
      served.hidden = serving.servers.length === 0;
      fill(inside(served), serving, () => serverList(app, serving));
      // A server changes without a record of the experiment.
      clearTimeout(later);
      if (!served.hidden) later = setTimeout(() => top.isConnected && !document.hidden && app.refresh(), 2000);
      running.hidden = now.running.length === 0;
      waiting.hidden = now.waiting.length === 0;
      hosts.hidden = (now.hosts ?? []).length === 0;
      running.querySelector('h2').textContent = `Running: ${count(now.running_total ?? now.running.length)}`;
      waiting.querySelector('h2').textContent = `Waiting: ${count(now.waiting_total ?? now.waiting.length)}`;
      fill(inside(running), [now.running, now.running_total], () => runningTable(app, now));
      fill(inside(waiting), [now.waiting, now.waiting_total, now.nothing_runs], () => waitingList(app, now));
      fill(inside(hosts), now.hosts, () => hostList(now));
    },
  };
}
