// Where answers come from: the server that the page is from, or the document itself (embedded.js: a report, which has no server).
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
