// The page's pure functions, checked in the browser that runs them: addresses, filters, numbers, sources, charts.
import * as format from '/page/format.js';
import * as route from '/page/route.js';
import * as filter from '/page/filter.js';
import * as source from '/page/source.js';
import * as embedded from '/page/embedded.js';
import * as match from '/page/match.js';
import {notice, reportNotice} from '/page/notices.js';
import {themes} from '/page/theme.js';
import * as base from '/page/charts/base.js';
import * as best from '/page/charts/best.js';
import * as curves from '/page/charts/curves.js';
import * as matters from '/page/charts/matters.js';
import * as surface from '/page/charts/surface.js';
import * as parallel from '/page/charts/parallel.js';
import * as tradeoffs from '/page/charts/tradeoffs.js';
import * as happened from '/page/charts/happened.js';

const cases = [];
const test = (name, body) => cases.push([name, body]);
const text = (value) => JSON.stringify(value);

function same(got, want, about = '') {
  if (text(got) !== text(want)) throw new Error(`${about} got ${text(got)}, wanted ${text(want)}`);
}

function holds(condition, about) {
  if (!condition) throw new Error(about);
}

test('numbers are short and exact', () => {
  for (const [value, want] of [[0, '0'], [0.1 + 0.2, '0.3'], [1e-5, '1e-5'], [-0.25, '−0.25'], [12345, '12\u202f345'], [-1234567, '−1\u202f234\u202f567'], [0.9433583, '0.94336'], [1.5e9 + 0.5, '1.5e9'], ['NaN', 'NaN'], ['Infinity', '∞'], ['-Infinity', '−∞'],
    [null, '–'], [123.456789, '123.46'], [99999.5, '100\u202f000'], [0.5000001, '0.5'], [0.00123, '0.00123'], [0.00099, '9.9e-4']]) same(format.number(value), want, `number(${value})`);
  for (const [value, want] of [[0, '0 s'], [0.0123, '12 ms'], [9.96, '10 s'], [59.7, '1 min 00 s'], [61, '1 min 01 s'], [3599.6, '1 h 00 min'], [90061, '1 d 01 h'], [null, '–'], ['NaN', '–']]) same(format.duration(value), want, `duration(${value})`);
  same(format.share(0.004), '<1\u202f%');
  same(format.bytes(1234567), '1.23 MB');
  same(format.short('🦄'.repeat(50), 4), '🦄🦄🦄…');
  same(format.short('L'.repeat(10000), 10).length, 10);
});

test('an address is read back as it was written', () => {
  for (const experiment of ['digits', 'a/b c', '100%', '<img src=x onerror=alert(1)>', '\u05e9\u05dc\u05d5\u05dd', '🦄', '?#&=+']) {
    for (const view of ['overview', 'trials', 'curves', 'matters', 'tradeoffs', 'happened']) {
      const one = {view, experiment, query: {filter: 'lr>=0.1 "a b"="c\\"d"', log: '1', 'z.best': '1,2,,'}};
      same(route.parse(route.format(one)), one);
    }
    same(route.parse(route.format({view: 'trial', experiment, number: 12, query: {}})), {view: 'trial', experiment, query: {}, number: 12});
  }
  same(route.parse(''), {view: 'experiments', experiment: null, query: {}});
  same(route.parse('#/e/x/nonsense').view, 'overview');
  same(route.parse('#/e/x/trial/abc').view, 'trials');
  same(route.parse('#/e/%E0%A4%A/trials').experiment, '%E0%A4%A');
  same(route.parse('#/compare?e=%5B%5D'), {view: 'compare', experiment: null, query: {e: '[]'}});
  same(route.format({view: 'trials', experiment: 'x', query: {filter: '', sort: 'value'}}), '#/e/x/trials?sort=value');
  const here = {view: 'trials', experiment: 'x', query: {filter: 'a=1', sort: 'value', trial: '3'}};
  same(route.to(here, 'curves').query, {filter: 'a=1', trial: '3'});
  same(route.trialRoute(here, 7), {view: 'trial', experiment: 'x', query: {filter: 'a=1'}, number: 7});
});

test('terms of a filter are quoted where they need it', () => {
  same(filter.term('lr', '>=', 0.001), 'lr>=0.001');
  same(filter.term('top 5', '<', 0.1), '"top 5"<0.1');
  same(filter.term('a"b\\', '=', 'x y'), '"a\\"b\\\\"="x y"');
  same(filter.join(' a=1 ', undefined, '', 'b>2'), 'a=1 b>2');
  same(filter.rangeTerms({name: 'lr', choices: null}, 0.00123456789, 0.5), ['lr>=0.00123457', 'lr<=0.5']);
  same(filter.rangeTerms({name: 'opt', choices: ['sgd', 'adam', 'lion']}, 0.5, 1.5), ['opt=adam']);
  same(filter.rangeTerms({name: 'opt', choices: ['sgd', 'adam', 'lion']}, 0.5, 2.5), ['opt!=sgd']);
  same(filter.rangeTerms({name: 'on', choices: [false, true]}, 0.5, 1.5), ['on=true']);
});

test('requests have one key, and awkward names go by their place', () => {
  same(source.keyOf('/api/x', {b: 1, a: '', c: 'é&', d: null}), '/api/x?b=1&c=%C3%A9%26');
  const summary = {parameters: [{name: 'lr'}, {name: 'a,b'}, {name: 'L'.repeat(10000)}], metrics: ['loss', '@x']};
  same(['lr', 'a,b', 'L'.repeat(10000)].map((name) => source.parameterField(summary, name)), ['params.lr', 'params.@1', 'params.@2']);
  same(['loss', '@x'].map((name) => source.metricField(summary, name)), ['loss', '@1']);
});

// What a report has of an experiment of five trials.
const embeddedAnswers = () => {
  const rows = [3, 'NaN', 1, null, 2].map((value, trial) => ({trial, state: trial === 3 ? 'failed' : 'completed', value, values: [value], steps: trial, host: trial < 2 ? 'lab 1' : null, cause: trial === 3 ? 'out of memory' : null,
    notes: trial === 1 ? {good: true} : {}, params: {lr: 5 - trial, 'a,b': trial % 2 === 0 ? 'adam' : 'sgd w', on: trial > 2}}));
  return {
    '/api/summary?experiment=x': {objectives: [{metric: 'loss', mode: 'min'}], metrics: ['loss', 'L'.repeat(300)], parameters: [{name: 'lr'}, {name: 'a,b'}, {name: 'on'}]},
    '/api/trials?experiment=x': {total: 9, matching: 5, rows, cut: false},
    '/api/points?experiment=x': {trial: [0, 2, 4], state: ['completed', 'completed', 'completed'], shown: 3, matching: 9, columns: {duration: [1, 2, 3], '@0': [3, 1, 2], '@1': [7, 8, 9], 'params.@0': [5, 3, 1], 'params.@1': ['adam', 'adam', 'adam']}},
    '/api/curves?experiment=x&limit=100&metric=%400&x=step': {curves: [0, 2, 4].map((trial) => ({trial, x: [0], value: [1]})), bands: {x: [0]}, shown: 3, matching: 9},
    '/api/importance?experiment=x&metric=%401': {importance: []},
    '/api/now?experiment=x': {running: []},
    '/api/timeline?experiment=x': {segments: {}},
    '/api/trial?experiment=x&points=500&trial=2': {trial: 2, log_bytes: 99, curves: {loss: {}}},
    report: {written: 1.7e9, left_out: {x: ['4 of 9 trials', 'logs']}},
  };
};

test('a document with its answers needs no server', async () => {
  const from = embedded.embeddedSource(embeddedAnswers());
  const get = (path, parameters = {}) => from.get(path, {experiment: 'x', ...parameters});
  const trials = async (parameters) => (await get('/api/trials', parameters)).rows.map((row) => row.trial);
  same(await trials({sort: 'value', order: 'desc', limit: 3}), [0, 4, 2]);
  same(await trials({sort: 'value', limit: 5}), [2, 4, 0, 1, 3]);
  same(await trials({sort: 'params.lr', offset: 1, limit: 2}), [3, 2]);
  same(await trials({sort: 'params.@0', limit: 2}), [4, 3]);
  same(await trials({sort: 'loss', limit: 1}), [2]);
  same(await trials({sort: 'state', order: 'desc', limit: 1}), [3]);
  const filtered_ = await get('/api/trials', {filter: 'lr>=3', limit: 1});
  same([filtered_.matching, filtered_.total, filtered_.rows.length], [3, 9, 1]);
  same(await get('/api/now'), {running: []});
  same(await get('/api/timeline', {from: 1, to: 2, limit: 4000}), {segments: {}});
  const points = await get('/api/points', {fields: 'params.lr,params.@1,loss,@1,duration,params.gone'});
  same(points.columns, {'params.lr': [5, 3, 1], 'params.@1': ['adam', 'adam', 'adam'], loss: [3, 1, 2], '@1': [7, 8, 9], duration: [1, 2, 3], 'params.gone': [null, null, null]});
  same([points.shown, points.matching], [3, 9]);
  same((await get('/api/points', {fields: 'loss', filter: 'loss<3'})).columns, {loss: [1, 2]});
  same((await get('/api/curves', {metric: 'loss', x: 'step', limit: 300, filter: 'trial:2-4'})).curves.map((curve) => curve.trial), [2, 4]);
  same((await get('/api/importance', {metric: '@1'})).importance, []);
  same((await get('/api/trial', {trial: 2, points: 500})).log_bytes, 0);
  same((await get('/api/trial', {trial: 3, points: 500})).attempts, []);
  for (const [path, parameters] of [['/api/log', {trial: 1}], ['/api/trial', {trial: 8}], ['/api/curves', {metric: '@1', x: 'step'}], ['/api/edf', {metric: 'loss'}], ['/api/trials', {filter: 'nonsense>1'}]]) {
    let refused = false;
    try {
      await get(path, parameters);
    } catch (error) {
      refused = error instanceof source.Refused;
    }
    holds(refused, `${path} ${text(parameters)} is refused`);
  }
  same(reportNotice(from.report, 'x').text.endsWith('Left out: 4 of 9 trials; logs.'), true);
  same(reportNotice(from.report, null).text.includes('Left out'), false);
});

test('a filter without a server means what it means with one', () => {
  const answers = embeddedAnswers();
  const {rows} = answers['/api/trials?experiment=x'];
  const chosen = (filter) => rows.filter(match.matcher(filter, answers['/api/summary?experiment=x'], (row, metric) => (metric === 'loss' ? row.value : null))).map((row) => row.trial);
  for (const [filter, want] of [['', [0, 1, 2, 3, 4]], ['state:failed', [3]], ['host:"lab 1"', [0, 1]], ['trial:1-3', [1, 2, 3]], ['trial:4', [4]], ['note:good', [1]], ['lr>3', [0, 1]], ['lr<=2 lr!=1', [3]], ['lr=4', [1]], ['lr==4', [1]],
    ['"a,b"=adam', [0, 2, 4]], ['"a,b"!="sgd w"', [0, 2, 4]], ['on=true', [3, 4]], ['on=1', [3, 4]], ['memory', [3]], ['adam', [0, 2, 4]], ['"sgd w"', [1, 3]], ['loss<3', [2, 4]], ['loss=NaN', [1, 3]], ['loss!=NaN', [0, 2, 4]], ['loss<inf', [0, 2, 4]], ['loss>-Infinity', [0, 2, 4]], ['loss>inf', []], ['adam lr>1', [0, 2]], ['lr="4"', [1]]]) same(chosen(filter), want, filter);
  for (const filter of ['nonsense>1', 'state:gone', 'lr>adam', '"open', 'lr>', 'trial:x', 'colour:red', '>1', 'lr!1', 'lr<NaN']) {
    let message = '';
    try {
      chosen(filter);
    } catch (error) {
      message = error.message;
    }
    holds(/^the filter is not understood at character \d+: |is compared with/.test(message), `${filter}: ${message}`);
  }
});

test('how a run goes on is told once', () => {
  const at = (state, resumed = 0, folder = 'f') => ({state, resumed, folder});
  same(notice(null, at('running'), 0), null);
  same(notice(at('running'), at('running'), 0), null);
  same(notice(at('running'), at('ended', 0, 'other'), 0), null);
  holds(/^The run has ended \(/.test(notice(at('running'), at('ended'), 0).text), 'ended');
  holds(/killed/.test(notice(at('running'), at('killed'), 0).text), 'killed');
  holds(/resumed/.test(notice(at('killed'), at('running', 1), 0).text), 'resumed');
  holds(/resumed/.test(notice(at('running', 1), at('running', 2), 0).text), 'killed and resumed while nobody looked');
  holds(/goes on/.test(notice(at('paused'), at('running'), 0).text), 'a pause that ended');
});

test('ranks share ties, and go by the mode', () => {
  same(matters.ranks([1, 3, 2, 'NaN', null], 'max'), [0, 1, 0.5, null, null]);
  same(matters.ranks([1, 3, 2], 'min'), [1, 0, 0.5]);
  same(matters.ranks([1, 1, 2, 2], 'max').map((rank) => Number(rank.toFixed(3))), [0.167, 0.167, 0.833, 0.833]);
  same(matters.ranks([7], 'max'), [1]);
});

test('the front is what no other trial beats in both', () => {
  const points = [[1, 5], [2, 4], [2, 6], [3, 3], [4, 3], [5, 1]];
  same(tradeoffs.front(points, ['min', 'min']), [[1, 5], [2, 4], [3, 3], [5, 1]]);
  same(tradeoffs.front(points, ['max', 'max']), [[5, 1], [4, 3], [2, 6]]);
  same(tradeoffs.front(points, ['max', 'min']), [[5, 1]]);
  same(tradeoffs.stairs([[1, 5], [2, 4]]), [[1, 5], [2, 5], [2, 4]]);
});

test('parameters lie on their axes', () => {
  const log = base.scaleOf({kind: 'float', log: true, low: 1e-5, high: 0.1});
  same([log.at(1e-3), log.at(0), log.at('NaN'), log.low, log.high, log.text(-5)], [-3, null, null, -5, -1, '1e-5']);
  same(log.ticks, [-5, -4, -3, -2, -1]);
  const choice = base.scaleOf({kind: 'choice', choices: ['a', 'b', 3]});
  same([choice.at('b'), choice.at(3), choice.at('3'), choice.text(1)], [1, 2, null, 'b']);
  same(base.scaleOf({kind: 'bool'}).at(true), 1);
  same(base.decades(16, 1024).map((place) => Math.round(10 ** place)), [30, 100, 300, 1000]);
  same(base.decades(0, 1), undefined);
  same(base.pairs([1, 2, 3, 'NaN'], [0, 'Infinity', 5, 1], {logY: true, extra: (i) => [i]}), [[3, 5, 2]]);
  same(base.unfit([1, null, 'NaN', 0, -1], true), 3);
});

test('a surface follows its points, and is open where there are none', () => {
  const points = [];
  for (let i = 0; i <= 20; i += 1) for (let j = 0; j <= 20; j += 1) if (i < 10) points.push([i / 20, j / 20, i / 20]);
  const made = surface.grid(points, {low: [0, 0], high: [1, 1]}, 32);
  holds(Math.abs(made.values[16 * 32 + 4] - 4.5 / 32) < 0.03, `the surface is ${made.values[16 * 32 + 4]} where the points say ${4.5 / 32}`);
  same(made.values[16 * 32 + 31], null, 'far from all points');
  const {cells} = surface.levels(made, false, 5);
  holds(cells.every(([x0, x1, , , level]) => x1 > x0 && level >= 0 && level <= 1), 'cells are whole');
  holds(cells.filter((cell) => cell[4] === 1).every((cell) => cell[0] > 0.2), 'the best level lies where values are highest');
  same(surface.grid([[0, 0, 1], [1, 1, 2]], {low: [null, null], high: [null, null]}), null);
});

test('schedules of a population', () => {
  const events = [{trial: 1, step: 4, changes: {lr: [0.1, 0.2]}}, {trial: 1, step: 2, changes: {lr: [0.3, 0.1]}}, {trial: 2, step: 3, changes: {wd: [1, 2]}}];
  same([...happened.schedules(events, 'lr', new Map([[5, 0.7]]), 6)], [[1, [[0, 0.3], [2, 0.1], [4, 0.2], [6, 0.2]]], [5, [[0, 0.7], [6, 0.7]]]]);
});

test('a number stands on a piece of the timeline only where it has room, and times that differ look different', () => {
  const chart = (trial, look) => happened.timelineChart({lanes: [{host: 'h', slot: 0}], segments: {lane: [0], trial: [trial], start: [1.7e9], end: [1.7e9 + 3], kind: ['completed']}, hosts: []}, themes.light, {origin: 1.7e9, from: 0, to: 100, ...look});
  const label = (trial) => chart(trial).series.find((one) => one.id === 'segments').renderItem({dataIndex: 0, coordSys: {x: 0, width: 1000}}, {coord: ([x, y]) => [x * 10, y * 30], size: () => [0, 30]}).textContent?.style.text;
  same([label(7), label(12), label(12345)], ['7', '12', undefined]);
  for (const [look, times] of [[{to: 3}, [0, 0.5, 1, 1.5, 2, 2.5]], [{to: 2700, span: 4}, [1000, 1000.5, 1001, 1001.5]], [{to: 2700, span: 0.2}, [1000, 1000.05, 1000.1]], [{to: 2700}, [0, 500, 1000]]]) {
    const texts = times.map(chart(1, look).xAxis.axisLabel.formatter);
    same(new Set(texts).size, times.length, texts.join(', '));
  }
});

// Each chart, with what an experiment can bring: it is drawn as SVG, in both themes, and the SVG is well-formed XML.
const hostile = ['<img src=x onerror=alert(1)>', 'L'.repeat(10000), '</svg><script>window.pwned=1</script>', '\u202eevil \u05e9', '🦄 {a|b} {b} %s ${x} & "quotes\''];
const trials = Array.from({length: 30}, (_, i) => i);
const values = trials.map((i) => (i === 7 ? 'NaN' : i === 8 ? '-Infinity' : i === 9 ? null : Math.sin(i) + 1));
const states = trials.map((i) => ['completed', 'stopped', 'failed', 'running', 'paused'][i % 5]);
const parameters = [{name: hostile[0], kind: 'float', log: true, low: 1e-4, high: 1, field: 'a'}, {name: hostile[1], kind: 'choice', choices: hostile, field: 'b'}, {name: 'on', kind: 'bool', field: 'c'}];
const columns = {a: trials.map((i) => 10 ** (-4 + i / 8)), b: trials.map((i) => hostile[i % 5]), c: trials.map((i) => i % 2 === 0), m: values};
const points = {x: trials, value: values, state: states, trial: trials};
const charts = {
  best: (n, metric) => (theme) => best.bestChart({metric, mode: 'max', x: trials.slice(0, n), value: values.slice(0, n), points: n === 0 ? {x: [], value: [], state: [], trial: []} : points}, theme, {x: 'trial', pick: 3}),
  compare: (n, metric) => (theme) => best.compareChart([metric, `${metric}2`].map((name) => ({name, objective: {x: trials.slice(0, n), value: values.slice(0, n)}})), theme, {metric}),
  curves: (n, metric) => (theme) => curves.curvesChart({curves: trials.slice(0, n).map((trial) => ({trial, state: states[trial], x: trials, value: values})), bands: {x: trials.slice(0, n), p10: values, p50: values, p90: values, n: trials}, cuts: [{trial: 1, step: 2, value: 0.5, needed: 0.7}]}, theme, {metric, best: 4, pick: 2}),
  rungs: (n) => (theme) => curves.rungsChart({rungs: n === 0 ? [] : [{step: 1, reached: 9, promoted: 3, stopped: 6, paused: 0, threshold: null}]}, theme),
  trial: (n, metric) => (theme) => curves.trialCurve({step: trials.slice(0, n), time: trials, value: values.slice(0, n), marks: [3]}, theme, {metric}),
  importance: (n) => (theme) => matters.importanceChart({importance: parameters.slice(0, n).map((parameter, i) => ({name: parameter.name, value: i / 10}))}, theme, {chosen: [hostile[0]]}),
  slices: (n, metric) => (theme) => matters.sliceChart({trial: trials.slice(0, n), parameters, columns: parameters.map((parameter) => columns[parameter.field].slice(0, n)), values: values.slice(0, n)}, theme, {metric, columns: 2}),
  contour: (n, metric) => (theme) => matters.pairChart({trial: trials.slice(0, n), x: {parameter: parameters[0], values: columns.a.slice(0, n)}, y: {parameter: parameters[1], values: columns.b.slice(0, n)}, values: values.slice(0, n)}, theme, {metric, mode: 'max'}),
  rank: (n, metric) => (theme) => matters.pairChart({trial: trials.slice(0, n), x: {parameter: parameters[0], values: columns.a.slice(0, n)}, y: {parameter: parameters[2], values: columns.c.slice(0, n)}, values: values.slice(0, n)}, theme, {metric, mode: 'min', kind: 'rank'}),
  against: (n, metric) => (theme) => matters.againstChart({trial: trials.slice(0, n), state: states, x: values.slice(0, n), y: values.slice(0, n)}, theme, {x: metric, y: metric}),
  edf: (n, metric) => (theme) => matters.edfChart([{name: metric, value: trials.slice(0, n), share: trials.map((i) => i / 30)}], theme, {metric}),
  parallel: (n, metric) => (theme) => parallel.parallelChart({trial: trials.slice(0, n), state: states, parameters, metrics: [{name: metric, field: 'm'}], columns}, theme, {metric: 'm', mode: 'max', pick: 2}),
  front: (n, metric) => (theme) => tradeoffs.frontChart({trial: trials.slice(0, n), state: states, x: values.slice(0, n), y: trials.slice(0, n), members: null}, theme, {x: metric, y: metric, modes: ['max', 'min']}),
  hypervolume: (n) => (theme) => tradeoffs.hypervolumeChart({x: trials.slice(0, n), value: trials}, theme),
  timeline: (n, metric) => (theme) => happened.timelineChart({lanes: [{host: metric, slot: 0}, {host: 'b', slot: 0}], segments: {lane: trials.slice(0, n).map((i) => i % 2), trial: trials.slice(0, n), start: trials, end: trials.map((i) => i + 2), kind: trials.map((i) => happened.kinds[i % 7])}, hosts: [{host: metric, gained: 1, lost: 5, why: metric}]}, theme, {origin: 0, from: 0, to: 40}),
  use: (n) => (theme) => happened.useChart({time: trials.slice(0, n), busy: trials, pending: trials, slots: trials}, theme, {origin: 0}),
  lineage: (n, metric) => (theme) => happened.lineageChart({population: trials.slice(0, n).map((i) => ({trial: i % 5, donor: (i + 2) % 5, step: i, changes: {[metric]: [1, 2]}})), rows: [0, 1, 2, 3, 4]}, theme, {pick: 1}),
  schedule: (n, metric) => (theme) => happened.scheduleChart(new Map(trials.slice(0, n).map((i) => [i, [[0, 1], [i + 1, 2]]])), theme, {name: metric, log: true, best: 1}),
};
for (const [name, make] of Object.entries(charts)) {
  test(`chart ${name} draws none, one and many, whatever they are called`, () => {
    for (const n of [0, 1, 30]) {
      for (const metric of n === 30 ? hostile : ['loss']) {
        for (const theme of Object.values(themes)) {
          const instance = globalThis.echarts.init(null, null, {renderer: 'svg', ssr: true, width: 640, height: 360});
          instance.setOption(make(n, metric)(theme));
          const svg = instance.renderToSVGString();
          instance.dispose();
          const parsed = new DOMParser().parseFromString(svg, 'image/svg+xml');
          const wrong = parsed.querySelector('parsererror');
          holds(!wrong, `${name} with ${n} of ${metric.slice(0, 30)} is no XML: ${wrong?.textContent.slice(0, 200)}`);
          holds(parsed.querySelector('script, img, foreignObject') === null, `${name} has an element made of a name`);
          if (n === 30) holds(parsed.querySelectorAll('path, polyline, circle, rect').length > 3, `${name} drew nothing`);
          holds(!/NaN|undefined/.test([...parsed.querySelectorAll('path')].map((path) => path.getAttribute('d')).join('')), `${name} draws to a place that is no number`);
        }
      }
    }
  });
}

test('charts need no page', async () => {
  const worker = new Worker('/tests/worker.js', {type: 'module'});
  const got = await new Promise((resolve, reject) => {
    worker.onmessage = ({data}) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message ?? 'the worker failed'));
  });
  worker.terminate();
  same(got.page, 'undefined');
  holds(got.charts >= 14 && got.series > 3, text(got));
});

test('tooltips are made of rows, for every chart', () => {
  const seen = [];
  const theme = {...themes.light, tip: (rows) => seen.push(rows)};
  for (const make of Object.values(charts)) {
    const option = make(30, 'loss')(theme);
    for (const series of option.series) {
      const first = series.data?.find?.((item) => item && (Array.isArray(item) || Array.isArray(item.value)));
      if (!first || series.silent || series.tooltip?.show === false) continue;
      const params = {value: first.value ?? first, data: first, seriesId: series.id, seriesName: series.name ?? series.id, seriesIndex: 0, dataIndex: 0};
      option.tooltip?.formatter?.(option.tooltip.trigger === 'axis' ? [params] : params);
    }
  }
  holds(seen.length > 15 && seen.flat().every((row) => Array.isArray(row) && row.length === 2), `${seen.length} tooltips`);
});

const results = [];
for (const [name, body] of cases) {
  try {
    await body();
    results.push([name, null]);
  } catch (error) {
    results.push([name, `${error.message}\n${error.stack}`]);
  }
}
holds(globalThis.pwned === undefined, 'a script of a name ran');
globalThis.results = results;
