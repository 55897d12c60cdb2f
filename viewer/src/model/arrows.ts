// Connections between events: from launches to GPU activity, and flows.
//
// Each lookup scans all rows of links. That takes milliseconds for millions of links; a map from values to positions would
// take hundreds of megabytes.

import type { Recording, Track } from "./recording";
import type { Row } from "./row";

export interface Spot {
  track: Track;
  time: number;
}

export interface Arrow {
  from: Spot;
  to: Spot;
}

const MOST = 200; // arrows of one event

/** The first few values of a row with timestamps in a span. */
function valuesIn(row: Row, from: number, to: number): Set<number> {
  const values = new Set<number>();
  for (let i = 0; i < row.n && values.size < MOST; i++) {
    if (row.start[i] >= from && row.start[i] <= to) values.add(row.duration(i));
  }
  return values;
}

/** Positions of these values on the tracks, in order of time. */
function spotsOf(tracks: Track[], rowOf: (track: Track) => Row, values: Set<number>): Map<number, Spot[]> {
  const spots = new Map<number, Spot[]>([...values].map((value) => [value, []]));
  for (const track of tracks) {
    const row = rowOf(track);
    for (let i = 0; i < row.n; i++) spots.get(row.duration(i))?.push({ track, time: row.start[i] });
  }
  for (const list of spots.values()) list.sort((a, b) => a.time - b.time);
  return spots;
}

/** From each launch to the GPU activity with its correlation, in one process. */
function launched(recording: Recording, track: Track, from: number, to: number): Arrow[] {
  const last = track.kind === "gpu" ? from : to; // the link of GPU activity is at its start
  const values = valuesIn(track.links, from, last);
  if (values.size === 0) return [];
  const otherKind = track.kind === "gpu" ? "thread" : "gpu";
  const others = recording.tracks.filter((t) => t.process === track.process && t.kind === otherKind);
  const here = spotsOf([track], (t) => t.links, values), there = spotsOf(others, (t) => t.links, values);
  return [...values].flatMap((value) => {
    const ends = [(here.get(value) ?? []).filter(({ time }) => time >= from && time <= last), there.get(value) ?? []];
    const [launches, works] = track.kind === "gpu" ? ends.reverse() : ends;
    return launches.flatMap((launch) => works.map((work) => ({ from: launch, to: work })));
  });
}

/** A flow goes from each of its ends to the next in time; ids are of the whole recording. */
function flowing(recording: Recording, track: Track, from: number, to: number): Arrow[] {
  const values = valuesIn(track.flows, from, to);
  if (values.size === 0) return [];
  const flows = spotsOf(recording.tracks, (t) => t.flows, values);
  return [...flows.values()].flatMap((ends) => ends.slice(1).map((end, k) => ({ from: ends[k], to: end })));
}

/** The arrows that begin or end in a span of a track. */
export function arrowsOf(recording: Recording, track: Track, from: number, to: number): Arrow[] {
  return [...launched(recording, track, from, to), ...flowing(recording, track, from, to)].slice(0, MOST);
}
