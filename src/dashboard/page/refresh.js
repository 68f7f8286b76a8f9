// When a view reloads its data: at once for an action of the user, otherwise as often as it is fast enough and visible.
import {Refused} from './source.js';

export function makeRefresher(app, shell) {
  let view = null;
  let running = null;
  let timer = null;
  let retry = false;   // the timer is the retry after a failure
  let again = false;
  let took = 0;
  let failures = 0;

  async function refresh() {
    clearTimeout(timer);
    timer = null;
    retry = false;
    running?.abort();
    again = false;
    const own = new AbortController();
    running = own;
    const target = view;
    const started = performance.now();
    try {
      await shell.load(own.signal);
      if (own.signal.aborted || view !== target) return;
      await target.refresh(own.signal);
      if (own.signal.aborted) return;
      failures = 0;
      shell.loaded();
      shell.problem(null);
    } catch (error) {
      if (own.signal.aborted || error.name === 'AbortError') return;
      shell.problem(error.message, error instanceof Refused);
      if (!(error instanceof Refused)) {
        if (!(error instanceof TypeError && /fetch/i.test(error.message))) console.error(error);
        failures += 1;
        if (app.source.live) {
          timer = setTimeout(refresh, Math.min(15000, 1000 * 2 ** failures));
          retry = true;
        }
      }
    } finally {
      if (running === own) {
        running = null;
        took = performance.now() - started;
        document.documentElement.dataset.refreshed = String(Number(document.documentElement.dataset.refreshed ?? 0) + 1);
        if (again) soon();
      }
    }
  }

  // Limits refreshing to a fifth of the time.
  function soon() {
    if (running) {
      again = true;
      return;
    }
    if (timer !== null && !retry) return;
    clearTimeout(timer);   // an event of a change means that the server can be reached again
    timer = null;
    retry = false;
    if (document.hidden) {
      again = true;
      return;
    }
    timer = setTimeout(refresh, Math.min(10000, Math.max(400, took * 4)));
  }

  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && again) refresh();
  });

  return {
    use(next) {
      view = next;
      took = 0;
      refresh();
    },
    now: refresh,
    soon,
  };
}
