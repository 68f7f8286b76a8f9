// Answers from a report: the document itself. It contains fewer answers than a server gives, and derives others from
// them.
import {matcher} from './match.js';
import {keyOf, Refused} from './source.js';

const absent = () => new Refused('This is not in the report. `hypertune dashboard` shows it from the experiment\'s folder.');

const states = ['pending', 'running', 'paused', 'completed', 'stopped', 'failed'];
const missing = (value) => value === null || value === undefined || value === 'NaN';

// answers: {key of the request: answer}, and `report`: {written, left_out: {experiment: [text]}}. Columns and metrics
// are named by their index (`params.@2`, `@0`), because names can have any length.
export function embeddedSource(answers) {
  const plain = (path, experiment, parameters = {}) => answers[keyOf(path, {experiment, ...parameters})];
  const summaryOf = (experiment) => plain('/api/summary', experiment) ?? {objectives: [], parameters: [], metrics: []};

  // Converts a request's name of a column to its index.
  function placed(experiment, field) {
    if (['trial', 'state', 'steps', 'value', 'duration', 'failures'].includes(field)) return field;
    const {parameters, metrics} = summaryOf(experiment);
    if (field.startsWith('params.')) {
      const at = parameters.findIndex((one) => one.name === field.slice(7));
      return at >= 0 ? `params.@${at}` : field;
    }
    const at = metrics.indexOf(field);
    return at >= 0 ? `@${at}` : field;
  }

  // The trials of the report that match a filter. -> function of a trial's id
  function chosen(experiment, filter) {
    if (!filter) return () => true;
    const rows = plain('/api/trials', experiment)?.rows ?? [];
    const points = plain('/api/points', experiment);
    const at = new Map((points?.trial ?? []).map((trial, i) => [trial, i]));
    const summary = summaryOf(experiment);
    const holds = matcher(filter, summary, (row, metric) => {
      const objective = summary.objectives.findIndex((one) => one.metric === metric);
      return objective >= 0 ? row.values[objective] : points?.columns[placed(experiment, metric)]?.[at.get(row.trial)] ?? null;
    });
    const own = new Set(rows.filter(holds).map((row) => row.trial));
    return (trial) => own.has(trial);
  }

  function trials({experiment, filter, sort = 'trial', order = 'asc', offset = 0, limit = 100}) {
    const all = plain('/api/trials', experiment);
    if (!all) throw absent();
    const {parameters, objectives, metrics} = summaryOf(experiment);
    const column = placed(experiment, sort);
    const metric = /^@\d+$/.test(column) ? metrics[Number(column.slice(1))] : null;
    const objective = objectives.findIndex((one) => one.metric === metric);
    const of = (row) => {
      if (column.startsWith('params.@')) return row.params[parameters[Number(column.slice(8))]?.name];
      if (column === 'state') return states.indexOf(row.state);
      return objective >= 0 ? row.values?.[objective] : row[column];
    };
    const own = chosen(experiment, filter);
    const rows = all.rows.filter((row) => own(row.trial)).sort((a, b) => {
      const [x, y] = [of(a), of(b)];
      if (missing(x) || missing(y)) return Number(missing(x)) - Number(missing(y)) || a.trial - b.trial;
      return (x < y ? -1 : x > y ? 1 : 0) * (order === 'desc' ? -1 : 1) || a.trial - b.trial;
    });
    return {...all, matching: rows.length, rows: rows.slice(offset, Number(offset) + Number(limit))};
  }

  function points({experiment, fields, filter}) {
    const all = plain('/api/points', experiment);
    if (!all) throw absent();
    const own = chosen(experiment, filter);
    const kept = all.trial.map((_, i) => i).filter((i) => own(all.trial[i]));
    const list = (column) => kept.map((i) => column[i]);
    const columns = {};
    for (const field of fields.split(',')) {
      const column = all.columns[placed(experiment, field)];
      columns[field] = column ? list(column) : kept.map(() => null);
    }
    return {...all, trial: list(all.trial), state: list(all.state), columns, shown: kept.length, matching: filter ? kept.length : all.matching};
  }

  function curves({experiment, metric, x = 'step', limit = 100, filter}) {
    const field = placed(experiment, metric);
    const found = plain('/api/curves', experiment, {metric: field, x, limit}) ?? plain('/api/curves', experiment, {metric: field, x, limit: 100});
    if (!found) throw absent();
    if (!filter) return found;
    const own = chosen(experiment, filter);
    const kept = found.curves.filter((curve) => own(curve.trial));
    return {...found, curves: kept, bands: null, shown: kept.length, matching: kept.length};
  }

  // The known data of a trial whose own answer was left out of the report.
  function trial({experiment, trial: number}) {
    const row = plain('/api/trials', experiment)?.rows.find((one) => one.trial === Number(number));
    if (!row) throw absent();
    return {...row, metrics: {}, curves: {}, attempts: [], checkpoints: [], lineage: [], log_bytes: 0, waits_for: null, created: null, started: null};
  }

  return {
    live: false,
    report: answers.report ?? null,
    async get(path, parameters = {}) {
      const {experiment} = parameters;
      if (path === '/api/trials') return trials(parameters);
      if (path === '/api/points') return points(parameters);
      if (path === '/api/curves') return curves(parameters);
      if (path === '/api/trial') {
        const whole = answers[keyOf(path, {...parameters, points: 500})];
        return whole ? {...whole, log_bytes: 0} : trial(parameters);   // a report has no logs
      }
      if (parameters.metric !== undefined) {
        const found = plain(path, experiment, {metric: placed(experiment, parameters.metric)});
        if (found) return found;
      }
      const exact = answers[keyOf(path, parameters)];
      if (exact !== undefined) return exact;
      // The chart cuts out the requested time range itself.
      const whole = path === '/api/timeline' ? plain(path, experiment) : undefined;
      if (whole !== undefined) return whole;
      throw absent();
    },
    watch() {
      return () => {};
    },
  };
}
