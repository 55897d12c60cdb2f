// The heat map: its entry in the index, and its block of planes.

import { takeBlock } from "./blocks";
import { readPlanes } from "./chunks";

export interface HeatData {
  rows: number;
  columns: number;
  first: number; // iteration of the first column
  ranks: number; // of a row
  iterations: number; // of a column
  rank_width: number; // bytes of a cell that identify the rank
  iteration_width: number;
  processes: number[]; // `ranks` of them for each row; -1 none
  names: string[]; // number 0 is none
  medians: number[]; // by column, nanoseconds; 0 none
}

/** Cells row by row. */
export interface HeatCells {
  ratio: Float32Array; // to the median of the column; 0: no iteration
  name: Uint8Array; // range that made it longer than is typical for its rank; 0 none
  extra: Uint8Array; // contribution of that range, 255 is all of it
  rank: Float64Array; // index in its row
  iteration: Float64Array; // index in its column
}

const MIDDLE = 32768, STEPS = 100;

export function decodeHeat(data: HeatData, block: Uint8Array): HeatCells {
  const n = data.rows * data.columns, nPlanes = 4 + data.rank_width + data.iteration_width;
  if (block.length < n * nPlanes) throw new Error("the heat map of this page is not whole");
  const ratio = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    const code = block[i] + 256 * block[n + i];
    ratio[i] = code === 0 ? 0 : Math.exp((code - MIDDLE) / STEPS);
  }
  const rank = new Float64Array(data.rank_width > 0 ? n : 0), iteration = new Float64Array(data.iteration_width > 0 ? n : 0);
  if (rank.length > 0) readPlanes(block, 4 * n, data.rank_width, n, rank);
  if (iteration.length > 0) readPlanes(block, (4 + data.rank_width) * n, data.iteration_width, n, iteration);
  return { ratio, name: block.subarray(2 * n, 3 * n), extra: block.subarray(3 * n, 4 * n), rank, iteration };
}

export async function openHeat(data: HeatData): Promise<HeatCells> {
  return decodeHeat(data, await takeBlock("heat"));
}
