// Filters in the browser, with the same syntax and meaning as in src/dashboard/filter.cpp. A report has no server; with
// a server, this keeps invalid filters from being sent.
import {Refused} from './source.js';

const space = (c) => c === ' ' || c === '\t' || c === '\n' || c === '\r';
const states = ['pending', 'running', 'paused', 'completed', 'stopped', 'failed'];

function unlimited(text) {
  const [, sign] = /^(-?)inf(?:inity)?$/i.exec(text) ?? [];
  return sign === undefined ? null : sign === '-' ? -Infinity : Infinity;
}

const wrong = (at, what) => {
  throw new Refused(`the filter is not understood at character ${at + 1}: ${what}`);
};

// -> [{kind: 'state'|'host'|'trial'|'note'|'compare'|'word', at, text, name, op, number, first, last}]
export function terms(text) {
  const out = [];
  let at = 0;
  const ended = () => at === text.length || space(text[at]);

  function piece(name) {
    let found = '';
    if (text[at] !== '"') {
      while (!ended() && text[at] !== '"' && !(name && '<>=!:'.includes(text[at]))) found += text[at++];
      return found;
    }
    const open = at++;
    for (; at < text.length && text[at] !== '"'; at += 1) {
      if (text[at] === '\\' && at + 1 < text.length) at += 1;
      found += text[at];
    }
    if (at === text.length) wrong(open, 'these quotes are not closed');
    at += 1;
    return found;
  }

  function valued(after) {
    if (ended()) wrong(at, `a value is missing after '${after}'`);
    const quoted = text[at] === '"';
    const value = piece(false);
    if (!ended()) wrong(at, 'a space is expected there, or quotes round the value');
    return [value, quoted];
  }

  function keyed(term, key) {
    [term.text] = valued(`${key}:`);
    if (!['state', 'host', 'note', 'trial'].includes(key)) wrong(term.at, `there is no '${key}:', only state:, host:, trial: and note:; put quotes round a name that has a colon`);
    term.kind = key;
    if (key === 'state' && !states.includes(term.text)) wrong(term.at, `there is no state '${term.text}': ${states.join(', ')}`);
    if (key === 'trial') {
      const range = /^(\d+)(?:-(\d+))?$/.exec(term.text);
      if (!range) wrong(term.at, 'trial: is followed by a number, or by two with a \'-\' between them');
      term.first = Number(range[1]);
      term.last = Number(range[2] ?? range[1]);
    }
    return term;
  }

  function term() {
    const one = {at, kind: 'word'};
    const quoted = text[at] === '"';
    const first = piece(true);
    if (text[at] === ':' && !quoted) {
      at += 1;
      return keyed(one, first);
    }
    if (ended()) return {...one, text: first};
    if (first === '') wrong(one.at, 'a name is missing before the comparison');
    const op = ['<=', '>=', '!=', '==', '<', '>', '='].find((candidate) => text.startsWith(candidate, at));
    if (op === undefined) wrong(at, 'a comparison is expected there: = != < <= > >=');
    at += op.length;
    const [value, literal] = valued(first);
    const number = literal ? null : /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value) ? Number(value) : unlimited(value);
    return {...one, kind: 'compare', name: first, op: op === '==' ? '=' : op, text: value, number};
  }

  for (;;) {
    while (at < text.length && space(text[at])) at += 1;
    if (at === text.length) return out;
    out.push(term());
  }
}

const compare = {'=': (a, b) => a === b, '!=': (a, b) => a !== b, '<': (a, b) => a < b, '<=': (a, b) => a <= b, '>': (a, b) => a > b, '>=': (a, b) => a >= b};
const numbers = {NaN, Infinity, '-Infinity': -Infinity};

// metricOf(row, metric): a trial's value. -> function of a row of /api/trials: whether all terms hold
export function matcher(filter, summary, metricOf) {
  const all = terms(filter).map((term) => {
    if (term.kind !== 'compare') return term;
    const parameter = summary.parameters.some((one) => one.name === term.name);
    if (!parameter && !summary.metrics.includes(term.name)) wrong(term.at, `'${term.name}' is neither a parameter nor a metric`);
    const ordering = term.op !== '=' && term.op !== '!=';
    if (ordering && term.number === null) wrong(term.at, `'${term.name}' is compared with '${term.text}', which is no number`);
    return {...term, parameter, ordering};
  });

  function compared(term, row) {
    if (!term.parameter) {
      const told = metricOf(row, term.name);
      const value = told === null || told === undefined ? NaN : numbers[told] ?? told;
      if (term.number === null) return (term.text === 'NaN') === (term.op === '=') ? Number.isNaN(value) : !Number.isNaN(value);
      return compare[term.op](value, term.number);
    }
    const value = row.params[term.name];
    if (value === undefined || value === null) return false;
    if (typeof value === 'number' && term.number !== null) return compare[term.op](value, term.number);
    if (typeof value === 'boolean' && term.number !== null) return compare[term.op](Number(value), term.number);
    return !term.ordering && compare[term.op](String(value), term.text);
  }

  function holds(term, row) {
    switch (term.kind) {
      case 'state': return row.state === term.text;
      case 'host': return row.host === term.text;
      case 'trial': return row.trial >= term.first && row.trial <= term.last;
      case 'note': return Object.hasOwn(row.notes ?? {}, term.text);
      case 'compare': return compared(term, row);
      default: return Object.values(row.params).some((value) => typeof value === 'string' && value.includes(term.text)) || (row.cause ?? '').includes(term.text);
    }
  }
  return (row) => all.every((term) => holds(term, row));
}
