// Starts the page: the source of answers, the address that says what to show, and the events of changes.
import {makeShell} from './shell.js';
import {embeddedSource} from './embedded.js';
import {liveSource} from './source.js';
import {parse, format, to, trialRoute} from './route.js';
import {listen, helpOverlay} from './keys.js';
import {matcher} from './match.js';
import {copy} from './dom.js';
import {makeTheme} from './appearance.js';
import {makeRefresher} from './refresh.js';
import {withoutState} from './notices.js';
import {views} from './views/all.js';

const embedded = document.getElementById('hypertune-answers');

const app = {
  source: embedded ? embeddedSource(JSON.parse(embedded.textContent)) : liveSource(),
  route: parse(location.hash),
  experiments: null,
  summary: null,
  charts: new Set(),
  theme: null,
  root: document.body,

  // While a filter is being typed it is often invalid. It is checked here before it is sent, because browsers log a
  // refused request as an error of the page.
  async get(path, parameters = {}, signal = undefined) {
    if (parameters.filter && app.summary && app.source.live) matcher(parameters.filter, app.summary, () => null);
    return app.source.get(path, {experiment: app.route.experiment, ...parameters}, signal);
  },
  // Changes the view's part of the address, without a new entry in the history.
  set(patch, {refresh = true} = {}) {
    app.route.query = {...app.route.query, ...patch};
    history.replaceState(null, '', format(app.route));
    app.route = parse(location.hash);
    shell.sync();
    if (refresh) refresher.now();
  },
  go(route) {
    location.hash = format(route);
  },
  open: (view, query) => app.go(to(app.route, view, query)),
  href: (view, query) => format(to(app.route, view, query)),
  trialHref: (number) => format(trialRoute(app.route, number)),
  openTrial: (number) => app.go(trialRoute(app.route, number)),
  // The trial that charts mark and the side panel shows.
  picked: () => (/^\d+$/.test(app.route.query.trial ?? '') ? Number(app.route.query.trial) : null),
  pick(number) {
    if (app.route.view === 'trial') {
      if (number !== null) app.openTrial(number);
      return;
    }
    if (app.route.view === 'compare' || app.route.view === 'experiments') return;
    app.set({trial: number === null ? '' : String(number)});
  },
  say: (text) => shell.say(text),
};

const appearance = makeTheme(app);
const shell = makeShell(app, appearance);
const refresher = makeRefresher(app, shell);
app.refresh = () => refresher.now();

let view = null;
let mounted = '';

function mount() {
  const {route} = app;
  const name = `${route.view} ${route.experiment ?? ''} ${route.number ?? ''}`;
  if (name === mounted) {
    shell.sync();
    refresher.now();
    return;
  }
  const other = mounted !== '' && mounted.split(' ')[1] !== (route.experiment ?? '');
  if (other) app.summary = null;
  mounted = name;
  view?.dispose?.();
  for (const chart of [...app.charts]) chart.dispose();
  view = views[route.view](app);
  shell.mount(view);
  refresher.use(view);
}

window.addEventListener('hashchange', () => {
  app.route = parse(location.hash);
  mount();
});

const numbered = ['overview', 'trials', 'curves', 'matters', 'tradeoffs', 'happened'];
const inExperiment = (action) => (event) => (app.route.experiment === null ? false : action(event));
const besides = (step) => inExperiment(() => (view?.step ? view.step(step) : shell.step(step)));

listen({
  ...Object.fromEntries(numbered.map((name, i) => [String(i + 1), inExperiment(() => app.open(name))])),
  7: () => app.go({view: 'compare', query: app.route.experiment ? {e: JSON.stringify([app.route.experiment])} : {}}),
  e: () => app.go({view: 'experiments', query: {}}),
  '/': () => shell.focusFilter(),
  j: besides(1),
  k: besides(-1),
  b: inExperiment(() => {
    const best = app.summary?.best?.[0];
    if (best) app.pick(best.trial);
  }),
  Enter: inExperiment((event) => {
    if (app.picked() === null || event.target.closest('a, button, summary, select')) return false;
    app.openTrial(app.picked());
    return true;
  }),
  Escape: () => shell.escape(),
  t: () => appearance.next(),
  l: async () => app.say(await copy(location.href) ? 'The link of this view is copied.' : 'The link could not be copied.'),
  '?': () => helpOverlay(app),
});

async function start() {
  if (location.search !== '') history.replaceState(null, '', location.pathname + location.hash);  // see boot.js
  // An address without a route shows the only experiment, if there is just one.
  if (location.hash.replace(/^#?\/?/, '') === '') {
    try {
      await shell.loadExperiments();
    } catch {
      // The refresher tries again and reports the error.
    }
    if (app.experiments?.length === 1) {
      app.route = {view: 'overview', experiment: app.experiments[0].id, query: {}};
      history.replaceState(null, '', format(app.route));
    }
  }
  mount();
  app.source.watch({
    changed(event) {
      shell.changed(event);
      if (event.experiment === app.route.experiment || app.route.view === 'compare' || app.route.view === 'experiments') refresher.soon();
    },
    experiments() {
      refresher.soon();
    },
    state(which) {
      const again = shell.connection(which);
      if (again) refresher.now();
    },
  });
}

window.addEventListener('error', (event) => withoutState(app, event));
start();
