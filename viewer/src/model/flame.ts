// The flame graph: the table `tree` as boxes within boxes.

import type { TableData } from "../decode/format";
import { columnOf } from "./tables";

export interface Flame {
  n: number; // node 0 is the whole
  name: string[];
  depth: Uint32Array;
  parent: Int32Array; // -1 of the whole
  last: Int32Array; // of its subtree; nodes are depth first
  left: Float64Array; // nanoseconds from the left edge of the whole
  total: Float64Array;
  self: Float64Array;
  count: Float64Array;
  areOthers: Uint8Array; // 1: the box summarizes boxes that are not in the page
}

const OTHERS = /^\(\d+ others?\)$/; // as core/present/page/page_tree.c calls them

/** Boxes of nodes that come depth first, by depth and width; siblings lie side by side from the left edge of their parent. */
export function placeBoxes(name: string[], depth: Uint32Array, total: Float64Array, self: Float64Array, count: Float64Array): Flame {
  const n = name.length;
  const flame: Flame = {
    n, name, depth, total, self, count,
    parent: new Int32Array(n).fill(-1),
    last: new Int32Array(n),
    left: new Float64Array(n),
    areOthers: new Uint8Array(n),
  };
  const path = [0], ends = [0]; // the node at each depth, and where its next child goes
  for (let i = 1; i < n; i++) {
    const at = depth[i];
    flame.parent[i] = path[at - 1];
    flame.left[i] = ends[at - 1];
    ends[at - 1] += total[i];
    path[at] = i;
    ends[at] = flame.left[i];
    path.length = ends.length = at + 1;
  }
  for (let i = n - 1; i >= 0; i--) {
    flame.last[i] = Math.max(flame.last[i], i);
    if (i > 0) flame.last[flame.parent[i]] = Math.max(flame.last[flame.parent[i]], flame.last[i]);
  }
  return flame;
}

/** Of the table `tree`, in its order: the heaviest first. */
export function buildFlame(tree: TableData): Flame {
  const names = columnOf(tree, "name"), depths = columnOf(tree, "depth").map(Number);
  const totals = columnOf(tree, "total_ns").map(Number);
  const whole = totals.reduce((sum, total, i) => sum + (depths[i] === 0 ? total : 0), 0), hasOthers = (tree.others ?? 0) > 0;
  const flame = placeBoxes(
    ["all", ...names.map(String)],
    Uint32Array.from([0, ...depths.map((depth) => depth + 1)]),
    Float64Array.from([whole, ...totals]),
    Float64Array.from([0, ...columnOf(tree, "self_ns").map(Number)]),
    Float64Array.from([0, ...columnOf(tree, "count").map(Number)]),
  );
  flame.areOthers.set(names.map((name) => (hasOthers && OTHERS.test(String(name)) ? 1 : 0)), 1);
  return flame;
}

export const CRUMBS = -1; // instead of a node: neighbors too narrow to draw

export interface FlameBox {
  node: number;
  x: number;
  width: number;
  row: number; // from the top; above `node` are its ancestors
}

/** Merge a box that is too narrow with the preceding crumbs in its row. */
function addCrumb(boxes: FlameBox[], last: Map<number, FlameBox>, x: number, width: number, row: number, gap: number): void {
  const before = last.get(row);
  if (before !== undefined && x - before.x - before.width < gap) {
    before.width = x + width - before.x;
    return;
  }
  const crumbs = { node: CRUMBS, x, width, row };
  boxes.push(crumbs);
  last.set(row, crumbs);
}

/** The visible part of a box: the box is `scale` times as wide as the view, and `shift` widths of it are hidden on the
 * left. */
export interface Sight {
  scale: number; // from 1 on
  shift: number; // 0 to scale - 1
}

export const ALL: Sight = { scale: 1, shift: 0 };
const LEAST_NS = 10; // visible at the highest zoom

/** Move the visible part by a share of the width. */
export function shiftSight({ scale, shift }: Sight, by: number): Sight {
  return { scale, shift: Math.min(Math.max(shift + by, 0), scale - 1) };
}

/**
 * The box and the part of it that are visible after zooming by `factor`, with the point at `part` of the width fixed. A box
 * that becomes narrower than the width is replaced by its parent.
 */
export function magnify(flame: Flame, zoomed: number, sight: Sight, factor: number, part: number): [zoomed: number, sight: Sight] {
  const { left, total, parent } = flame, ns = left[zoomed] + ((sight.shift + part) / sight.scale) * total[zoomed];
  let scale = sight.scale * factor;
  while (scale < 1 && zoomed > 0) {
    scale = total[zoomed] > 0 ? (scale * total[parent[zoomed]]) / total[zoomed] : 1;
    zoomed = parent[zoomed];
  }
  scale = Math.max(Math.min(scale, total[zoomed] / LEAST_NS), 1);
  return [zoomed, shiftSight({ scale, shift: total[zoomed] > 0 ? ((ns - left[zoomed]) / total[zoomed]) * scale : 0 }, -part)];
}

/** The visible boxes when `zoomed`, or a part of it, fills the width. */
export function layoutFlame(flame: Flame, zoomed: number, width: number, narrowest = 0.4, sight = ALL): FlameBox[] {
  const boxes: FlameBox[] = [], crumbs = new Map<number, FlameBox>();
  for (let node = flame.parent[zoomed]; node >= 0; node = flame.parent[node]) {
    boxes.push({ node, x: 0, width, row: flame.depth[node] });
  }
  boxes.push({ node: zoomed, x: 0, width, row: flame.depth[zoomed] });
  const scale = flame.total[zoomed] > 0 ? (width * sight.scale) / flame.total[zoomed] : 0, shift = sight.shift * width;
  for (let node = zoomed + 1; node <= flame.last[zoomed]; ) {
    const from = (flame.left[node] - flame.left[zoomed]) * scale - shift, size = flame.total[node] * scale;
    const isInSight = from + size >= 0 && from <= width;
    if (isInSight && size >= narrowest) {
      const x = Math.max(from, 0);
      boxes.push({ node, x, width: Math.min(from + size, width) - x, row: flame.depth[node] });
      node++;
      continue;
    }
    if (isInSight) addCrumb(boxes, crumbs, from, size, flame.depth[node], narrowest);
    node = flame.last[node] + 1; // skip its descendants, which are not wider
  }
  return boxes;
}

export interface Found {
  matches: Uint8Array; // by node
  total: number; // of matches not inside other matches
  count: number;
  widest: number; // match; 0 if none
}

/** Find nodes by a predicate. */
export function findBoxes(flame: Flame, isWanted: (node: number) => boolean): Found {
  const matches = new Uint8Array(flame.n);
  let total = 0, count = 0, covered = -1, widest = 0;
  for (let node = 1; node < flame.n; node++) {
    if (!isWanted(node)) continue;
    matches[node] = 1;
    count++;
    if (widest === 0 || flame.total[node] > flame.total[widest]) widest = node;
    if (node <= covered) continue;
    total += flame.total[node];
    covered = flame.last[node];
  }
  return { matches, total, count, widest };
}

/** Find nodes whose name contains the word. */
export function searchFlame(flame: Flame, word: string): Found {
  const wanted = word.trim().toLowerCase();
  return findBoxes(flame, (node) => flame.name[node].toLowerCase().includes(wanted));
}
