// A comparison: ranges with their change, and the distribution of times on both sides.

import type { TableData } from "../decode/format";
import { columnOf } from "./tables";

export interface Range {
  name: string;
  a: number | null;
  b: number | null;
  change: number | null; // percent; negative is faster
  low: number | null;
  high: number | null;
  verdict: string;
  effect: number | null; // on the whole iteration
  reason: string;
}

export function rangesOf(table: TableData | undefined): Range[] {
  if (table === undefined) return [];
  const number = (name: string): (number | null)[] => columnOf(table, name).map((v) => (v === null ? null : Number(v)));
  const [a, b, change, low, high, effect] = ["a_ns", "b_ns", "change_percent", "low_percent", "high_percent", "effect_percent"].map(number);
  const names = columnOf(table, "name"), verdicts = columnOf(table, "verdict"), reasons = columnOf(table, "reason");
  return names.map((name, i) => ({
    name: String(name), a: a[i], b: b[i], change: change[i], low: low[i], high: high[i], effect: effect[i],
    verdict: String(verdicts[i]), reason: String(reasons[i] ?? ""),
  }));
}

/** "-3.1 %" */
export function percent(value: number | null): string {
  if (value === null) return "?";
  const size = Math.abs(value);
  return `${value > 0 ? "+" : value < 0 ? "\u2212" : ""}${size.toFixed(size >= 99.5 ? 0 : size >= 0.995 ? 1 : size >= 0.0995 ? 2 : 3)} %`;
}

/** The extent of the axis of changes to either side: the widest interval, at most four times the typical one. */
export function reach(ranges: Range[]): number {
  const ends = ranges.flatMap((r) => [r.low, r.high]).filter((v): v is number => v !== null).map(Math.abs).sort((x, y) => x - y);
  if (ends.length === 0) return 1;
  const typical = ends[Math.floor(ends.length / 2)];
  return Math.max(Math.min(ends[ends.length - 1], Math.max(typical * 4, 2)), 0.1);
}

export interface Curve {
  side: "A" | "B";
  run: number;
  times: number[]; // the least, then what equal shares of them stay below
}

export function curvesOf(table: TableData | undefined, range: string): Curve[] {
  if (table === undefined) return [];
  const names = columnOf(table, "name"), sides = columnOf(table, "side"), runs = columnOf(table, "run");
  const quantiles = table.columns.map((column, i) => ({ column, cells: table.cells[i] })).filter(({ column }) => /^q\d+$/.test(column.name));
  const curves: Curve[] = [];
  names.forEach((name, row) => {
    if (name !== range) return;
    curves.push({
      side: sides[row] === "A" ? "A" : "B",
      run: Number(runs[row]),
      times: quantiles.map(({ cells }) => Number(cells[row])),
    });
  });
  return curves;
}
