// The heat map of ranks and iterations: meaning of cells, order of rows, and reduction of cells that share a pixel.

import type { ProcessInfo, TableData } from "../decode/format";
import type { HeatCells, HeatData } from "../decode/heat";
import { columnOf } from "./tables";
import * as units from "./units";

export type Order = "rank" | "mean" | "host";
export type Measure = "relative" | "absolute";

/** One cell, for display. */
export interface HeatCell {
  row: number; // of the data, not of the screen
  column: number;
  process: number;
  iteration: number;
  ns: number;
  median: number;
  ratio: number;
  longer: string; // "": no range explains it
  longerNs: number;
}

export class HeatMap {
  /** Means of rows, nanoseconds: of the slowest rank in each. */
  readonly means: Float64Array;
  /** The typical ratio: above 1 if a cell is the longest of several. Colours are relative to it. */
  readonly typical: number;
  private readonly medianOfMedians: number;

  constructor(
    readonly data: HeatData,
    readonly cells: HeatCells,
    private readonly processes: ProcessInfo[],
    private readonly times: TableData | undefined,
  ) {
    this.means = Float64Array.from({ length: data.rows }, (_, row) => this.meanOf(row));
    const sorted = data.medians.filter((ns) => ns > 0).sort((a, b) => a - b);
    this.medianOfMedians = sorted[sorted.length >> 1] ?? 1;
    const ratios = this.sample((at) => cells.ratio[at]);
    this.typical = ratios[ratios.length >> 1] ?? 1;
  }

  /** Values of cells that have one, some 200,000 of them at most, in ascending order. */
  private sample(of: (at: number) => number): number[] {
    const n = this.cells.ratio.length, step = Math.max(1, Math.floor(n / 200_000)), found: number[] = [];
    for (let at = 0; at < n; at += step) if (this.cells.ratio[at] > 0) found.push(of(at));
    return found.sort((a, b) => a - b);
  }

  private meanOf(row: number): number {
    const { columns, medians } = this.data;
    let sum = 0, n = 0;
    for (let c = 0; c < columns; c++) {
      const ratio = this.cells.ratio[row * columns + c];
      if (ratio === 0) continue;
      sum += ratio * medians[c];
      n++;
    }
    return n === 0 ? 0 : sum / n;
  }

  /** The first process of a row. */
  private firstOf(row: number): number {
    return this.data.processes[row * this.data.ranks] ?? -1;
  }

  hostOf(row: number): string {
    return this.processes[this.firstOf(row)]?.host ?? "";
  }

  /** "rank 3", "ranks 8 to 11", or a pid where no rank is known. */
  labelOf(row: number): string {
    const of = this.data.processes.slice(row * this.data.ranks, (row + 1) * this.data.ranks).filter((p) => p >= 0);
    const first = this.processes[of[0]], last = this.processes[of[of.length - 1]];
    if (first === undefined || last === undefined) return "";
    if (first.rank < 0) return `pid ${first.pid}`;
    return of.length > 1 ? `${first.rank} to ${last.rank}` : String(first.rank);
  }

  /** A short form: the first of several ranks. */
  shortLabelOf(row: number): string {
    const first = this.processes[this.firstOf(row)];
    return first === undefined ? "" : String(first.rank >= 0 ? first.rank : first.pid);
  }

  /** Rows from top to bottom. */
  order(by: Order): Int32Array {
    const rows = Int32Array.from({ length: this.data.rows }, (_, i) => i);
    if (by === "mean") return rows.sort((a, b) => this.means[b] - this.means[a] || a - b);
    if (by === "rank") return rows;
    const hosts = Array.from(rows, (row) => this.hostOf(row));
    return rows.sort((a, b) => hosts[a].localeCompare(hosts[b], undefined, { numeric: true }) || a - b);
  }

  /** Value for the colour: relative to the iteration's median, or absolute; 0: no data. */
  value(at: number, measure: Measure): number {
    const ratio = this.cells.ratio[at];
    return measure === "relative" ? ratio / this.typical : (ratio * this.data.medians[at % this.data.columns]) / this.medianOfMedians;
  }

  /** A time that is `value` of this measure, in nanoseconds. */
  nsOf(value: number): number {
    return value * this.medianOfMedians;
  }

  /** The p99.9 value; colours do not change beyond it. */
  ceiling(measure: Measure): number {
    const found = this.sample((at) => this.value(at, measure));
    const high = found[Math.min(found.length - 1, Math.floor(found.length * 0.999))] ?? 1;
    return Math.min(Math.max(high, measure === "relative" ? 1.25 : 1.1), 4);
  }

  /** "4 ranks"; if some were recorded repeatedly, "2 ranks, recorded 4 times in all". */
  who(): string {
    const of = this.data.processes.filter((process) => process >= 0);
    const different = new Set(of.map((process) => {
      const rank = this.processes[process]?.rank ?? -1;
      return rank >= 0 ? `rank ${rank}` : `process ${process}`;
    })).size;
    return units.countOf(different, "rank") + (of.length > different ? `, recorded ${units.count(of.length)} times in all` : "");
  }

  /** The first iteration of a column. */
  iterationOf(column: number): number {
    return this.data.first + column * this.data.iterations;
  }

  cell(row: number, column: number): HeatCell | null {
    const { data, cells } = this, at = row * data.columns + column, ratio = cells.ratio[at];
    if (!(ratio > 0)) return null;
    const median = data.medians[column], ns = ratio * median;
    return {
      row, column, ratio, median, ns,
      process: data.processes[row * data.ranks + (cells.rank[at] ?? 0)] ?? -1,
      iteration: this.iterationOf(column) + (cells.iteration[at] ?? 0),
      longer: data.names[cells.name[at]] ?? "",
      longerNs: (cells.extra[at] / 255) * ns,
    };
  }

  /** The cell with the largest value in these rows and columns, -1 if all are empty. */
  largest(order: Int32Array, rows: [number, number], columns: [number, number], measure: Measure): number {
    const width = this.data.columns;
    let found = -1, most = 0;
    for (let r = rows[0]; r < rows[1]; r++) {
      for (let at = order[r] * width + columns[0], end = order[r] * width + columns[1]; at < end; at++) {
        const value = this.value(at, measure);
        if (value > most) {
          most = value;
          found = at;
        }
      }
    }
    return found;
  }

  processName(process: number): string {
    const info = this.processes[process];
    if (info === undefined) return "(unknown)";
    return `${info.rank >= 0 ? `rank ${info.rank}` : `process ${info.pid}`}${info.host === "" ? "" : ` on ${info.host}`}`;
  }

  /** Why a rank is always slower than others, from the table of ranks. */
  private habit(process: number): string {
    const info = this.processes[process];
    if (this.times === undefined || info === undefined) return "";
    const pids = columnOf(this.times, "pid"), hosts = columnOf(this.times, "host"), ranks = columnOf(this.times, "rank");
    const row = pids.findIndex((pid, i) => pid === info.pid && hosts[i] === info.host && (ranks[i] ?? -1) === info.rank);
    const longer = row < 0 ? null : columnOf(this.times, "longer")[row];
    if (longer === null || longer === undefined || columnOf(this.times, "outlier")[row] !== true) return "";
    return `on average ${longer} is longer by ${units.duration(Number(columnOf(this.times, "longer_by_ns")[row]))} there than on other ranks`;
  }

  /** "rank 3 on node1, iteration 57: 124 ms, 24.0 % above the median of 100 ms; forward was longer by 24.1 ms" */
  describe(cell: HeatCell): string {
    const off = cell.ratio - 1, size = units.share(Math.abs(off));
    const against = Math.abs(off) < 0.005 ? "as the median rank" : `${size} ${off > 0 ? "above" : "below"} the median rank's ${units.duration(cell.median)}`;
    const why = cell.longer !== "" ? `${cell.longer} was longer by ${units.duration(cell.longerNs)} than in iterations before` : off > 0.02 ? this.habit(cell.process) : "";
    const of = [
      ...(this.data.ranks > 1 ? [units.countOf(this.data.ranks, "rank")] : []),
      ...(this.data.iterations > 1 ? [units.countOf(this.data.iterations, "iteration")] : []),
    ];
    const thinned = of.length > 0 ? ` (the longest of ${of.join(" and ")})` : "";
    return `${this.processName(cell.process)}, iteration ${units.count(cell.iteration)}: ${units.duration(cell.ns)}, ${against}${thinned}${why === "" ? "" : `; ${why}`}`;
  }

  /** Describes the cells if one covers several iterations or ranks. */
  thinning(): string {
    const { ranks, iterations } = this.data;
    if (ranks === 1 && iterations === 1) return "";
    const of = [...(ranks > 1 ? [`${ranks} neighbouring ranks`] : []), ...(iterations > 1 ? [`${iterations} iterations in a row`] : [])];
    return `Each cell covers ${of.join(" and ")} and shows the longest of them.`;
  }
}
