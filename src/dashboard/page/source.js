// Where answers come from: the server that the page is from, or the document itself (a report, which has no server).
// A source has: live, get(path, parameters, signal) -> Promise of the answer, watch({changed, experiments, state}) -> stop().

export class Refused extends Error {}  // the server understood, and said no: its message is for the person

// One text for one request, whatever the order of its parameters.
export function keyOf(path, parameters = {}) {
  const pairs = Object.entries(parameters)
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

export function liveSource(base = '') {
  return {
    live: true,
    async get(path, parameters, signal) {
      const response = await fetch(base + keyOf(path, parameters), {signal, headers: {Accept: 'application/json'}, cache: 'no-store'});
      let answer;
      try {
        answer = await response.json();
      } catch (error) {
        if (error.name === 'AbortError') throw error;
        throw new Error(`The server's answer to ${path} cannot be read (status ${response.status}).`);
      }
      if (!response.ok) {
        const text = typeof answer?.error === 'string' ? answer.error : `The server answered with status ${response.status}.`;
        throw response.status < 500 ? new Refused(text) : new Error(text);
      }
      return answer;
    },
    watch({changed, experiments, state}) {
      let stream = null;
      let timer = null;
      let wait = 1000;
      const open = () => {
        stream = new EventSource(`${base}/events`);
        stream.onopen = () => {
          wait = 1000;
          state('open');
        };
        stream.addEventListener('changed', (event) => changed(JSON.parse(event.data)));
        stream.addEventListener('experiments', () => experiments());
        stream.onerror = () => {
          state('lost');
          // The browser's own attempts end when a server answers with anything but a stream.
          stream.close();
          clearTimeout(timer);
          timer = setTimeout(open, wait);
          wait = Math.min(15000, wait * 2);
        };
      };
      open();
      return () => {
        clearTimeout(timer);
        stream.close();
      };
    },
  };
}

// answers: {key of the request: answer}. For /api/trials one answer has all rows, and is sorted and cut here.
export function embeddedSource(answers) {
  return {
    live: false,
    async get(path, parameters = {}) {
      const exact = answers[keyOf(path, parameters)];
      if (exact !== undefined) return exact;
      if (path === '/api/trials' && !parameters.filter) {
        const all = answers[keyOf(path, {experiment: parameters.experiment})];
        if (all) return sorted(all, parameters);
      }
      const plain = answers[keyOf(path, {experiment: parameters.experiment})];
      if (plain !== undefined && !parameters.filter && parameters.trial === undefined) return plain;
      throw new Refused('This is not in the report. `hypertune dashboard` shows it from the experiment\'s folder.');
    },
    watch() {
      return () => {};
    },
  };
}

function sorted(all, {sort = 'trial', order = 'asc', offset = 0, limit = 100}) {
  const of = (row) => (sort.startsWith('params.') ? row.params[sort.slice(7)] : row[sort]);
  const missing = (value) => value === null || value === undefined || value === 'NaN';
  const rows = [...all.rows].sort((a, b) => {
    const [x, y] = [of(a), of(b)];
    if (missing(x) || missing(y)) return Number(missing(x)) - Number(missing(y)) || a.trial - b.trial;
    return (x < y ? -1 : x > y ? 1 : 0) * (order === 'desc' ? -1 : 1) || a.trial - b.trial;
  });
  return {...all, rows: rows.slice(offset, offset + limit)};
}

// Names of parameters and metrics as requests have them: what would be ambiguous or too long goes by its place.
const awkward = (name) => name.length > 80 || /[,"@]/.test(name);

export const parameterField = (summary, name) => {
  const place = summary.parameters.findIndex((parameter) => parameter.name === name);
  return awkward(name) && place >= 0 ? `params.@${place}` : `params.${name}`;
};

export const metricField = (summary, name) => {
  const place = summary.metrics.indexOf(name);
  return awkward(name) && place >= 0 ? `@${place}` : name;
};
