// One trial on its own page.
import {makeTrial} from './trial_parts.js';

export function trial(app) {
  const {number} = app.route;
  const parts = makeTrial(app, number);
  return {
    ...parts,
    step(by) {
      const total = Object.values(app.summary?.counts ?? {}).reduce((a, b) => a + b, 0);
      const next = number + by;
      if (next >= 0 && next < total) app.openTrial(next);
    },
  };
}
