// Without a page: what draws charts must not need one.
import {themes} from '/page/theme.js';

const modules = await Promise.all(['best', 'curves', 'matters', 'parallel', 'tradeoffs', 'happened', 'surface', 'base'].map((name) => import(`/page/charts/${name}.js`)));
const points = {x: [0, 1], value: [1, 2], state: ['completed', 'failed'], trial: [0, 1]};
const option = modules[0].bestChart({metric: 'loss', mode: 'min', x: [0, 1], value: [2, 1], points}, themes.dark, {});
postMessage({page: typeof document, charts: modules.flatMap((module) => Object.keys(module)).filter((name) => name.endsWith('Chart')).length, series: option.series.length});
