// Formats numbers, times and names for people. No browser globals.

// JSON has no NaN: non-finite values come as text.
export function finite(value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

// `digits` significant digits, without trailing zeros; exponents in the short form 1e-5.
export function number(value, digits = 5) {
  if (value === null || value === undefined) return '–';
  if (value === 'Infinity' || value === Infinity) return '∞';
  if (value === '-Infinity' || value === -Infinity) return '−∞';
  if (typeof value !== 'number') return String(value);
  if (Number.isNaN(value)) return 'NaN';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return count(value);
  if (size < 1e-3 || size >= 1e7) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split('e');
    return minus(`${mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa}e${Number(exponent)}`);
  }
  const rounded = Number(value.toPrecision(digits));
  return Number.isInteger(rounded) ? count(rounded) : minus(String(rounded));
}

const minus = (text) => text.replace(/^-/, '−');

export function count(value) {
  if (value === null || value === undefined) return '–';
  const digits = Math.abs(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
  return value < 0 ? `−${digits}` : digits;
}

export function share(value) {
  const known = finite(value);
  if (known === null) return '–';
  const percent = known * 100;
  return `${percent > 0 && percent < 1 ? '<1' : Math.round(percent)}\u202f%`;
}

// The two largest units: 3 h 05 min.
export function duration(seconds) {
  const known = finite(seconds);
  if (known === null) return '–';
  if (known < 0) return `−${duration(-known)}`;
  if (known < 1) return known === 0 ? '0 s' : `${Math.max(1, Math.round(known * 1000))} ms`;
  if (known < 10) return `${number(known, 2)} s`;
  const whole = Math.round(known);
  if (whole < 60) return `${whole} s`;
  const pad = (n) => String(n).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} min`;
  return `${Math.floor(whole / 86400)} d ${pad(Math.floor((whole % 86400) / 3600))} h`;
}

export function bytes(value) {
  const known = finite(value);
  if (known === null) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let amount = known;
  let unit = 0;
  while (amount >= 1000 && unit + 1 < units.length) {
    amount /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? amount : number(amount, 3)} ${units[unit]}`;
}

// Simulations count from 0; everything else is seconds since 1970.
const isClock = (unix) => unix > 1e8;

const two = (n) => String(n).padStart(2, '0');

export function day(unix) {
  const date = new Date(unix * 1000);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function clock(unix, seconds = true) {
  const known = finite(unix);
  if (known === null) return '–';
  if (!isClock(known)) return duration(known);
  const date = new Date(known * 1000);
  return `${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ''}`;
}

export function moment(unix) {
  const known = finite(unix);
  if (known === null) return '–';
  return isClock(known) ? `${day(known)} ${clock(known)}` : duration(known);
}

export function ago(unix, now) {
  const known = finite(unix);
  if (known === null || !isClock(known)) return '';
  const past = now - known;
  return past < 5 ? 'just now' : `${duration(past)} ago`;
}

// A value of a parameter. Text is not changed.
export function setting(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'number') return number(value);
  if (typeof value === 'object') return JSON.stringify(value);
  return String(value);
}

// Shortens labels; never splits a character.
export function short(text, length = 28) {
  const characters = Array.from(String(text).slice(0, 4 * length + 4));
  return characters.length <= length ? characters.join('') : `${characters.slice(0, length - 1).join('')}…`;
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// Appended to "there is no …": " yet" as long as the run has not ended.
export const yet = (summary) => (summary?.state === 'ended' ? '' : ' yet');
