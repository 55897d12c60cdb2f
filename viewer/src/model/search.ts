// Search for events by name.

import type { Recording, Track } from "./recording";

/** By process and site: 1 if the name does not contain the word and is drawn faintly. */
export function notMatching(recording: Recording, word: string): Uint8Array[] {
  const wanted = word.toLowerCase();
  const byName = recording.names.map(([name, category]) =>
    name.toLowerCase().includes(wanted) || category.toLowerCase().includes(wanted) ? 0 : 1,
  );
  return recording.sites.map((sites) => Uint8Array.from(sites, (name) => byName[name] ?? 1));
}

export interface Match {
  track: Track;
  depth: number; // the row; -1: the track's marks
  i: number;
  start: number;
}

/** Tracks whose rows have call sites, which have names. */
export function hasSites(track: Track): boolean {
  return track.kind === "thread" || track.kind === "gpu" || track.kind === "async";
}

export function countMatches(recording: Recording, misses: Uint8Array[]): number {
  let n = 0;
  for (const track of recording.tracks) {
    if (!hasSites(track)) continue;
    const miss = misses[track.process];
    for (const row of [...track.rows, track.marks]) for (let i = 0; i < row.n; i++) n += 1 - (miss[row.id[i]] ?? 1);
  }
  return n;
}

/** The nearest match after `from` in time, or before it, over all rows. */
export function nextMatch(recording: Recording, misses: Uint8Array[], from: Match | null, forward: boolean): Match | null {
  let best: Match | null = null;
  const isBetter = (a: Match, b: Match | null): boolean => b === null || (forward ? isBefore(a, b) : isBefore(b, a));
  for (const track of recording.tracks) {
    if (!hasSites(track)) continue;
    const miss = misses[track.process];
    const rows = [...track.rows.map((row, depth) => ({ row, depth })), { row: track.marks, depth: -1 }];
    for (const { row, depth } of rows) {
      const step = forward ? 1 : -1;
      let i = forward ? 0 : row.n - 1;
      if (from !== null) i = forward ? row.lowerBound(from.start) : row.lowerBound(from.start + 1) - 1;
      for (; i >= 0 && i < row.n; i += step) {
        if (miss[row.id[i]] ?? 1) continue;
        const match = { track, depth, i, start: row.start[i] };
        if (from !== null && !(forward ? isBefore(from, match) : isBefore(match, from))) continue;
        if (isBetter(match, best)) best = match;
        break;
      }
    }
  }
  return best;
}

/** In order of time; for equal times, outer ranges and earlier tracks first. */
function isBefore(a: Match, b: Match): boolean {
  if (a.start !== b.start) return a.start < b.start;
  if (a.track.number !== b.track.number) return a.track.number < b.track.number;
  return a.depth !== b.depth ? a.depth < b.depth : a.i < b.i;
}
