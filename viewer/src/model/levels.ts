// Levels of detail of a row. At each level, neighbors that begin within its resolution and are shorter than it form one
// block, so that any window has only a few blocks per pixel.

import type { Row } from "./row";

export interface Level {
  resolution: number; // nanoseconds
  n: number;
  start: Float64Array;
  end: Float64Array;
  busy: Float64Array; // time covered by events
  first: Uint32Array; // its first event in the row; it extends to that of the next block
  longest: Uint32Array; // its longest event, which determines the color
}

const FEW = 4096; // rows or levels with fewer events are drawn directly

/** The 5 % quantile of the distance between events. */
function closeness(row: Row): number {
  const samples: number[] = [];
  const reach = 8;
  const step = Math.max(1, Math.floor((row.n - reach) / 1000));
  for (let i = 0; i + reach < row.n; i += step) samples.push(row.start[i + reach] - row.start[i]);
  samples.sort((a, b) => a - b);
  return Math.max(1, samples[Math.floor(samples.length / 20)] ?? 1);
}

class Builder {
  n = 0;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly busy: Float64Array;
  readonly first: Uint32Array;
  readonly longest: Uint32Array;

  constructor(room: number) {
    this.start = new Float64Array(room);
    this.end = new Float64Array(room);
    this.busy = new Float64Array(room);
    this.first = new Uint32Array(room);
    this.longest = new Uint32Array(room);
  }

  /** The result, in arrays trimmed to size. */
  finish(resolution: number): Level {
    const n = this.n;
    return {
      resolution,
      n,
      start: this.start.slice(0, n),
      end: this.end.slice(0, n),
      busy: this.busy.slice(0, n),
      first: this.first.slice(0, n),
      longest: this.longest.slice(0, n),
    };
  }
}

/** Merge events; null if this needs more blocks than `room`. */
function fromRow(row: Row, resolution: number, room: number): Level | null {
  const out = new Builder(room);
  const { start, busy, first, longest } = out;
  let k = -1, limit = -Infinity, best = 0;
  for (let i = 0; i < row.n; i++) {
    const begin = row.start[i], length = row.duration(i), stop = begin + length;
    if (begin >= limit || length >= resolution) {
      if (++k === room) return null;
      start[k] = begin;
      out.end[k] = stop;
      busy[k] = length;
      first[k] = longest[k] = i;
      best = length;
      limit = length >= resolution ? -Infinity : begin + resolution;
      continue;
    }
    if (stop > out.end[k]) out.end[k] = stop;
    busy[k] += length;
    if (length > best) {
      best = length;
      longest[k] = i;
    }
  }
  out.n = k + 1;
  return out.finish(resolution);
}

/** Merge blocks of a finer level. */
function fromLevel(fine: Level, row: Row, resolution: number, room: number): Level | null {
  const out = new Builder(room);
  const { start, busy, first, longest } = out;
  let k = -1, limit = -Infinity, best = 0;
  for (let i = 0; i < fine.n; i++) {
    const begin = fine.start[i], stop = fine.end[i], length = stop - begin;
    const top = row.duration(fine.longest[i]);
    if (begin >= limit || length >= resolution) {
      if (++k === room) return null;
      start[k] = begin;
      out.end[k] = stop;
      busy[k] = fine.busy[i];
      first[k] = fine.first[i];
      longest[k] = fine.longest[i];
      best = top;
      limit = length >= resolution ? -Infinity : begin + resolution;
      continue;
    }
    if (stop > out.end[k]) out.end[k] = stop;
    busy[k] += fine.busy[i];
    if (top > best) {
      best = top;
      longest[k] = fine.longest[i];
    }
  }
  out.n = k + 1;
  return out.finish(resolution);
}

/** The levels of a row, finest first; none for a row of few events. A level is kept if it has at most half the blocks
 * of the one below. */
export function buildLevels(row: Row): Level[] {
  const levels: Level[] = [];
  if (row.n <= FEW || row.bits !== null) return levels;
  const span = row.end(row.n - 1) - row.start[0];
  let n = row.n;
  for (let resolution = closeness(row); n > FEW && resolution < span; resolution *= 4) {
    const below = levels[levels.length - 1];
    const room = Math.floor(n / 2);
    const level = below ? fromLevel(below, row, resolution, room) : fromRow(row, resolution, room);
    if (level === null) continue;
    levels.push(level);
    n = level.n;
  }
  return levels;
}

/** The coarsest level without visible loss at this many nanoseconds per pixel; null: the events. */
export function levelFor(levels: Level[], nsPerPixel: number): Level | null {
  let best: Level | null = null;
  for (const level of levels) if (level.resolution <= nsPerPixel) best = level;
  return best;
}

/** The first block that may reach into times from `time` on. */
export function firstBlock(level: Level, time: number): number {
  let low = 0, high = level.n;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (level.start[middle] < time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
