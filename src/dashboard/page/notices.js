// What the page says above a view: the connection, and how the run goes on or ended.
import {clock, moment} from './format.js';

const words = {
  running: ['good', 'The run goes on.'],
  paused: ['calm', 'The run is paused: it starts nothing until it is told to go on.'],
  ended: ['good', 'The run has ended.'],
  interrupted: ['warn', 'The run was interrupted. `hypertune run --resume` goes on with it.'],
  killed: ['bad', 'The run was killed: its driver is gone without a word. `hypertune run --resume` goes on with it.'],
  failed: ['bad', 'The run ended with an error.'],
};

// What to say when an experiment's summary takes the place of an earlier one; null: nothing.
export function notice(before, after, now) {
  if (!before || before.folder !== after.folder || before.state === 'reading' || after.state === 'reading') return null;
  const resumed = (after.resumed ?? 0) > (before.resumed ?? 0);
  if (before.state === after.state && !resumed) return null;
  const at = ` (${clock(now)})`;
  if (after.state === 'running' && (resumed || before.state !== 'paused')) return {tone: 'good', text: `The run was resumed${at}.`};
  const [tone, text] = words[after.state] ?? ['calm', `The run is now: ${after.state}.`];
  return {tone, text: text.replace('.', `${at}.`)};
}

// What a report says of itself: of when it is, and what of an experiment had no room.
export function reportNotice(report, experiment) {
  const left = experiment === null ? [] : report.left_out?.[experiment] ?? [];
  return {tone: 'calm', text: `A report of ${moment(report.written)}: nothing in it changes.${left.length > 0 ? ` Left out: ${left.join('; ')}.` : ''}`};
}

// An error of the page itself: said once, for a person who would report it.
export function withoutState(app, event) {
  if (app.broken || !event.message || /ResizeObserver/.test(event.message)) return;
  app.broken = true;
  app.say(`The page has a fault: ${event.message}. Reloading may help.`);
}
