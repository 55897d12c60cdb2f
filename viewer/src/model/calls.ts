// Call profiles as trees of boxes: one profile, or two to compare.
//
// A node is a path of calls: a function, with a signature, called from another node, on a thread. The page
// merges nodes by function or by signature, of all threads or of one.

import type { Profile } from "../decode/calls";
import type { FunctionData, SignatureData } from "../decode/format";
import { type Flame, placeBoxes } from "./flame";

/** The profile shown, and the baseline. */
export const THIS = 0, OTHER = 1;

/** Sums of one profile, by node or box. */
export interface Sums {
  calls: Float64Array;
  self: Float64Array;
  total: Float64Array;
  gpu: Float64Array;
}

/** Nodes of both profiles in one list, with one numbering of functions, signatures and threads. */
export interface Calls {
  titles: string[]; // of each profile
  functions: FunctionData[];
  signatures: SignatureData[];
  threads: string[];
  n: number;
  parent: Int32Array; // -1 of roots
  func: Uint32Array;
  signature: Uint32Array;
  thread: Uint32Array;
  side: Uint8Array; // THIS or OTHER
  sums: Sums;
  profiles: Profile[];
}

/** Whether calls are samples, which have no duration. */
export function isSampled(calls: Calls): boolean {
  return calls.profiles[THIS].is_samples === true;
}

function makeSums(n: number): Sums {
  return { calls: new Float64Array(n), self: new Float64Array(n), total: new Float64Array(n), gpu: new Float64Array(n) };
}

const SUMS = ["calls", "self", "total", "gpu"] as const;

// ---- two profiles as one ----

/** Line numbers change with the program, so functions of the same name are matched in the order of their lines. */
function functionKeys(functions: FunctionData[]): string[] {
  const inOrder = functions.map((_, i) => i).sort((a, b) => functions[a][3] - functions[b][3]);
  const seen = new Map<string, number>(), keys: string[] = new Array(functions.length);
  for (const i of inOrder) {
    const [name, qualified, file, , module, kind] = functions[i];
    const key = [kind, module, qualified, name, file.slice(file.lastIndexOf("/") + 1)].join("\n");
    const nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    keys[i] = `${key}\n${nth}`;
  }
  return keys;
}

/** Numbers for items with equal keys; the first item of a key is kept. */
class Numbering<T> {
  readonly list: T[] = [];
  private readonly numbers = new Map<string, number>();

  number(key: string, thing: T): number {
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.list.push(thing) - 1;
      this.numbers.set(key, number);
    }
    return number;
  }
}

export function joinProfiles(profiles: Profile[]): Calls {
  const n = profiles.reduce((sum, profile) => sum + profile.nodes.parent.length, 0);
  const functions = new Numbering<FunctionData>(), signatures = new Numbering<SignatureData>(), threads = new Numbering<string>();
  const calls: Calls = {
    titles: profiles.map((profile) => profile.title),
    functions: functions.list, signatures: signatures.list, threads: threads.list, n,
    parent: new Int32Array(n), func: new Uint32Array(n), signature: new Uint32Array(n), thread: new Uint32Array(n), side: new Uint8Array(n),
    sums: makeSums(n), profiles,
  };
  let at = 0;
  profiles.forEach((profile, side) => {
    const keys = functionKeys(profile.functions), { nodes } = profile, count = nodes.parent.length;
    const funcs = profile.functions.map((one, i) => functions.number(keys[i], one));
    const signs = profile.signatures.map(([func, text, elements]) =>
      signatures.number(`${funcs[func] ?? 0}\n${text}`, [funcs[func] ?? 0, text, elements]));
    const lanes = profile.threads.map((name) => threads.number(name, name));
    for (let i = 0; i < count; i++) {
      calls.parent[at + i] = i === 0 ? -1 : at + nodes.parent[i];
      calls.func[at + i] = funcs[nodes.func[i]];
      calls.signature[at + i] = signs[nodes.signature[i]] ?? 0;
      calls.thread[at + i] = lanes[nodes.thread[i]] ?? 0;
      calls.side[at + i] = side;
    }
    for (const name of SUMS) calls.sums[name].set(nodes[name], at);
    at += count;
  });
  return calls;
}

// ---- trees ----

export interface TreeWish {
  bySignature: boolean;
  thread: number; // -1: all
  weight: "time" | "gpu"; // meaning of widths
  sides: number[]; // profiles that determine widths
}

/** Boxes with their function and signature; box 0 is the root. */
export interface CallTree {
  flame: Flame;
  func: Uint32Array;
  signature: Uint32Array;
  sums: Sums[]; // by profile
}

interface Merged {
  n: number;
  parent: Int32Array;
  func: Uint32Array;
  signature: Uint32Array;
  sums: Sums[];
}

/** Merge nodes with the same path, by the selected criteria. */
function merge(calls: Calls, wish: TreeWish): Merged {
  const { n } = calls, place = new Int32Array(n).fill(-1), known = new Map<number, number>();
  const merged: Merged = {
    n: 1, parent: new Int32Array(n + 1).fill(-1), func: new Uint32Array(n + 1), signature: new Uint32Array(n + 1),
    sums: calls.profiles.map(() => makeSums(n + 1)),
  };
  const nKeys = calls.functions.length + calls.signatures.length;
  for (let i = 0; i < n; i++) {
    if (calls.parent[i] < 0) {
      place[i] = 0;
      continue;
    }
    if (wish.thread >= 0 && calls.thread[i] !== wish.thread) continue;
    const up = Math.max(place[calls.parent[i]], 0), signature = wish.bySignature ? calls.signature[i] : 0;
    const key = up * nKeys + (signature > 0 ? calls.functions.length + signature : calls.func[i]);
    let at = known.get(key);
    if (at === undefined) {
      at = merged.n++;
      known.set(key, at);
      merged.parent[at] = up;
      merged.func[at] = calls.func[i];
      merged.signature[at] = signature;
    }
    place[i] = at;
    const to = merged.sums[calls.side[i]];
    for (const name of SUMS) to[name][at] += calls.sums[name][i];
  }
  return merged;
}

/** Width of each box: its self time plus all boxes below. So widths add up even if paths were not kept. */
function widths(merged: Merged, wish: TreeWish): Float64Array {
  const width = new Float64Array(merged.n);
  for (const side of wish.sides) {
    const own = merged.sums[side]?.[wish.weight === "gpu" ? "gpu" : "self"];
    for (let i = 0; own !== undefined && i < merged.n; i++) width[i] += own[i];
  }
  for (let i = merged.n - 1; i > 0; i--) width[merged.parent[i]] += width[i];
  return width;
}

/** The children of each node, the widest first: those of `node` are in `list` from first[node] up to first[node + 1].
 * */
function childrenOf(merged: Merged, width: Float64Array): { first: Uint32Array; list: Uint32Array } {
  const { n, parent } = merged, first = new Uint32Array(n + 2), list = new Uint32Array(n);
  for (let node = 1; node < n; node++) first[parent[node] + 2]++;
  for (let node = 2; node <= n + 1; node++) first[node] += first[node - 1];
  for (let node = 1; node < n; node++) list[first[parent[node] + 1]++] = node;
  for (let node = 0; node < n; node++) {
    if (first[node + 1] - first[node] > 1) list.subarray(first[node], first[node + 1]).sort((a, b) => width[b] - width[a] || a - b);
  }
  return { first, list };
}

/** Depth first, the widest child first. */
function order(merged: Merged, width: Float64Array): { nodes: Uint32Array; depth: Uint32Array } {
  const { n } = merged, { first, list } = childrenOf(merged, width);
  const nodes = new Uint32Array(n), depth = new Uint32Array(n), depths = new Uint32Array(n), stack = new Uint32Array(n);
  let top = 1; // the root is on the stack
  for (let k = 0; k < n; k++) {
    const node = stack[--top];
    nodes[k] = node;
    depth[k] = depths[node];
    for (let c = first[node + 1]; c-- > first[node]; ) {
      depths[list[c]] = depths[node] + 1;
      stack[top++] = list[c];
    }
  }
  return { nodes, depth };
}

/** The elements at these indices, in order. */
function gather<T extends Float64Array | Uint32Array>(from: T, places: Uint32Array, into: T): T {
  for (let i = 0; i < places.length; i++) into[i] = from[places[i]];
  return into;
}

export function growTree(calls: Calls, wish: TreeWish): CallTree {
  const merged = merge(calls, wish), width = widths(merged, wish), { nodes, depth } = order(merged, width), { n } = merged;
  const floats = (from: Float64Array): Float64Array => gather(from, nodes, new Float64Array(n));
  const func = gather(merged.func, nodes, new Uint32Array(n)), signature = gather(merged.signature, nodes, new Uint32Array(n));
  const sums = merged.sums.map((one) => ({ calls: floats(one.calls), self: floats(one.self), total: floats(one.total), gpu: floats(one.gpu) }));
  const name: string[] = ["all"];
  for (let i = 1; i < n; i++) name.push(nameOf(calls, func[i], signature[i]));
  return { flame: placeBoxes(name, depth, floats(width), sums[THIS].self, sums[THIS].calls), func, signature, sums };
}

// ---- names ----

/** Display name: the qualified name, with the signature if boxes are split by signature. */
export function nameOf(calls: Calls, func: number, signature: number): string {
  const [name, qualified] = calls.functions[func] ?? ["(unknown)", ""];
  return `${qualified !== "" ? qualified : name}${signature > 0 ? `(${calls.signatures[signature][1]})` : ""}`;
}

/** "dot.py:7", or "" if unknown. */
export function placeOf(calls: Calls, func: number): string {
  const [, , file, line] = calls.functions[func] ?? ["", "", "", 0];
  if (file === "" || file === "~") return "";
  return `${file.slice(file.lastIndexOf("/") + 1)}${line > 0 ? `:${line}` : ""}`;
}
