// The data of the page: index, names, and tracks of rows.

import type { Index, NameData, TableData, TrackKind } from "../decode/format";
import type { Row } from "./row";
import type { Texts } from "./texts";

export interface Unfinished {
  depth: number;
  start: number;
  last: number; // its last known time
  site: number;
  isLost: boolean; // its end was lost; else it was open at the end
}

export interface Track {
  number: number;
  kind: TrackKind;
  process: number;
  name: string;
  tid: number;
  device: number;
  stream: number;
  tooDeep: number; // ranges nested too deep to be drawn
  labels: string[]; // of a series, by row
  rows: Row[];
  marks: Row;
  losses: Row;
  texts: Row; // further data of events: offset in the process's texts
  links: Row; // launches and GPU activity: a correlation
  flows: Row; // ids; begin, step and end
  unfinished: Unfinished[];
}

export interface Recording {
  index: Index;
  names: NameData[];
  sites: number[][]; // by process, by site
  tracks: Track[];
  events: Promise<void>; // done once rows are filled
  texts: Texts;
}

/** Number of short ranges merged into an event; 0: not merged. */
export function mergedIn(recording: Recording, process: number, site: number): number {
  const highest = (recording.sites[process]?.length ?? 0) - 1;
  return site > highest ? site - highest : 0;
}

export function nameOf(recording: Recording, process: number, site: number): NameData {
  const merged = mergedIn(recording, process, site);
  if (merged > 0) return [`(${merged.toLocaleString("en-US")} short ranges)`, "", "", 0, 0];
  return recording.names[recording.sites[process]?.[site] ?? -1] ?? ["(unknown)", "", "", 0, 0];
}

export function tableOf(recording: Recording, name: string): TableData | undefined {
  return recording.index.tables.find((table) => table.name === name);
}
