// The frame around each view: the experiment and its state, tabs, filter, notices, and the side panel of a trial.
import {fill, h, hint, icon, name} from './dom.js';
import {ago, clock, count, number, share} from './format.js';
import {format, to} from './route.js';
import {helpOverlay} from './keys.js';
import {Refused} from './source.js';
import {notice, reportNotice} from './notices.js';
import {makeTrial} from './views/trial_parts.js';

const tabs = [
  ['overview', 'Overview'], ['trials', 'Trials'], ['curves', 'Curves'], ['matters', 'What matters'], ['tradeoffs', 'Trade-offs'], ['happened', 'What happened'],
];
const filtered = new Set(['trials', 'curves', 'matters']);

export function makeShell(app, appearance) {
  const identity = h('div', {class: 'identity'});
  const pulse = h('div', {class: 'pulse', 'aria-live': 'off'});
  const link = h('span', {class: 'link', title: 'Live connection'});
  const themeButton = h('button', {type: 'button', class: 'quiet icon-button', data: {action: 'theme'}, onclick: () => appearance.next()});
  const helpButton = h('button', {type: 'button', class: 'quiet icon-button', 'aria-label': 'Keyboard and filters', title: 'Keyboard and filters (?)', data: {action: 'help'}, onclick: () => helpOverlay(app)}, '?');
  const nav = h('nav', {class: 'tabs', 'aria-label': 'Views'});
  const filterBox = h('input', {type: 'search', id: 'filter', spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', placeholder: 'Filter: state:completed lr>0.001', 'aria-label': 'Filter trials', 'aria-describedby': 'filter-error'});
  const filterError = h('p', {id: 'filter-error', class: 'filter-error', role: 'alert', hidden: true});
  const filter = h('div', {class: 'filter', role: 'search'}, icon('search'), filterBox);
  const notices = h('div', {class: 'notices'});
  const toast = h('div', {class: 'toast', role: 'status', 'aria-live': 'polite'});
  const main = h('main', {id: 'main', tabindex: -1});
  const side = h('aside', {class: 'side', 'aria-label': 'The chosen trial', hidden: true});
  const skip = h('a', {class: 'skip', href: '#main', onclick: (event) => { event.preventDefault(); main.focus(); }}, 'To the view');
  app.root.append(skip, h('header', {class: 'top'}, h('div', {class: 'bar'}, identity, pulse, h('div', {class: 'actions'}, link, themeButton, helpButton)),
    h('div', {class: 'bar second'}, nav, filter)), filterError, notices, h('div', {class: 'body'}, main, side), toast);

  let messages = {report: null, connection: null, run: null, problem: null};
  let reportOf;            // the experiment to which the report's notice belongs
  let lostAt = null;
  let typing = null;
  let toastTimer = null;
  let peek = null;
  let opener = null;

  const paintTheme = () => {
    const which = appearance.choice;
    themeButton.replaceChildren(icon({auto: 'auto', light: 'sun', dark: 'moon'}[which]));
    const text = {auto: 'Colours: as the system has them', light: 'Colours: light', dark: 'Colours: dark'}[which];
    themeButton.title = `${text} (t)`;
    themeButton.setAttribute('aria-label', text);
  };
  appearance.onchange(paintTheme);
  paintTheme();

  function paintNotices() {
    fill(notices, messages, () => Object.entries(messages).filter(([, one]) => one).map(([kind, one]) => h('div', {class: `notice ${one.tone}`, role: 'status', data: {notice: kind}},
      h('span', null, one.text), kind === 'run' || kind === 'report' ? h('button', {type: 'button', class: 'quiet small', data: {key: kind}, 'aria-label': 'Dismiss', onclick: () => tell(kind, null)}, icon('close')) : null)));
  }

  function tell(kind, message) {
    messages = {...messages, [kind]: message};
    paintNotices();
  }

  function paintIdentity() {
    const {route, summary, experiments} = app;
    fill(identity, [route.experiment, route.view, summary?.name, summary?.folder, experiments?.length], () => [
      h('a', {class: 'brand', href: '#/', data: {key: 'brand'}, title: 'All experiments (e)'}, h('svg', {viewBox: '0 0 32 32', width: 20, height: 20, 'aria-hidden': 'true'},
        h('rect', {width: 32, height: 32, rx: 7, class: 'brand-back'}), h('path', {d: 'M6 24V17h6v-5h6V9h8', class: 'brand-line'}), h('circle', {cx: 26, cy: 9, r: 3.2, class: 'brand-dot'})), h('span', null, 'hypertune')),
      route.experiment !== null ? [h('span', {class: 'slash', 'aria-hidden': 'true'}, '/'),
        h('h1', {title: hint(summary?.folder ?? route.experiment)}, name(summary?.name ?? route.experiment))] : [h('span', {class: 'slash', 'aria-hidden': 'true'}, '/'), h('h1', null, route.view === 'compare' ? 'Compare' : 'Experiments')],
    ]);
    document.title = `${route.experiment !== null ? `${String(summary?.name ?? route.experiment).slice(0, 80)} – ` : ''}hypertune`;
  }

  function paintPulse() {
    const {summary} = app;
    if (!summary || app.route.experiment === null) {
      fill(pulse, null, () => []);
      return;
    }
    const finished = summary.counts.completed + summary.counts.stopped + summary.counts.failed;
    const all = summary.planned || Object.values(summary.counts).reduce((a, b) => a + b, 0);   // 0: no limit
    const best = summary.best?.[0];
    const objective = summary.objectives[0];
    const several = summary.objectives.length > 1;
    fill(pulse, [summary.state, finished, all, best?.trial, best?.value, summary.best?.length, summary.reading ?? null, several], () => [
      h('span', {class: 'run-state', data: {run: summary.state}}, h('i', {class: 'dot', 'aria-hidden': 'true'}), summary.state),
      h('span', {class: 'wide', title: 'Trials that have ended, of those planned'}, `${count(finished)} of ${count(all)}`),
      best && !several ? h('a', {class: 'wide best', href: app.trialHref(best.trial), data: {key: 'best'}, title: hint(`The best ${objective.metric}: trial ${best.trial}`)}, number(best.value)) : null,
      several && summary.best.length > 0 ? h('a', {class: 'wide best', href: app.href('tradeoffs'), data: {key: 'best'}}, `${summary.best.length} on the front`) : null,
      summary.reading ? h('span', {class: 'wide muted'}, `reading the record: ${share(summary.reading.of > 0 ? summary.reading.read / summary.reading.of : 0)}`) : null,
    ]);
  }

  function paintTabs() {
    const {route} = app;
    const list = route.experiment !== null ? tabs.map(([view, text], i) => [view, text, String(i + 1), format(to(route, view))]) : [];
    const several = (app.experiments?.length ?? 0) > 1;
    if (several && route.experiment === null) list.push(['experiments', 'Experiments', 'e', '#/']);
    if (several) list.push(['compare', 'Compare', '7', format({view: 'compare', query: route.experiment !== null ? {e: JSON.stringify([route.experiment])} : route.view === 'compare' ? route.query : {}})]);
    const current = route.view === 'trial' ? 'trials' : route.view;
    if (fill(nav, [list, current], () => list.map(([view, text, key, href]) => h('a', {href, data: {key: view, view}, 'aria-current': view === current ? 'page' : null, title: `${text} (${key})`}, text)))) {
      nav.querySelector('[aria-current]')?.scrollIntoView?.({block: 'nearest', inline: 'nearest'});
    }
  }

  function paintFilter() {
    const on = filtered.has(app.route.view);
    filter.hidden = !on;
    if (!on) filterError.hidden = true;
    if (document.activeElement !== filterBox) filterBox.value = app.route.query.filter ?? '';
    filter.classList.toggle('active', filterBox.value !== '');
  }

  filterBox.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => app.set({filter: filterBox.value.trim()}), 250);
  });
  filterBox.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') {
      clearTimeout(typing);
      app.set({filter: filterBox.value.trim()});
    } else if (event.key === 'Escape') {
      event.stopPropagation();
      event.preventDefault();
      if (filterBox.value === '') {
        filterBox.blur();
        main.focus({preventScroll: true});
      }
      filterBox.value = '';
      clearTimeout(typing);
      app.set({filter: ''});
    }
  });

  async function paintPeek(signal) {
    const number = app.route.view === 'trial' || app.route.experiment === null ? null : app.picked();
    if (number === null) {
      peek?.dispose();
      peek = null;
      side.hidden = true;
      side.replaceChildren();
      document.documentElement.classList.remove('peeking');
      return;
    }
    if (peek?.number !== number || peek?.experiment !== app.route.experiment) {
      if (!peek) opener = document.activeElement;
      peek?.dispose();
      peek = Object.assign(makeTrial(app, number, {compact: true}), {number, experiment: app.route.experiment});
      const hadFocus = side.contains(document.activeElement);
      side.replaceChildren(peek.element);
      side.hidden = false;
      document.documentElement.classList.add('peeking');
      if (hadFocus) side.querySelector('a, button')?.focus({preventScroll: true});
    }
    await peek.refresh(signal);
  }

  const shell = {
    sync() {
      paintIdentity();
      paintPulse();
      paintTabs();
      paintFilter();
      if (app.source.report && reportOf !== app.route.experiment) {
        reportOf = app.route.experiment;
        tell('report', reportNotice(app.source.report, reportOf));
      }
      if (app.picked() === null) paintPeek();
    },
    mount(view) {
      filterError.hidden = true;
      messages = {...messages, problem: null};
      paintNotices();
      main.className = `view view-${app.route.view} loading`;
      main.replaceChildren(view.element);
      window.scrollTo(0, 0);
      shell.sync();
    },
    async loadExperiments(signal) {
      app.experiments = (await app.source.get('/api/experiments', {}, signal)).experiments;
    },
    // Loads what every view needs first.
    async load(signal) {
      const {experiment} = app.route;
      const list = experiment === null || app.experiments === null ? shell.loadExperiments(signal) : null;
      // The views of an experiment do not wait for the list; the tabs are updated when it arrives.
      list?.then(() => shell.sync(), () => {});
      if (experiment !== null) {
        const summary = await app.get('/api/summary', {}, signal);
        if (signal.aborted || app.route.experiment !== experiment) return;
        if (summary.error) {   // the experiment is unreadable: it is loaded again at the next event of a change
          app.summary = null;
          await list;
          shell.sync();
          throw new Refused(summary.error);
        }
        const told = notice(app.summary, summary, Date.now() / 1000);
        if (told) tell('run', told);
        else if (app.summary && app.summary.folder !== summary.folder) tell('run', null);
        app.summary = summary;
      }
      if (experiment === null) await list;
      shell.sync();
      paintPeek(signal).catch((error) => {
        if (error.name === 'AbortError') return;
        side.replaceChildren(h('div', {class: 'peek-error'}, h('p', null, error.message), h('button', {type: 'button', onclick: () => app.pick(null)}, 'Close')));
      });
    },
    // A view is hidden until it has data, because empty boxes say nothing.
    loaded() {
      main.classList.remove('loading');
    },
    changed() {},
    // -> whether to reload the view, because the connection is back
    connection(which) {
      link.dataset.link = which;
      link.textContent = which === 'open' ? 'live' : 'no connection';
      if (which === 'open') {
        const again = lostAt !== null;
        lostAt = null;
        tell('connection', null);
        if (again) shell.say('The connection is back.');
        return again;
      }
      lostAt ??= Date.now() / 1000;
      tell('connection', {tone: 'warn', text: `The connection to the server was lost at ${clock(lostAt)}; what is shown is from then. Trying again…`});
      return false;
    },
    // A refused request is mostly due to a filter that is being typed, so its error is shown beside the filter.
    problem(text, refused = false) {
      const atFilter = text !== null && refused && filtered.has(app.route.view) && (app.route.query.filter ?? '') !== '';
      filterError.hidden = !atFilter;
      filterError.textContent = atFilter ? text : '';
      filterBox.setAttribute('aria-invalid', String(atFilter));
      tell('problem', text === null || atFilter || lostAt !== null ? null : {tone: 'bad', text});
    },
    say(text) {
      toast.textContent = text;
      toast.classList.add('shown');
      clearTimeout(toastTimer);
      toastTimer = setTimeout(() => toast.classList.remove('shown'), 4000);
    },
    focusFilter() {
      if (filter.hidden) return false;
      filterBox.focus();
      filterBox.select();
      return true;
    },
    escape() {
      if (document.activeElement === filterBox) return false;
      if (app.picked() !== null && app.route.view !== 'trial') {
        const back = opener;
        app.pick(null);
        if (back?.isConnected) back.focus({preventScroll: true});
        return true;
      }
      if (app.route.view === 'trial') app.open('trials', {trial: String(app.route.number)});
      return true;
    },
    // For views without a table: steps through trials by id.
    step(by) {
      const at = app.picked();
      const total = Object.values(app.summary?.counts ?? {}).reduce((a, b) => a + b, 0);
      if (total === 0) return;
      app.pick(at === null ? 0 : Math.min(total - 1, Math.max(0, at + by)));
    },
    freshness: () => (app.summary ? ago(app.summary.updated, Date.now() / 1000) : ''),
  };
  link.dataset.link = app.source.live ? 'opening' : 'none';
  link.hidden = !app.source.live;
  link.textContent = app.source.live ? '…' : '';
  return shell;
}
