// Tables of calls: functions; signatures, callers and callees of one function.

import type { Cell, Column, TableData } from "../decode/format";
import { type CallTree, type Calls, OTHER, type Sums, THIS, isSampled, nameOf, placeOf } from "./calls";

/** Sums by function or other key of a row. */
interface RowSums {
  calls: number;
  outermost: number; // calls that are not within another of the same row
  self: number;
  total: number;
  gpu: number;
}

/** A table, with the function or signature of each row. */
export interface CallTable {
  table: TableData;
  about: number[];
}

type Rows = Map<number, RowSums[]>;

function rowOf(rows: Rows, about: number, nSides: number): RowSums[] {
  let row = rows.get(about);
  if (row === undefined) {
    row = Array.from({ length: nSides }, () => ({ calls: 0, outermost: 0, self: 0, total: 0, gpu: 0 }));
    rows.set(about, row);
  }
  return row;
}

function add(row: RowSums[], sums: Sums[], node: number, isOutermost: boolean): void {
  sums.forEach((from, side) => {
    row[side].calls += from.calls[node];
    row[side].self += from.self[node];
    row[side].gpu += from.gpu[node];
    if (!isOutermost) return;
    row[side].outermost += from.calls[node];
    row[side].total += from.total[node];
  });
}

/** Sums by `key` of a box (-1: none); time within another call with the same key is not counted twice. */
function addUp(tree: CallTree, key: (node: number) => number): Rows {
  const rows: Rows = new Map(), { flame } = tree, covered = new Map<number, number>(); // end of the open box by key
  for (let node = 1; node < flame.n; node++) {
    const about = key(node);
    if (about < 0) continue;
    const isOutermost = node > (covered.get(about) ?? -1);
    if (isOutermost) covered.set(about, flame.last[node]);
    add(rowOf(rows, about, tree.sums.length), tree.sums, node, isOutermost);
  }
  return rows;
}

// ---- as tables ----

const column = (name: string, title: string, unit: Column["unit"] = "ns"): Column => ({ name, title, type: "f64", unit });

/** Tables next to that of the functions have less space, and signatures are long. */
type Room = "wide" | "narrow" | "tight";

interface Figure {
  column: Column;
  value: (row: RowSums[]) => Cell;
}

const CALLS: Figure = { column: column("calls", "calls", "count"), value: ([now]) => now.calls };
const SAMPLES: Figure = { column: column("calls", "samples", "count"), value: ([now]) => now.outermost };
const SELF: Figure = { column: column("self_ns", "self"), value: ([now]) => now.self };
const TOTAL: Figure = { column: column("total_ns", "total"), value: ([now]) => now.total };
const PER_CALL: Figure = { column: column("per_call_ns", "per call"), value: ([now]) => (now.outermost > 0 ? now.total / now.outermost : null) };
const GPU: Figure = { column: column("gpu_ns", "GPU"), value: ([now]) => now.gpu };
const CALLS_BEFORE: Figure = { column: column("calls_before", "before", "count"), value: ([, before]) => before.calls };
const SAMPLES_BEFORE: Figure = { column: column("calls_before", "before", "count"), value: ([, before]) => before.outermost };
const SELF_BEFORE: Figure = { column: column("self_before_ns", "before"), value: ([, before]) => before.self };
const CHANGE: Figure = { column: column("self_change_ns", "change", "change_ns"), value: ([now, before]) => now.self - before.self };
const TOTAL_CHANGE: Figure = { column: column("total_change_ns", "total change", "change_ns"), value: ([now, before]) => now.total - before.total };

/** Columns of one profile, or of the change between two, as many as fit. */
function figures(calls: Calls, whole: number, hasGpu: boolean, room: Room): Figure[] {
  const counts = isSampled(calls) ? SAMPLES : CALLS, before = isSampled(calls) ? SAMPLES_BEFORE : CALLS_BEFORE;
  if (calls.profiles.length > 1) {
    return room === "wide" ? [SELF, SELF_BEFORE, CHANGE, TOTAL_CHANGE, counts, before] : [CHANGE, TOTAL_CHANGE, counts, before];
  }
  const share: Figure = { column: column("share", "share", "share"), value: ([now]) => (whole > 0 ? now.self / whole : null) };
  if (isSampled(calls)) return room === "wide" ? [counts, SELF, share, TOTAL] : [counts, SELF, TOTAL];
  const list = { wide: [CALLS, SELF, share, TOTAL, PER_CALL], narrow: [CALLS, SELF, TOTAL, PER_CALL], tight: [CALLS, TOTAL, PER_CALL] }[room];
  return hasGpu ? [...list, GPU] : list;
}

/** Sorted by self time, or by its change. */
function weight(row: RowSums[]): number {
  return row.length > 1 ? Math.abs(row[THIS].self - row[OTHER].self) : row[THIS].self;
}

function text(name: string, title: string): Column {
  return { name, title, type: "text", unit: "" };
}

interface TableWish {
  name: string;
  title: string; // of the first column
  label: (about: number) => string;
  room: Room;
  more?: { column: Column; value: (about: number, row: RowSums[]) => Cell }[];
}

function toTable(calls: Calls, tree: CallTree, rows: Rows, wish: TableWish): CallTable {
  const whole = tree.sums[THIS].self.reduce((sum, self) => sum + self, 0), hasGpu = tree.sums[THIS].gpu.some((ns) => ns > 0);
  const list = [...rows].sort(([, a], [, b]) => weight(b) - weight(a) || b[0].total - a[0].total), columns = figures(calls, whole, hasGpu, wish.room), { more = [] } = wish;
  return {
    about: list.map(([about]) => about),
    table: {
      name: wish.name,
      rows: list.length,
      columns: [text("name", wish.title), ...columns.map((one) => one.column), ...more.map((one) => one.column)],
      cells: [
        list.map(([about]) => wish.label(about)),
        ...columns.map((one) => list.map(([, row]) => one.value(row))),
        ...more.map((one) => list.map(([about, row]) => one.value(about, row))),
      ],
    },
  };
}

/** All functions. */
export function functionTable(calls: Calls, tree: CallTree): CallTable {
  const rows = addUp(tree, (node) => tree.func[node]);
  return toTable(calls, tree, rows, {
    name: "functions",
    title: "function",
    room: "wide",
    label: (func) => nameOf(calls, func, 0),
    more: [{ column: text("place", "where"), value: (func) => placeOf(calls, func) }],
  });
}

/** The signatures of one function; the tree has one box per signature. */
export function signatureTable(calls: Calls, tree: CallTree, func: number): CallTable {
  const rows = addUp(tree, (node) => (tree.func[node] === func ? tree.signature[node] : -1));
  const elements = (signature: number): number => calls.signatures[signature]?.[2] ?? 0;
  const hasElements = calls.profiles.length === 1 && [...rows.keys()].some((signature) => elements(signature) > 0);
  const perElement = (signature: number, row: RowSums[]): Cell =>
    elements(signature) > 0 && row[THIS].outermost > 0 ? row[THIS].total / row[THIS].outermost / elements(signature) : null;
  return toTable(calls, tree, rows, {
    name: "signatures",
    title: "called with",
    room: "tight",
    label: (signature) => (signature === 0 ? "(no signature)" : calls.signatures[signature][1] || "(no arguments)"),
    more: hasElements ? [{ column: column("per_element_ns", "per element", "ns_fine"), value: perElement }] : [],
  });
}

/** Callers of a function, by its time when called from them. */
export function callerTable(calls: Calls, tree: CallTree, func: number): CallTable {
  const { flame } = tree, rows: Rows = new Map();
  for (let node = 1; node < flame.n; node++) {
    if (tree.func[node] === func) add(rowOf(rows, callerOf(tree, node), tree.sums.length), tree.sums, node, true);
  }
  return toTable(calls, tree, rows, { name: "callers", title: "called by", room: "narrow", label: (by) => (by < 0 ? "(nobody)" : nameOf(calls, by, 0)) });
}

function callerOf(tree: CallTree, node: number): number {
  const parent = tree.flame.parent[node];
  return parent > 0 ? tree.func[parent] : -1;
}

/** Callees of a function. */
export function calleeTable(calls: Calls, tree: CallTree, func: number): CallTable {
  const { flame } = tree, rows: Rows = new Map();
  for (let node = 1; node < flame.n; node++) {
    if (callerOf(tree, node) === func) add(rowOf(rows, tree.func[node], tree.sums.length), tree.sums, node, true);
  }
  return toTable(calls, tree, rows, { name: "callees", title: "calls", room: "narrow", label: (callee) => nameOf(calls, callee, 0) });
}

/** The sums of one function. */
export function sumsOf(tree: CallTree, func: number): RowSums[] {
  return addUp(tree, (node) => (tree.func[node] === func ? func : -1)).get(func) ?? rowOf(new Map(), func, tree.sums.length);
}
