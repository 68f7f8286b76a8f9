// A surface through scattered points, for contours: weighted by distance, and only near the points.

// points: [[x, y, value]]; range: {low: [x, y], high: [x, y]} (null: that of the points). -> {x, y, n, values} or null
export function grid(points, range, n = 64) {
  if (points.length < 4) return null;
  const ends = [0, 1].map((axis) => {
    const all = points.map((point) => point[axis]);
    const low = range.low[axis] ?? Math.min(...all);
    const high = range.high[axis] ?? Math.max(...all);
    return high > low ? [low, high] : null;
  });
  if (ends.includes(null)) return null;
  const unit = points.map((point) => [(point[0] - ends[0][0]) / (ends[0][1] - ends[0][0]), (point[1] - ends[1][0]) / (ends[1][1] - ends[1][0]), point[2]]);
  // With few points the kernel is wide. Nothing is drawn farther than 2.5 widths from the nearest point.
  const width = Math.min(0.16, Math.max(0.05, 0.9 / Math.sqrt(points.length)));
  const values = new Array(n * n).fill(null);
  for (let j = 0; j < n; j += 1) {
    for (let i = 0; i < n; i += 1) {
      const x = (i + 0.5) / n;
      const y = (j + 0.5) / n;
      let sum = 0;
      let weights = 0;
      let nearest = Infinity;
      for (const point of unit) {
        const distance = (point[0] - x) ** 2 + (point[1] - y) ** 2;
        if (distance < nearest) nearest = distance;
        const weight = Math.exp(-distance / (2 * width * width)) + 1e-12;
        sum += weight * point[2];
        weights += weight;
      }
      if (nearest <= (2.5 * width) ** 2) values[j * n + i] = sum / weights;
    }
  }
  return {n, values, low: [ends[0][0], ends[1][0]], high: [ends[0][1], ends[1][1]]};
}

// The surface in steps: cells [x0, x1, y0, y1, from 0 (bad) to 1 (good)]; neighbours of the same level in a row are
// merged.
export function levels(surface, descending, steps) {
  const known = surface.values.filter((value) => value !== null);
  if (known.length === 0) return {cells: []};
  // The worst 5 % share a colour, so that one diverged trial does not make all others look alike.
  const sorted = [...known].sort((a, b) => a - b);
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
  const [low, high] = descending ? [sorted[0], at(0.95)] : [at(0.05), sorted[sorted.length - 1]];
  const level = (value) => {
    if (value === null) return null;
    const part = high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 1;
    const good = descending ? 1 - part : part;
    return Math.min(steps - 1, Math.floor(good * steps)) / (steps - 1);
  };
  const {n} = surface;
  const edge = (axis, i) => surface.low[axis] + ((surface.high[axis] - surface.low[axis]) * i) / n;
  const cells = [];
  for (let j = 0; j < n; j += 1) {
    for (let i = 0; i < n;) {
      const own = level(surface.values[j * n + i]);
      let end = i + 1;
      while (end < n && level(surface.values[j * n + end]) === own) end += 1;
      if (own !== null) cells.push([edge(0, i), edge(0, end), edge(1, j), edge(1, j + 1), own]);
      i = end;
    }
  }
  return {cells, low, high};
}
