// The address holds what the page shows: #/e/EXPERIMENT/VIEW?key=value. No browser globals, so that it can be tested
// alone.

export const views = ['overview', 'trials', 'trial', 'curves', 'matters', 'tradeoffs', 'happened'];

// These parameters of a view are kept when another view of the same experiment is opened.
const kept = ['filter', 'brush', 'trial'];

const decode = (text) => {
  try {
    return decodeURIComponent(text.replace(/\+/g, ' '));
  } catch {
    return text;  // an invalid % typed by the user
  }
};

export function parse(hash) {
  const text = hash.replace(/^#?\/?/, '');
  const at = text.indexOf('?');
  const path = (at < 0 ? text : text.slice(0, at)).split('/').filter((part) => part !== '').map(decode);
  const query = {};
  if (at >= 0) {
    for (const pair of text.slice(at + 1).split('&')) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const key = decode(equals < 0 ? pair : pair.slice(0, equals));
      query[key] = equals < 0 ? '' : decode(pair.slice(equals + 1));
    }
  }
  if (path[0] === 'compare') return {view: 'compare', experiment: null, query};
  if (path[0] !== 'e' || path.length < 2) return {view: 'experiments', experiment: null, query};
  const view = views.includes(path[2]) ? path[2] : 'overview';
  const route = {view, experiment: path[1], query};
  if (view === 'trial') {
    const number = /^\d+$/.test(path[3] ?? '') ? Number(path[3]) : null;
    if (number === null) return {view: 'trials', experiment: path[1], query};
    route.number = number;
  }
  return route;
}

export function format(route) {
  const pairs = Object.entries(route.query ?? {})
    .filter(([, value]) => value !== '' && value !== null && value !== undefined)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
  const query = pairs.length === 0 ? '' : `?${pairs.join('&')}`;
  if (route.view === 'experiments') return `#/${query}`;
  if (route.view === 'compare') return `#/compare${query}`;
  const number = route.view === 'trial' ? `/${route.number}` : '';
  return `#/e/${encodeURIComponent(route.experiment)}/${route.view}${number}${query}`;
}

// The address of another view; keeps the filter and the chosen trial.
export function to(route, view, query = {}) {
  const along = {};
  if (view !== 'trial') {
    for (const key of kept) if (route.query[key]) along[key] = route.query[key];
  } else if (route.query.filter) {
    along.filter = route.query.filter;
  }
  return {view, experiment: route.experiment, query: {...along, ...query}};
}

export const trialRoute = (route, number) => ({...to(route, 'trial'), number});
