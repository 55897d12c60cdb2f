import { describe, expect, it } from "vitest";
import type { ProcessInfo, TableData } from "../src/decode/format";
import { type HeatData, decodeHeat } from "../src/decode/heat";
import { HeatMap } from "../src/model/heat";
import { HeatScale, colorAt } from "../src/model/heat_colors";
import { Span, cellTicks } from "../src/model/heat_window";

const info = (rank: number, host: string): ProcessInfo => ({ rank, host, pid: 100 + rank } as ProcessInfo);

function dataOf(rows: number, columns: number, more: Partial<HeatData> = {}): HeatData {
  return {
    rows, columns, first: 0, ranks: 1, iterations: 1, rank_width: 0, iteration_width: 0,
    processes: Array.from({ length: rows }, (_, i) => i), names: ["", "forward"], medians: Array<number>(columns).fill(1000), ...more,
  };
}

/** Ratios, 0 for none; then names, extras and other planes. */
function blockOf(ratios: number[], ...planes: number[][]): Uint8Array {
  const codes = ratios.map((ratio) => (ratio === 0 ? 0 : Math.round(Math.log(ratio) * 100) + 32768));
  const none = ratios.map(() => 0);
  const all = [codes.map((code) => code & 255), codes.map((code) => code >> 8), planes[0] ?? none, planes[1] ?? none, ...planes.slice(2)];
  return Uint8Array.from(all.flat());
}

// Ranks 0 and 2 on node10, 1 and 3 on node2; rank 2 is slow in the last iteration, rank 3 a little in all.
const ratios = [1, 1, 1, /**/ 1, 0, 1, /**/ 1, 1, 3, /**/ 1.2, 1.2, 1.2];
const processes = [info(0, "node10"), info(1, "node2"), info(2, "node10"), info(3, "node2")];
const times: TableData = {
  name: "rank_times", rows: 1,
  columns: ["rank", "pid", "host", "outlier", "longer", "longer_by_ns"].map((name) => ({ name, title: name, type: "text" as const, unit: "" as const })),
  cells: [[3], [103], ["node2"], [true], ["data"], [180]],
};
const map = new HeatMap(dataOf(4, 3), decodeHeat(dataOf(4, 3), blockOf(ratios, [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 170, 0, 0, 0])), processes, times);

describe("the map of ranks", () => {
  it("has times against the median of their column, within half of a hundredth", () => {
    expect(map.cell(2, 2)?.ns).toBeCloseTo(3000, -2);
    expect(map.cell(3, 0)?.ratio).toBeCloseTo(1.2, 2);
    expect(map.cell(1, 1)).toBeNull();
  });

  it("stands in the order that is asked for", () => {
    expect([...map.order("rank")]).toEqual([0, 1, 2, 3]);
    expect([...map.order("mean")]).toEqual([2, 3, 0, 1]);
    expect([...map.order("host")]).toEqual([1, 3, 0, 2]);
  });

  it("says what a cell is and what made it longer", () => {
    expect(map.describe(map.cell(2, 2)!)).toMatch(/^rank 2 on node10, iteration 2: 3\.0\d \u00b5s, 20\d(\.\d)? % above the median rank's 1\.00 \u00b5s; forward was longer by 2\.0\d \u00b5s than in iterations before$/);
    expect(map.describe(map.cell(3, 1)!)).toContain("; on average data is longer by 180 ns there than on other ranks");
    expect(map.describe(map.cell(0, 0)!)).toBe("rank 0 on node10, iteration 0: 1.00 \u00b5s, as the median rank");
  });

  it("finds the largest of some cells, so that one pixel for many shows it", () => {
    expect(map.largest(map.order("rank"), [0, 4], [0, 3], "relative")).toBe(8);
    expect(map.largest(map.order("rank"), [0, 2], [0, 3], "relative")).toBe(0);
    expect(map.largest(map.order("rank"), [1, 2], [1, 2], "relative")).toBe(-1);
  });

  it("keeps rank and iteration of a cell that covers several", () => {
    const data = dataOf(1, 2, { ranks: 2, iterations: 4, rank_width: 1, iteration_width: 1, processes: [0, 1] });
    const thinned = new HeatMap(data, decodeHeat(data, blockOf([1, 2], [0, 0], [0, 0], [0, 1], [3, 2])), processes, undefined);
    expect(thinned.cell(0, 1)).toMatchObject({ process: 1, iteration: 6 });
    expect([thinned.labelOf(0), thinned.shortLabelOf(0)]).toEqual(["0 to 1", "0"]);
    expect(thinned.describe(thinned.cell(0, 1)!)).toContain("(the longest of 2 ranks and 4 iterations)");
    expect(thinned.thinning()).toBe("Each cell covers 2 neighbouring ranks and 4 iterations in a row and shows the longest of them.");
    expect(map.thinning()).toBe("");
  });

  it("colours what is usual alike where all cells are the longest of some", () => {
    const data = dataOf(2, 2, { ranks: 2, rank_width: 1, processes: [0, 1, 2, 3] });
    const thinned = new HeatMap(data, decodeHeat(data, blockOf([1.05, 1.05, 1.05, 2.1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0])), processes, undefined);
    expect(thinned.value(0, "relative")).toBeCloseTo(1, 5);
    expect(thinned.value(3, "relative")).toBeCloseTo(2, 1);
    expect(thinned.cell(1, 1)?.ratio).toBeCloseTo(2.1, 1);
  });

  it("refuses a block that is not whole", () => {
    expect(() => decodeHeat(dataOf(4, 3), new Uint8Array(20))).toThrow("not whole");
  });
});

describe("its colours", () => {
  it("are the same beyond the ceiling, and even between", () => {
    const scale = new HeatScale("relative", map.ceiling("relative"), false);
    expect(scale.ceiling).toBeLessThanOrEqual(4);
    expect(scale.pixel(100)).toBe(scale.pixel(scale.ceiling));
    expect(scale.pixel(0.01)).toBe(scale.pixel(scale.floor));
    expect(scale.step(1)).toBeGreaterThan(scale.step(0.9));
    expect(new HeatScale("relative", 2, true).pixels).not.toEqual(new HeatScale("relative", 2, false).pixels);
    expect(colorAt([[0, "#000000"], [1, "#ffffff"]], 0.5)).toBe("#808080");
  });
});

describe("what is in sight of it", () => {
  it("zooms around a place and stays within the map", () => {
    const span = new Span(1000, 500);
    span.zoom(2, 250);
    expect([span.from, span.to]).toEqual([250, 750]);
    span.pan(-5000);
    expect([span.from, span.to]).toEqual([0, 500]);
    span.reveal(700);
    expect([span.from, span.to]).toEqual([201, 701]);
    span.zoom(0.0001, 0);
    expect([span.from, span.to]).toEqual([0, 1000]);
    expect([span.at(0), span.at(499), span.at(500), span.at(-1)]).toEqual([0, 998, -1, -1]);
  });

  it("has round numbers beside it", () => {
    expect(cellTicks(new Span(1000, 500), 70)).toEqual([0, 200, 400, 600, 800]);
    expect(cellTicks(new Span(2, 300), 18)).toEqual([0, 1]);
  });
});
