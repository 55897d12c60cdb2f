// Times of a name in each iteration, as a line and as a distribution.

import type { Recording, Track } from "./recording";
import type { Row } from "./row";

export const WARMUP = 1;
export const CUT = 2;

export interface Series {
  process: number;
  place: Float64Array; // which iteration
  ns: Float64Array;
  flags: Uint8Array;
}

/** The names with a series in any process: the whole iteration first, then by total time. */
export function seriesNames(recording: Recording): string[] {
  const totals = new Map<string, number>();
  for (const track of seriesTracks(recording)) {
    track.labels.forEach((label, i) => {
      const row = track.rows[i];
      let sum = 0;
      for (let k = 0; k < row.n; k++) sum += row.duration(k);
      totals.set(label, (totals.get(label) ?? 0) + sum);
    });
  }
  return [...totals.keys()].sort((a, b) => (totals.get(b) ?? 0) - (totals.get(a) ?? 0));
}

export function seriesTracks(recording: Recording): Track[] {
  return recording.tracks.filter((track) => track.kind === "series" && track.rows.length > 0);
}

function fromRow(process: number, row: Row): Series {
  return {
    process,
    place: row.start,
    ns: Float64Array.from({ length: row.n }, (_, i) => row.duration(i)),
    flags: Uint8Array.from(row.id),
  };
}

/** One series for each process that has the name. */
export function seriesOf(recording: Recording, name: string): Series[] {
  return seriesTracks(recording).flatMap((track) => {
    const i = track.labels.indexOf(name);
    return i < 0 ? [] : [fromRow(track.process, track.rows[i])];
  });
}

/** About `most` points that look the same: minimum and maximum of each interval. */
export function thin(x: Float64Array, y: Float64Array, most: number): [number[], number[]] {
  const n = x.length;
  if (n <= most) return [Array.from(x), Array.from(y)];
  const step = Math.ceil((2 * n) / most);
  const xs: number[] = [], ys: number[] = [];
  for (let from = 0; from < n; from += step) {
    let low = from, high = from;
    for (let i = from; i < Math.min(n, from + step); i++) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
    }
    for (const i of low < high ? [low, high] : low > high ? [high, low] : [low]) {
      xs.push(x[i]);
      ys.push(y[i]);
    }
  }
  return [xs, ys];
}

export interface Histogram {
  from: number; // of the first bin
  width: number;
  counts: number[];
  above: number; // beyond the last bin
}

/** Intervals of iterations that were warm-up in any process: first and last of each. */
export function warmups(series: Series[]): [number, number][] {
  const places = new Set(series.flatMap((s) => Array.from(s.place).filter((_, i) => (s.flags[i] & WARMUP) !== 0)));
  const spans: [number, number][] = [];
  for (const place of [...places].sort((a, b) => a - b)) {
    const last = spans[spans.length - 1];
    if (last !== undefined && place === last[1] + 1) last[1] = place;
    else spans.push([place, place]);
  }
  return spans;
}

/** Times that count: not warm-up and not truncated. */
export function counted(series: Series[]): Float64Array {
  const values = series.flatMap((s) => Array.from(s.ns).filter((_, i) => s.flags[i] === 0));
  return Float64Array.from(values).sort();
}

/**
 * Bins from the minimum on. They end far above the upper quartile, so that a few long ones do not compress the rest.
 * `sorted` is ascending.
 */
export function histogram(sorted: Float64Array, bins: number): Histogram {
  const n = sorted.length;
  if (n === 0) return { from: 0, width: 1, counts: [], above: 0 };
  const at = (share: number): number => sorted[Math.min(n - 1, Math.floor(n * share))];
  const fence = Math.max(at(0.75) + 4 * (at(0.75) - at(0.25)), at(0.95));
  const low = sorted[0], high = Math.min(sorted[n - 1], fence);
  const width = Math.max((high - low) / bins, low > 0 ? low * 1e-6 : 1);
  const counts = new Array<number>(bins).fill(0);
  let above = 0;
  for (const value of sorted) {
    const bin = Math.floor((value - low) / width);
    if (value > high) above++;
    else counts[Math.min(bin, bins - 1)]++;
  }
  return { from: low, width, counts, above };
}
