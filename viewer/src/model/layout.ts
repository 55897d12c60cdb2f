// Layout of the timeline: a line per process, followed by the rows of its tracks.

import type { Recording, Track } from "./recording";
import type { Row } from "./row";

export type LineKind = "process" | "track" | "row" | "counter" | "marks";

export interface Line {
  kind: LineKind;
  y: number;
  height: number;
  process: number;
  track: Track | null;
  row: Row | null;
  depth: number; // of the row in its track
  label: string;
}

const HEIGHT: Record<LineKind, number> = { process: 26, track: 8, row: 18, counter: 40, marks: 12 };
const PROGRESS = ["iterations", "epochs", "phases"];

/** Threads with a name that is not unique in the process also show their id. */
export function trackLabel(track: Track, recording: Recording): string {
  switch (track.kind) {
    case "gpu":
      return track.name || `GPU ${track.device} stream ${track.stream}`;
    case "async":
      return "async";
    case "thread": {
      const isShared = recording.tracks.some((t) => t !== track && t.process === track.process && t.kind === "thread" && t.name === track.name);
      return track.name === "" ? `thread ${track.tid}` : isShared ? `${track.name} ${track.tid}` : track.name;
    }
    default:
      return "";
  }
}

export function processLabel(recording: Recording, process: number): string {
  const info = recording.index.processes[process];
  const name = info.name.trim() || "process";
  return recording.index.processes.length > 1 ? `${name} (pid ${info.pid})` : name;
}

export class Layout {
  lines: Line[] = [];
  height = 0;
  readonly collapsed = new Set<number>();

  constructor(private readonly recording: Recording, private readonly counterName: (track: Track, row: Row) => string) {
    this.rebuild();
  }

  toggle(process: number): void {
    if (!this.collapsed.delete(process)) this.collapsed.add(process);
    this.rebuild();
  }

  rebuild(): void {
    this.lines = [];
    this.height = 0;
    const { processes } = this.recording.index;
    processes.forEach((info, process) => {
      if (info.left_out === true) return;
      this.add("process", process, null, null, 0, processLabel(this.recording, process));
      if (this.collapsed.has(process)) return;
      for (const track of this.recording.tracks) if (track.process === process) this.addTrack(track);
    });
  }

  private add(kind: LineKind, process: number, track: Track | null, row: Row | null, depth: number, label: string): void {
    const height = HEIGHT[kind];
    this.lines.push({ kind, y: this.height, height, process, track, row, depth, label });
    this.height += height;
  }

  private addTrack(track: Track): void {
    const { process } = track;
    if (track.kind === "series") return;
    if (track.kind === "counters") {
      for (const row of track.rows) this.add("counter", process, track, row, 0, this.counterName(track, row));
      return;
    }
    if (track.kind === "progress") {
      track.rows.forEach((row, i) => row.n > 0 && this.add("row", process, track, row, i, PROGRESS[i] ?? ""));
      return;
    }
    const label = trackLabel(track, this.recording);
    if (track.marks.n > 0) this.add("marks", process, track, track.marks, 0, label);
    let depth = track.rows.length;
    for (const open of track.unfinished) depth = Math.max(depth, open.depth + 1);
    for (let i = 0; i < depth; i++) {
      this.add("row", process, track, track.rows[i] ?? null, i, i === 0 && track.marks.n === 0 ? label : "");
    }
    if (depth === 0 && track.losses.n > 0) this.add("row", process, track, null, 0, label);
    this.add("track", process, track, null, 0, "");
  }

  /** The line at height `y`, or the last one before it. */
  at(y: number): number {
    let low = 0, high = this.lines.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.lines[middle].y <= y) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The line of the innermost range of a track at a time; its first line if there is none. */
  lineAt(track: Track, time: number): Line | undefined {
    let found: Line | undefined;
    for (const line of this.lines) {
      if (line.track !== track || line.kind !== "row") continue;
      const i = line.row?.firstReaching(time) ?? -1;
      const isIn = line.row !== null && i >= 0 && i < line.row.n && line.row.start[i] <= time;
      if (found === undefined || isIn) found = line;
    }
    return found;
  }

  find(track: Track, depth: number): Line | undefined {
    return this.lines.find((line) => line.track === track && line.kind === "row" && line.depth === depth);
  }
}
