// Light and dark theme: the system's setting or the user's choice; always light in print.
import {themes} from './theme.js';

const order = ['auto', 'light', 'dark'];

export function makeTheme(app) {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const listeners = new Set();
  let printing = false;
  let choice = 'auto';
  try {
    const stored = localStorage.getItem('hypertune-theme');
    if (order.includes(stored)) choice = stored;
  } catch {
    // Storage may be forbidden; then the choice lasts until the page is left.
  }

  const wanted = () => (printing ? 'light' : choice === 'auto' ? (system.matches ? 'dark' : 'light') : choice);

  function apply() {
    const theme = themes[wanted()];
    if (app.theme === theme) return;
    app.theme = theme;
    const {style} = document.documentElement;
    style.colorScheme = theme.name;
    document.documentElement.dataset.theme = theme.name;
    for (const [key, value] of Object.entries(theme)) if (typeof value === 'string' && value.startsWith('#')) style.setProperty(`--${key}`, value);
    for (const [key, value] of Object.entries(theme.states)) style.setProperty(`--state-${key}`, value);
    style.setProperty('--font', theme.font);
    theme.scale.forEach((color, i) => style.setProperty(`--scale-${i}`, color));
    theme.series.forEach((color, i) => style.setProperty(`--series-${i}`, color));
    for (const chart of app.charts) chart.redraw();
  }

  system.addEventListener('change', apply);
  window.addEventListener('beforeprint', () => {
    printing = true;
    apply();
  });
  window.addEventListener('afterprint', () => {
    printing = false;
    apply();
  });
  apply();
  return {
    get choice() {
      return choice;
    },
    next() {
      choice = order[(order.indexOf(choice) + 1) % order.length];
      try {
        localStorage.setItem('hypertune-theme', choice);
      } catch {
        // Storage may be forbidden, as above.
      }
      apply();
      listeners.forEach((listener) => listener(choice));
    },
    onchange: (listener) => listeners.add(listener),
  };
}
