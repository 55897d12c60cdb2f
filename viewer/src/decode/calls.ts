// Call profiles: names in the index, the nodes of the tree as columns in a separate block.

import { takeBlock } from "./blocks";
import { readPlanes } from "./chunks";
import type { CallsData } from "./format";

/** In the order of the block's columns. */
const COLUMNS = ["parent", "func", "signature", "thread", "calls", "resumes", "self", "total", "max", "gpu"] as const;

/** Nodes by number; parents come before their children, and 0 is the root. */
export type CallNodes = Record<(typeof COLUMNS)[number], Float64Array>;

export interface Profile extends CallsData {
  nodes: CallNodes;
}

/** The block: number of nodes, number of columns, width of each in bytes, then the columns as planes. */
export function decodeNodes(block: Uint8Array): CallNodes {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  const n = view.getUint32(0, true), nColumns = view.getUint8(4);
  const nodes = {} as CallNodes;
  let at = 5 + nColumns;
  for (let c = 0; c < nColumns; c++) {
    const width = view.getUint8(5 + c), column = new Float64Array(n);
    readPlanes(block, at, width, n, column);
    if (c < COLUMNS.length) nodes[COLUMNS[c]] = column;
    at += width * n;
  }
  if (nColumns < COLUMNS.length || at > block.byteLength) throw new Error("the calls of this page are not whole");
  // Stored as the distance to the parent, which is small.
  for (let i = 0; i < n; i++) nodes.parent[i] = i - nodes.parent[i];
  return nodes;
}

/** The profile of the page, and its baseline if there is one; their blocks are called `kind`-N. */
export async function openProfiles(list: CallsData[], kind: "calls" | "samples" = "calls"): Promise<Profile[]> {
  return Promise.all(list.map(async (data, i) => ({ ...data, nodes: decodeNodes(await takeBlock(`${kind}-${i}`)) })));
}
