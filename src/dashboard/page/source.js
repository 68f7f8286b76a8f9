// Where answers come from: the server that the page comes from, or the document itself (embedded.js: a report has no
// server). A source has: live, get(path, parameters, signal) -> Promise of the answer, watch({changed, experiments,
// state}) -> stop().

export class Refused extends Error {}  // the server understood the request and refused it: the message is for the user

// The same text for the same request, in whatever order its parameters are.
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
          // The browser stops its own attempts when a server answers with anything but a stream.
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

// Names of parameters and metrics in requests: a name that would be ambiguous or too long is replaced by its index.
const awkward = (name) => name.length > 80 || /[,"@]/.test(name);

export const parameterField = (summary, name) => {
  const place = summary.parameters.findIndex((parameter) => parameter.name === name);
  return awkward(name) && place >= 0 ? `params.@${place}` : `params.${name}`;
};

export const metricField = (summary, name) => {
  const place = summary.metrics.indexOf(name);
  return awkward(name) && place >= 0 ? `@${place}` : name;
};
