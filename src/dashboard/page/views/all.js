// The views by their names in the address.
import {overview} from './overview.js';
import {trials} from './trials.js';
import {trial} from './trial.js';
import {curves} from './curves.js';
import {matters} from './matters.js';
import {tradeoffs} from './tradeoffs.js';
import {happened} from './happened.js';
import {compare} from './compare.js';
import {experiments} from './experiments.js';

export const views = {overview, trials, trial, curves, matters, tradeoffs, happened, compare, experiments};
