// The messages above a view: the connection, and changes of the run's state.
import {clock, moment} from './format.js';

const words = {
  running: ['good', 'The run goes on.'],
  paused: ['calm', 'The run is paused: it starts nothing until it is told to go on.'],
  ended: ['good', 'The run has ended.'],
  interrupted: ['warn', 'The run was interrupted. `hypertune run --resume` goes on with it.'],
  killed: ['bad', 'The run was killed: its driver is gone without a word. `hypertune run --resume` goes on with it.'],
  failed: ['bad', 'The run ended with an error.'],
};

// The message for a summary that replaces an earlier one; null: none.
export function notice(before, after, now) {
  if (!before || before.folder !== after.folder || before.state === 'reading' || after.state === 'reading') return null;
  const resumed = (after.resumed ?? 0) > (before.resumed ?? 0);
  if (before.state === after.state && !resumed) return null;
  const at = ` (${clock(now)})`;
  if (after.state === 'running' && (resumed || before.state !== 'paused')) return {tone: 'good', text: `The run was resumed${at}.`};
  const [tone, text] = words[after.state] ?? ['calm', `The run is now: ${after.state}.`];
  return {tone, text: text.replace('.', `${at}.`)};
}

// The message of a report: its date, and what was left out of it.
export function reportNotice(report, experiment) {
  const left = experiment === null ? [] : report.left_out?.[experiment] ?? [];
  return {tone: 'calm', text: `A report of ${moment(report.written)}: nothing in it changes.${left.length > 0 ? ` Left out: ${left.join('; ')}.` : ''}`};
}

// Reports an error of the page itself, once, so that the user can report it.
export function withoutState(app, event) {
  if (app.broken || !event.message || /ResizeObserver/.test(event.message)) return;
  app.broken = true;
  app.say(`The page has a fault: ${event.message}. Reloading may help.`);
}
