// The index of the page, written by core/present/page/page_index.c. docs/formats/page.md explains each field.

import type { HeatData } from "./heat";

export type Cell = string | number | boolean | null;

export interface Column {
  name: string;
  title: string;
  type: "text" | "i64" | "u64" | "f64" | "bool";
  unit: "" | "count" | "ns" | "bytes" | "share" | "unix_ns" | "change_ns" | "ns_fine"; // the last two are of tables that the page makes
}

export interface TableData {
  name: string;
  help?: string; // one line
  rows: number; // in the recording; cells may have fewer
  columns: Column[];
  cells: Cell[][]; // by column
  sums?: Record<string, number>; // of columns of times over all rows, where cells have fewer
  others?: number; // rows of a tree that summarize omitted ones
}

export interface ProcessInfo {
  name: string;
  rank: number;
  pid: number;
  host: string;
  command: string;
  end: string;
  clock: string;
  role: string; // the kind of measurement; "" for a process of the program
  version: string;
  cpu: string;
  cpus: string;
  gpu: string;
  kernel: string;
  versions: string;
  first_ns: number;
  last_ns: number;
  lost_events: number;
  lost_first_ns?: number;
  lost_last_ns?: number;
  events: number;
  texts_left_out?: number;
  left_out?: boolean; // its events are not on the timeline, because there are too many processes
  merged?: number; // short ranges merged with their neighbours
}

/** section, offset, events, first begin, last end */
export type ChunkPlace = [number, number, number, number, number];
/** id, then chunks */
export type RowData = [number, ...ChunkPlace[]];
/** depth, begin, last known time, site, 1 if its end was lost */
export type UnfinishedData = [number, number, number, number, number];

export type TrackKind = "thread" | "gpu" | "async" | "counters" | "progress" | "series";

export interface TrackData {
  kind: TrackKind;
  process: number;
  name?: string;
  lane?: number;
  tid?: number;
  device?: number;
  stream?: number;
  too_deep?: number;
  labels?: string[];
  marks?: RowData;
  losses?: RowData;
  texts?: RowData;
  links?: RowData;
  flows?: RowData;
  unfinished: UnfinishedData[];
  rows: RowData[];
}

export interface Cost {
  events: number;
  low_ns: number; // estimated overhead
  high_ns: number;
  missing: string; // costs that the estimate omits; "" none
  flush_cpu_ns: number;
  log_bytes: number;
  program_ns: number;
  incomplete: number; // processes that were not recorded to the end
  lost_events: number;
  lost_first_ns: number;
  lost_last_ns: number;
}

/** Common to all kinds of pages. */
export interface PageIndex {
  format: number;
  kind: "report" | "compare" | "calls";
  version: string;
  title: string;
  damaged: boolean;
  tables: TableData[];
}

/** name, qualified name, file, line, module, kind (0 Python, 1 built-in, 2 compiled); number 0: none */
export type FunctionData = [string, string, string, number, string, number];
/** function, text, elements of arrays in it (0 unknown); number 0: none */
export type SignatureData = [number, string, number];

/** A profile of calls; the block calls-N has its nodes, N being its place in the list. */
export interface CallsData {
  title: string;
  functions: FunctionData[];
  signatures: SignatureData[];
  threads: string[];
  other_paths: number; // calls whose path was not kept
  widened: number; // signatures that became "other shapes"
  cost_ps: number; // overhead per call
  is_samples?: boolean; // calls are samples, times are their weights
  is_cpu_time: boolean;
}

/** A page with only calls. */
export interface CallsIndex extends PageIndex {
  calls: CallsData[];
}

export interface ComparisonIndex extends PageIndex {
  summary: string; // the result in one sentence
}

export interface Index extends PageIndex {
  origin_ns: string | number; // on the clock that all processes share
  origin_unix_ns: string | number;
  duration_ns: number;
  threads: number;
  cost: Cost;
  breakdown?: TableData[]; // if there is GPU activity or communication
  gpu?: TableData[]; // if there is GPU activity
  memory?: TableData[]; // if memory was measured
  calls?: CallsData[]; // if calls were profiled
  samples?: TableData[]; // if there are samples
  sample_calls?: CallsData[]; // likewise; the block samples-0 has the nodes of the tree
  heat?: HeatData; // if several ranks have iterations
  processes: ProcessInfo[];
  tracks: TrackData[];
}

/** name, category, file, line, colour */
export type NameData = [string, string, string, number, number];

export interface Names {
  names: NameData[];
  sites: number[][]; // by process, by site: a name
}
