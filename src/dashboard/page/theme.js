// The colours of the page and of its charts; the CSS variables are set from here. States have the same colour in both
// themes; they can be told apart with colour blindness too. src/plot has the light ones for paper.

// Without quotation marks, which would end the SVG attribute that contains the names.
const font = 'Inter, system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Noto Sans, DejaVu Sans, sans-serif';

const light = {
  name: 'light',
  font,
  bg: '#f6f6f3',
  panel: '#ffffff',
  sunk: '#f0f0ec',
  ink: '#1c2024',
  ink2: '#565d65',
  ink3: '#7c838b',
  line: '#dfe0db',
  line2: '#ecece8',
  accent: '#1d5fa8',
  accentInk: '#ffffff',
  accentWeak: '#e4eef9',
  best: '#c9651a',
  warn: '#8a5a00',
  warnWeak: '#fdf3dc',
  bad: '#b5371f',
  badWeak: '#fbe9e4',
  states: {
    running: '#12866a', completed: '#3273b8', stopped: '#98a1ab', paused: '#c08a1e', pending: '#cfd4d9', failed: '#c4432b',
    preempted: '#8a5fb5', lost: '#d0789a', pause: '#e7dcc2',
  },
  series: ['#1d5fa8', '#d07a1f', '#12866a', '#a8408f', '#c4432b', '#708a1c', '#3a9fc4', '#7a6652', '#5b5bd0', '#8f949a'],
  // From bad to good, with even steps in lightness, so that it can be read in grey too.
  scale: ['#e9e6f0', '#c4cfe6', '#8fb8d6', '#4f9dbf', '#1f7fa0', '#0c5c7c', '#08395a'],
};

const dark = {
  name: 'dark',
  font,
  bg: '#131618',
  panel: '#1a1e21',
  sunk: '#15181b',
  ink: '#e6e8ea',
  ink2: '#a9b0b7',
  ink3: '#868e96',
  line: '#30363b',
  line2: '#252a2e',
  accent: '#7ab2f2',
  accentInk: '#0e1a28',
  accentWeak: '#1d2f45',
  best: '#f2994a',
  warn: '#e8bd62',
  warnWeak: '#352b16',
  bad: '#f28570',
  badWeak: '#3a211c',
  states: {
    running: '#35b893', completed: '#5b9be0', stopped: '#98a2ac', paused: '#d9a53a', pending: '#454c53', failed: '#e8654c',
    preempted: '#ab86d6', lost: '#d98aa8', pause: '#4b432f',
  },
  series: ['#6aa7ee', '#f0a04f', '#3cc29c', '#d97cc4', '#ee7a63', '#a8c24a', '#63c3e6', '#b89d84', '#9a9af0', '#a5abb1'],
  scale: ['#2b2a3a', '#2f3f63', '#2f5f8c', '#2f85ab', '#3fabbd', '#79cfc4', '#cdf0d3'],
};

export const themes = {light, dark};
