// Memory of processes and devices over time, and suspected leaks.

import type { TableData } from "../decode/format";
import { thin } from "./series";
import { cellOf, columnOf } from "./tables";
import * as units from "./units";

/** The owner of a row: "host, rank 0", "cuda:0, pid 4711". */
export function poolOf(table: TableData, row: number): string {
  const rank = cellOf(table, row, "rank"), pid = cellOf(table, row, "pid");
  const who = rank !== null ? `, rank ${rank}` : pid !== null ? `, pid ${pid}` : "";
  return `${String(cellOf(table, row, "device"))}${who}`;
}

export interface MemoryLine {
  label: string;
  most: number;
  at: number[];
  bytes: number[];
}

/** A line for each pool of a table of readings, the highest first. */
export function linesOf(table: TableData | undefined, what: string, points: number): MemoryLine[] {
  const pools = new Map<string, { at: number[]; bytes: number[] }>();
  for (let row = 0; table !== undefined && row < columnOf(table, "at_ns").length; row++) {
    const pool = poolOf(table, row);
    const line = pools.get(pool) ?? { at: [], bytes: [] };
    line.at.push(Number(cellOf(table, row, "at_ns")));
    line.bytes.push(Number(cellOf(table, row, "bytes")));
    pools.set(pool, line);
  }
  return [...pools].map(([pool, line]) => {
    const [at, bytes] = thin(Float64Array.from(line.at), Float64Array.from(line.bytes), points);
    return { label: `${pool}: ${what}`, most: line.bytes.reduce((a, b) => Math.max(a, b), 0), at, bytes };
  }).sort((a, b) => b.most - a.most);
}

/** Values of a line at given times, each until the next; null before its first and after its last. */
export function held(line: MemoryLine, times: number[]): (number | null)[] {
  let i = -1;
  return times.map((time) => {
    while (i + 1 < line.at.length && line.at[i + 1] <= time) i++;
    return i < 0 || time > line.at[line.at.length - 1] ? null : line.bytes[i];
  });
}

/** A sentence for each suspected leak. */
export function leaksOf(growth: TableData | undefined): string[] {
  const sentences: string[] = [];
  for (let row = 0; growth !== undefined && row < columnOf(growth, "what").length; row++) {
    if (cellOf(growth, row, "is_suspected") !== true && cellOf(growth, row, "is_suspected") !== 1) continue;
    const where = cellOf(growth, row, "where"), what = cellOf(growth, row, "what") === "resident" ? "resident memory" : "what is alive";
    const bytes = (column: string): string => units.bytes(Number(cellOf(growth, row, column)));
    sentences.push(
      `Leak suspected, ${poolOf(growth, row)}: ${where === null ? what : "what this allocates"} grows by ${bytes("slope_bytes")} each ${String(cellOf(growth, row, "per"))} ` +
        `(95 %: ${bytes("low_bytes")} to ${bytes("high_bytes")}), ${bytes("total_bytes")} in all${where === null ? "." : `: ${String(where)}`}`,
    );
  }
  return sentences;
}
