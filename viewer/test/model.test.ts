import { describe, expect, it } from "vitest";
import type { ProcessInfo, TableData } from "../src/decode/format";
import { IDLE, barsOf, windowTitle, windowsOf } from "../src/model/breakdown";
import { toPixel, textOn } from "../src/model/colors";
import { curvesOf, percent, rangesOf } from "../src/model/comparison";
import { endOf, lossOf } from "../src/model/losses";
import { ALL, CRUMBS, buildFlame, layoutFlame, magnify, searchFlame, shiftSight } from "../src/model/flame";
import { held, leaksOf, linesOf } from "../src/model/memory_pools";
import { type Series, histogram, thin, warmups } from "../src/model/series";
import { cellText, filterRows, keptRows, sortRows, toCsv } from "../src/model/tables";
import * as units from "../src/model/units";
import { Viewport, ticks } from "../src/model/viewport";
import { rowOf } from "./rows";

const table: TableData = {
  name: "ranges",
  rows: 3,
  columns: [
    { name: "name", title: "name", type: "text", unit: "" },
    { name: "total_ns", title: "total", type: "u64", unit: "ns" },
    { name: "rank", title: "rank", type: "i64", unit: "" },
  ],
  cells: [["forward", 'a "b", c', "back\nward"], [300, 1500, 20], [null, 0, 1]],
};

describe("rows", () => {
  const row = rowOf([[10, 5], [20, 10], [40, 0], [50, 5]]);

  it("find the first event that reaches into a window", () => {
    expect([0, 12, 16, 25, 30, 40, 41, 100].map((time) => row.firstReaching(time))).toEqual([0, 0, 1, 1, 2, 2, 3, 4]);
  });
});

describe("tables", () => {
  it("sort by numbers and texts, nulls last either way", () => {
    expect(sortRows(table, [0, 1, 2], 1, true)).toEqual([1, 0, 2]);
    expect(sortRows(table, [0, 1, 2], 0, false)).toEqual([1, 2, 0]);
    expect(sortRows(table, [0, 1, 2], 2, false)).toEqual([1, 2, 0]);
    expect(sortRows(table, [0, 1, 2], 2, true)).toEqual([2, 1, 0]);
  });

  it("filter by words of texts, whatever their case", () => {
    expect(filterRows(table, "WARD")).toEqual([0, 2]);
    expect(filterRows(table, " ")).toEqual([0, 1, 2]);
    expect(filterRows(table, "300")).toEqual([]);
  });

  it("are copied as CSV that others read", () => {
    expect(toCsv(table, [1, 2])).toBe('name,total_ns,rank\n"a ""b"", c",1500,0\n"back\nward",20,1\n');
  });

  it("show cells with their units", () => {
    expect(cellText(1500, table.columns[1])).toBe("1.50 \u00b5s");
    expect(cellText(null, table.columns[2])).toBe("");
    expect(cellText("12345678901234567890", { name: "x", title: "x", type: "u64", unit: "" })).toBe("12345678901234567890");
  });
});

describe("units", () => {
  it("have three digits that count, as the command has", () => {
    expect([0, 999, 1000, 12345, 999_600, 1e9, 95e9, 700e9, 8000e9].map(units.duration)).toEqual([
      "0 ns", "999 ns", "1.00 \u00b5s", "12.3 \u00b5s", "1.00 ms", "1.00 s", "95.0 s", "11.7 min", "2.22 h",
    ]);
    expect([0, 0.00123, 0.5, 1].map(units.share)).toEqual(["0.0 %", "0.12 %", "50.0 %", "100 %"]);
    expect([units.countOf(1, "process"), units.countOf(2, "process"), units.countOf(1234, "row")]).toEqual(["1 process", "2 processes", "1,234 rows"]);
  });
});

describe("axes", () => {
  it("tell their times apart, in one unit", () => {
    expect(units.durationTicks([1_205_000, 1_210_000, 1_215_000])).toEqual(["1.205 ms", "1.210 ms", "1.215 ms"]);
    expect(units.durationTicks([0, 500, 1000])).toEqual(["0.0 \u00b5s", "0.5 \u00b5s", "1.0 \u00b5s"]);
    expect(units.durationTicks([0, 20e9, 40e9])).toEqual(["0 s", "20 s", "40 s"]);
    expect(units.durationTicks([7])).toEqual(["7 ns"]);
    expect(units.durationTicks([])).toEqual([]);
  });

  it("have numbers of any size", () => {
    expect([0, 0.25, 3e9, -1.5, 1234567, 1e-7, Infinity].map(units.scientific)).toEqual(["0", "0.25", "3e9", "-1.5", "1.235e6", "1e-7", "Infinity"]);
  });
});

describe("the window", () => {
  it("keeps what is under the pointer where it is", () => {
    const view = new Viewport(1e9, 1000);
    const before = view.time(300);
    view.zoom(7, 300);
    expect(view.time(300)).toBeCloseTo(before, 3);
    view.zoom(1e12, 300); // maximum zoom
    expect(view.to - view.from).toBeGreaterThanOrEqual(9.99);
  });

  it("cannot be lost", () => {
    const view = new Viewport(1e6, 1000);
    view.pan(1e9);
    expect(view.from).toBeLessThan(1e6);
    view.pan(-1e12);
    expect(view.to).toBeGreaterThan(0);
    view.zoom(1e-12, 500);
    expect(view.to - view.from).toBeLessThan(1.1e6);
  });

  it("has round moments on its axis, far enough apart", () => {
    const view = new Viewport(1e9, 1000);
    view.show(1.23e8, 4.56e8);
    const times = ticks(view, 90);
    expect(times).toEqual([150e6, 200e6, 250e6, 300e6, 350e6, 400e6, 450e6]);
    view.show(0, 0);
    expect(ticks(view, 90).length).toBeGreaterThan(0);
  });
});

describe("the flame graph", () => {
  const tree: TableData = {
    name: "tree",
    rows: 5,
    columns: ["depth", "name", "count", "total_ns", "self_ns"].map((name) => ({ name, title: name, type: name === "name" ? "text" : "u64", unit: "" })),
    cells: [[0, 1, 2, 1, 0], ["step", "forward", "gemm", "backward", "other"], [2, 2, 9, 2, 1], [100, 60, 10, 40, 50], [0, 50, 10, 40, 50]],
  };
  const flame = buildFlame(tree);

  it("lays children out from their parent's left edge", () => {
    expect(flame.total[0]).toBe(150);
    expect(Array.from(flame.left)).toEqual([0, 0, 0, 0, 60, 100]);
    expect(Array.from(flame.parent)).toEqual([-1, 0, 1, 2, 1, 0]);
    expect(Array.from(flame.last)).toEqual([5, 4, 3, 3, 4, 5]);
  });

  it("zooms: a node fills the width below those that enclose it", () => {
    const boxes = layoutFlame(flame, 2, 600);
    expect(boxes.map((box) => [flame.name[box.node], box.x, box.width])).toEqual([
      ["step", 0, 600], ["all", 0, 600], ["forward", 0, 600], ["gemm", 0, 100],
    ]);
  });

  it("magnifies what is below the pointer, and goes out into what encloses it", () => {
    const [zoomed, sight] = magnify(flame, 0, ALL, 3, 0.5); // 75 ns of 150 stays in the middle
    expect([zoomed, sight]).toEqual([0, { scale: 3, shift: 1 }]);
    const boxes = layoutFlame(flame, 0, 150, 0.4, sight); // 50 to 100 ns
    expect(boxes.map((box) => [flame.name[box.node], box.x, box.width])).toEqual([
      ["all", 0, 150], ["step", 0, 150], ["forward", 0, 30], ["backward", 30, 120], ["other", 150, 0],
    ]);
    expect(magnify(flame, zoomed, sight, 1 / 6, 0.5)).toEqual([0, ALL]);
    // "backward" fills the width, 60 to 100 ns; when narrower, its parent becomes visible around it.
    const [outer, around] = magnify(flame, 4, ALL, 0.8, 0);
    expect([outer, around.scale]).toEqual([1, 2]);
    expect(around.shift).toBeCloseTo(1);
    expect(magnify(flame, 4, ALL, 1e9, 0.5)[1].scale).toBe(4); // 10 ns is the minimum
    expect(shiftSight(sight, 5)).toEqual({ scale: 3, shift: 2 });
    expect(shiftSight(sight, -5)).toEqual({ scale: 3, shift: 0 });
  });

  it("draws what is too narrow as crumbs, with all in it", () => {
    expect(layoutFlame(flame, 0, 150, 45).map((box) => flame.name[box.node] ?? box)).toEqual([
      "all", "step", "forward", { node: CRUMBS, x: 0, width: 10, row: 3 }, { node: CRUMBS, x: 60, width: 40, row: 2 }, "other",
    ]);
    const many = buildFlame({ ...tree, cells: [[0, 1, 1, 1, 1], ["a", "b", "c", "d", "e"], [1, 1, 1, 1, 1], [100, 20, 20, 20, 20], [20, 20, 20, 20, 20]] });
    expect(layoutFlame(many, 0, 100, 25).slice(2)).toEqual([{ node: CRUMBS, x: 0, width: 80, row: 2 }]);
  });

  it("knows boxes that stand for others", () => {
    const folded = { ...tree, others: 1, cells: [tree.cells[0], ["step", "forward", "gemm", "(12 others)", "other"], ...tree.cells.slice(2)] };
    expect(Array.from(buildFlame(folded).areOthers)).toEqual([0, 0, 0, 0, 1, 0]);
    expect(Array.from(buildFlame({ ...folded, others: 0 }).areOthers)).toEqual([0, 0, 0, 0, 0, 0]);
    expect([keptRows(folded), keptRows(tree)]).toEqual([4, 5]);
  });

  it("counts the time of matches once", () => {
    expect(searchFlame(flame, "e")).toMatchObject({ count: 3, total: 150 }); // step, gemm in it, other
  });
});

describe("losses", () => {
  const make = (fields: Partial<ProcessInfo>): ProcessInfo => ({ lost_events: 0, last_ns: 100, ...fields }) as ProcessInfo;

  it("go on to the end where nothing was kept behind them", () => {
    expect(lossOf(make({}))).toBeNull();
    expect(lossOf(make({ lost_events: 1200, lost_first_ns: 90, lost_last_ns: 500 }))).toEqual({ from: 90, to: 500, rest: 100, text: "1,200 events lost from here on" });
    expect(lossOf(make({ lost_events: 1, lost_first_ns: 10, lost_last_ns: 20 }))).toEqual({ from: 10, to: 20, rest: null, text: "1 event lost" });
  });

  it("are in sight: the timeline ends behind them", () => {
    expect(endOf(100, [make({}), make({ lost_events: 3, lost_first_ns: 90, lost_last_ns: 500 })])).toBe(500);
    expect(endOf(100, [make({ lost_events: 3, lost_first_ns: 9, lost_last_ns: 50 })])).toBe(100);
  });
});

describe("series", () => {
  it("are thinned without losing peaks", () => {
    const n = 100_000;
    const x = Float64Array.from({ length: n }, (_, i) => i), y = new Float64Array(n).fill(5);
    y[77_777] = 99;
    y[1234] = -1;
    const [xs, ys] = thin(x, y, 1000);
    expect(xs.length).toBeLessThanOrEqual(1001);
    expect(xs[ys.indexOf(99)]).toBe(77_777);
    expect(xs[ys.indexOf(-1)]).toBe(1234);
    expect([...xs].sort((a, b) => a - b)).toEqual(xs);
  });

  it("know where the warm-up was", () => {
    const make = (flags: number[]): Series => ({
      process: 0, place: Float64Array.from(flags.keys()), ns: new Float64Array(flags.length), flags: Uint8Array.from(flags),
    });
    expect(warmups([make([1, 3, 0, 2, 0, 1])])).toEqual([[0, 1], [5, 5]]);
    expect(warmups([make([1, 0, 0]), make([1, 1, 0])])).toEqual([[0, 1]]);
    expect(warmups([make([0, 0])])).toEqual([]);
  });

  it("are counted in bins, each once", () => {
    const values = Float64Array.from({ length: 1000 }, (_, i) => 100 + (i % 50)).sort();
    const all = histogram(values, 10);
    expect(all.counts.reduce((a, b) => a + b) + all.above).toBe(1000);
    const tail = histogram(Float64Array.from([...values, 1e9]), 10);
    expect(tail.above).toBe(1);
    expect(histogram(new Float64Array(0), 10).counts).toEqual([]);
    expect(histogram(Float64Array.from([7, 7, 7]), 10).counts.reduce((a, b) => a + b)).toBe(3);
  });
});

describe("the breakdown", () => {
  const devices: TableData = {
    name: "devices",
    rows: 2,
    columns: ["window", "rank", "device", "span_ns", "compute_ns", "exposed_comm_ns", "exposed_mem_ns", "idle_ns"].map((name) => ({
      name, title: name, type: name === "window" ? "text" : "i64", unit: "",
    })),
    cells: [["process_span", "gpu_span"], [0, 1], [-1, 3], [100, 50], [70, 20], [30, 5], [0, 0], [0, 25]],
  };

  it("calls a process without a device by its processor", () => {
    expect(barsOf(devices, null).map((bar) => bar.label)).toEqual(["rank 0, CPU", "rank 1, GPU 3"]);
    expect(barsOf(devices, "gpu_span").map((bar) => bar.parts[IDLE])).toEqual([25]);
  });

  it("has its windows in words", () => {
    expect(windowsOf(devices).map(windowTitle)).toEqual(["from the first work of a GPU to the last", "from the begin of a process to its end"]);
    expect(windowsOf(undefined)).toEqual([]);
  });
});

describe("memory", () => {
  const make = (columns: Record<string, (string | number | boolean | null)[]>): TableData => ({
    name: "x",
    rows: Object.values(columns)[0].length,
    columns: Object.keys(columns).map((name) => ({ name, title: name, type: ["device", "what", "per", "where"].includes(name) ? "text" : "f64", unit: "" })),
    cells: Object.values(columns) as TableData["cells"],
  });

  it("has a line for each pool, the highest first, whose values last until the next", () => {
    const lines = linesOf(make({ rank: [null, 1, null], pid: [7, 8, 7], device: ["host", "cuda:0", "host"], at_ns: [0, 5, 10], bytes: [1, 50, 3] }), "alive", 100);
    expect(lines.map((line) => [line.label, line.most])).toEqual([["cuda:0, rank 1: alive", 50], ["host, pid 7: alive", 3]]);
    expect(held(lines[1], [0, 5, 10, 11])).toEqual([1, 1, 3, null]);
    expect(held(lines[0], [0, 5, 10])).toEqual([null, 50, null]);
    expect(linesOf(undefined, "alive", 100)).toEqual([]);
  });

  it("tells suspected leaks alone", () => {
    const growth = make({
      rank: [null, null], pid: [7, 7], device: ["host", "host"], what: ["live", "stack"], per: ["iteration", "iteration"], slope_bytes: [5, 2e6], low_bytes: [-1, 1e6],
      high_bytes: [9, 3e6], total_bytes: [50, 2e7], is_suspected: [false, true], where: [null, "keep (t.py:4)"],
    });
    expect(leaksOf(growth)).toEqual([
      "Leak suspected, host, pid 7: what this allocates grows by 2.00 MB each iteration (95 %: 1.00 MB to 3.00 MB), 20.0 MB in all: keep (t.py:4)",
    ]);
    expect(leaksOf(undefined)).toEqual([]);
  });
});

describe("comparisons", () => {
  const text = ["name", "verdict", "reason", "side"];
  const make = (columns: Record<string, (string | number | null)[]>): TableData => ({
    name: "x",
    rows: 1,
    columns: Object.keys(columns).map((name) => ({ name, title: name, type: text.includes(name) ? "text" : "f64", unit: "" })),
    cells: Object.values(columns),
  });

  it("are read from their tables", () => {
    const ranges = rangesOf(make({
      name: ["f"], a_ns: [10], b_ns: [11], change_percent: [10], low_percent: [null], high_percent: [12], verdict: ["unsure"], effect_percent: [5], reason: ["few"],
    }));
    expect(ranges).toEqual([{ name: "f", a: 10, b: 11, change: 10, low: null, high: 12, verdict: "unsure", effect: 5, reason: "few" }]);
    expect([0, -3.14159, 140.2, 0.0421, null].map(percent)).toEqual(["0.000 %", "\u22123.1 %", "+140 %", "+0.042 %", "?"]);
  });

  it("have a curve for each run", () => {
    const curves = curvesOf(make({ name: ["f", "g", "f"], side: ["A", "A", "B"], run: [0, 0, 2], q0: [1, 9, 3], q1: [2, 9, 4] }), "f");
    expect(curves).toEqual([{ side: "A", run: 0, times: [1, 2] }, { side: "B", run: 2, times: [3, 4] }]);
  });
});

describe("colours", () => {
  it("are pixels as an image has them", () => {
    expect(toPixel("#112233")).toBe(0xff332211);
    expect([textOn("#ffffff"), textOn("#000000")]).toEqual(["#000000", "#ffffff"]);
  });
});
