// Builds filter texts: terms separated by spaces. The server parses them.

const plain = /^[^\s"<>=!:]+$/;

function quote(text) {
  return plain.test(text) ? text : `"${text.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`;
}

export const term = (name, op, value) => `${quote(name)}${op}${typeof value === 'number' ? String(value) : quote(String(value))}`;

export const join = (...parts) => parts.map((part) => (part ?? '').trim()).filter((part) => part !== '').join(' ');

// A range of an axis as terms. `axis`: {name, choices|null, log}; `from` and `to` in the axis's units; choices count from 0.
// Choices outside of the range are excluded one by one, because all terms must hold and there is no "or".
export function rangeTerms(axis, from, to) {
  if (axis.choices) {
    const inside = (place) => place >= from && place <= to;
    const kept = axis.choices.filter((_, place) => inside(place));
    if (kept.length === 1) return [term(axis.name, '=', kept[0])];
    return axis.choices.filter((_, place) => !inside(place)).map((choice) => term(axis.name, '!=', choice));
  }
  const digits = (value) => Number(value.toPrecision(6));
  return [term(axis.name, '>=', digits(from)), term(axis.name, '<=', digits(to))];
}
