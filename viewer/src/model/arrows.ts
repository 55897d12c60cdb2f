// What leads from one event to another: launches to the work they started, and flows.

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

/** Where a value of `row` stands, for all tracks of a process. */
type Ends = Map<number, Spot[]>;

function collect(tracks: Track[], row: (track: Track) => Row, keep: (track: Track, i: number) => boolean): Ends {
  const ends: Ends = new Map();
  for (const track of tracks) {
    const values = row(track);
    for (let i = 0; i < values.n; i++) {
      if (!keep(track, i)) continue;
      const value = values.duration(i), spot = { track, time: values.start[i] }, list = ends.get(value);
      if (list) list.push(spot);
      else ends.set(value, [spot]);
    }
  }
  return ends;
}

export class Arrows {
  private readonly works = new Map<number, Ends>(); // by process
  private readonly launches = new Map<number, Ends>();
  private flows: Ends | null = null;

  constructor(private readonly recording: Recording) {}

  private ofProcess(cache: Map<number, Ends>, process: number, kind: "gpu" | "thread"): Ends {
    let ends = cache.get(process);
    if (ends === undefined) {
      const tracks = this.recording.tracks.filter((track) => track.process === process && track.kind === kind);
      ends = collect(tracks, (track) => track.links, () => true);
      cache.set(process, ends);
    }
    return ends;
  }

  /** The arrows that begin or end in a span of a track. */
  of(track: Track, from: number, to: number): Arrow[] {
    const arrows = track.kind === "gpu" ? this.toWork(track, from) : this.fromLaunches(track, from, to);
    return [...arrows, ...this.flowsIn(track, from, to)].slice(0, MOST);
  }

  private toWork(track: Track, start: number): Arrow[] {
    const launches = this.ofProcess(this.launches, track.process, "thread");
    const arrows: Arrow[] = [];
    for (let i = 0; i < track.links.n; i++) {
      if (track.links.start[i] !== start) continue;
      for (const from of launches.get(track.links.duration(i)) ?? []) arrows.push({ from, to: { track, time: start } });
    }
    return arrows;
  }

  private fromLaunches(track: Track, from: number, to: number): Arrow[] {
    const arrows: Arrow[] = [];
    const { links } = track;
    for (let i = 0; i < links.n && arrows.length < MOST; i++) {
      if (links.start[i] < from || links.start[i] > to) continue;
      const works = this.ofProcess(this.works, track.process, "gpu").get(links.duration(i)) ?? [];
      for (const work of works) arrows.push({ from: { track, time: links.start[i] }, to: work });
    }
    return arrows;
  }

  /** A flow goes from each of its ends to the next in time; ids are of the whole recording. */
  private flowsIn(track: Track, from: number, to: number): Arrow[] {
    const { flows } = track;
    const arrows: Arrow[] = [];
    for (let i = 0; i < flows.n && arrows.length < MOST; i++) {
      if (flows.start[i] < from || flows.start[i] > to) continue;
      this.flows ??= collect(this.recording.tracks, (t) => t.flows, () => true);
      const ends = [...(this.flows.get(flows.duration(i)) ?? [])].sort((a, b) => a.time - b.time);
      for (let k = 1; k < ends.length; k++) arrows.push({ from: ends[k - 1], to: ends[k] });
    }
    return arrows;
  }
}
