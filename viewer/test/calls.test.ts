import { describe, expect, it } from "vitest";
import { type CallNodes, type Profile, decodeNodes } from "../src/decode/calls";
import type { FunctionData, SignatureData } from "../src/decode/format";
import { ChangeColors } from "../src/model/call_changes";
import { calleeTable, callerTable, functionTable, signatureTable } from "../src/model/call_tables";
import { type TreeWish, growTree, joinProfiles, nameOf, placeOf } from "../src/model/calls";
import { findBoxes } from "../src/model/flame";
import { columnOf } from "../src/model/tables";
import * as units from "../src/model/units";

const NAMES = ["parent", "func", "signature", "thread", "calls", "resumes", "self", "total", "max", "gpu"] as const;

/** A row per node, without resumes and the longest call. */
type Row = [parent: number, func: number, signature: number, thread: number, calls: number, self: number, total: number];

function nodesOf(rows: Row[]): CallNodes {
  const nodes = Object.fromEntries(NAMES.map((name) => [name, new Float64Array(rows.length)])) as CallNodes;
  rows.forEach(([parent, func, signature, thread, calls, self, total], i) =>
    Object.entries({ parent, func, signature, thread, calls, self, total }).forEach(([name, value]) => (nodes[name as keyof CallNodes][i] = value)));
  return nodes;
}

const FUNCTIONS: FunctionData[] = [
  ["(other paths)", "(other paths)", "~", 0, "", 2],
  ["main", "main", "/home/u/run.py", 1, "run", 0],
  ["dot", "dot", "/home/u/run.py", 7, "run", 0],
  ["<built-in method builtins.len>", "", "~", 0, "builtins", 1],
  ["fib", "fib", "/home/u/run.py", 20, "run", 0],
];
const SIGNATURES: SignatureData[] = [[0, "", 0], [2, "a:float32(16,)", 16], [2, "a:float32(64,)", 64]];
const ROWS: Row[] = [
  [0, 0, 0, 0, 0, 0, 0],
  [0, 1, 0, 0, 1, 10, 190],
  [1, 2, 1, 0, 4, 40, 40],
  [1, 2, 2, 0, 1, 50, 60],
  [3, 3, 0, 0, 5, 10, 10],
  [1, 4, 0, 0, 1, 20, 80],
  [5, 4, 0, 0, 2, 60, 60],
  [0, 2, 1, 1, 1, 7, 7],
];

function profile(change: Partial<Profile> = {}): Profile {
  return {
    title: "run", functions: FUNCTIONS, signatures: SIGNATURES, threads: ["MainThread", "loader"],
    other_paths: 0, widened: 0, cost_ps: 0, is_cpu_time: false, nodes: nodesOf(ROWS), ...change,
  };
}

const ALL: TreeWish = { bySignature: false, thread: -1, weight: "time", sides: [0] };

function rowsOf(table: ReturnType<typeof functionTable>["table"], ...names: string[]): unknown[][] {
  return columnOf(table, "name").map((name, i) => [name, ...names.map((column) => columnOf(table, column)[i])]);
}

describe("nodes of a page", () => {
  it("come from planes of bytes, parents as how far back they are", () => {
    const columns = [[0, 1, 1], [0, 1, 300], ...Array.from({ length: 8 }, (_, c) => [0, c, 2 * c])];
    const widths = columns.map((column) => (Math.max(...column) > 255 ? 2 : 1));
    const bytes = [3, 0, 0, 0, columns.length, ...widths];
    columns.forEach((column, c) => {
      for (let plane = 0; plane < widths[c]; plane++) bytes.push(...column.map((value) => (value >> (8 * plane)) & 255));
    });
    const nodes = decodeNodes(Uint8Array.from(bytes));
    expect(Array.from(nodes.parent)).toEqual([0, 0, 1]);
    expect(Array.from(nodes.func)).toEqual([0, 1, 300]);
    expect(Array.from(nodes.gpu)).toEqual([0, 7, 14]);
    expect(() => decodeNodes(Uint8Array.from(bytes.slice(0, -1)))).toThrow("not whole");
  });
});

describe("the tree of calls", () => {
  const calls = joinProfiles([profile()]);

  it("merges signatures and threads, the widest child first", () => {
    const { flame, sums } = growTree(calls, ALL);
    expect(flame.name).toEqual(["all", "main", "dot", "<built-in method builtins.len>", "fib", "fib", "dot"]);
    expect(Array.from(flame.depth)).toEqual([0, 1, 2, 3, 2, 3, 1]);
    expect(Array.from(flame.total)).toEqual([197, 190, 100, 10, 80, 60, 7]);
    expect(sums[0].calls[2]).toBe(5);
  });

  it("tells signatures apart, and threads", () => {
    const { flame } = growTree(calls, { ...ALL, bySignature: true, thread: 0 });
    expect(flame.name.slice(2)).toEqual(["fib", "fib", "dot(a:float32(64,))", "<built-in method builtins.len>", "dot(a:float32(16,))"]);
    expect(growTree(calls, { ...ALL, thread: 1 }).flame.name).toEqual(["all", "dot"]);
  });

  it("is as wide as what is in it, also where totals tell of more", () => {
    const rows: Row[] = [[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 1, 10, 100], [1, 2, 0, 0, 1, 90, 90]];
    const { flame } = growTree(joinProfiles([profile({ nodes: nodesOf(rows) })]), ALL);
    expect([flame.name[1], flame.total[0], flame.total[1]]).toEqual(["(other paths)", 100, 100]);
  });

  it("finds boxes, without counting what is in another of them twice", () => {
    const tree = growTree(calls, ALL), found = findBoxes(tree.flame, (node) => tree.func[node] === 4);
    expect([found.count, found.total, tree.flame.depth[found.widest]]).toEqual([2, 80, 2]);
  });
});

describe("tables of calls", () => {
  const calls = joinProfiles([profile()]), tree = growTree(calls, ALL), split = growTree(calls, { ...ALL, bySignature: true });

  it("count recursion once", () => {
    const { table, about } = functionTable(calls, tree);
    expect(rowsOf(table, "calls", "self_ns", "total_ns", "place")).toEqual([
      ["dot", 6, 97, 107, "run.py:7"],
      ["fib", 3, 80, 80, "run.py:20"],
      ["main", 1, 10, 190, "run.py:1"],
      ["<built-in method builtins.len>", 5, 10, 10, ""],
    ]);
    expect(about.map((func) => nameOf(calls, func, 0))).toEqual(columnOf(table, "name"));
    expect(columnOf(table, "share").reduce<number>((sum, cell) => sum + Number(cell), 0)).toBeCloseTo(1);
  });

  it("split a function by what it was called with", () => {
    const { table } = signatureTable(calls, split, 2);
    expect(rowsOf(table, "calls", "total_ns", "per_element_ns")).toEqual([["a:float32(64,)", 1, 60, 60 / 64], ["a:float32(16,)", 5, 47, 47 / 5 / 16]]);
  });

  it("tell who calls whom", () => {
    expect(rowsOf(callerTable(calls, tree, 2).table, "calls", "total_ns")).toEqual([["main", 5, 100], ["(nobody)", 1, 7]]);
    expect(rowsOf(calleeTable(calls, tree, 1).table, "calls")).toEqual([["dot", 5], ["fib", 1]]);
  });
});

describe("two profiles", () => {
  // The same program after a change: `dot` has moved and is faster, `fib` is gone, ids differ.
  const moved: FunctionData[] = [FUNCTIONS[0], ["dot", "dot", "/tmp/run.py", 9, "run", 0], ["main", "main", "/tmp/run.py", 1, "run", 0]];
  const now = profile({
    title: "now", functions: moved, signatures: [[0, "", 0], [1, "a:float32(64,)", 64]],
    nodes: nodesOf([[0, 0, 0, 0, 0, 0, 0], [0, 2, 0, 0, 1, 10, 40], [1, 1, 1, 0, 2, 30, 30]]),
  });
  const calls = joinProfiles([now, profile()]);

  it("have functions in common by name and file, wherever they stand", () => {
    expect(calls.functions.map(([name]) => name)).toEqual(["(other paths)", "dot", "main", "<built-in method builtins.len>", "fib"]);
    expect(calls.signatures.map(([, text]) => text)).toEqual(["", "a:float32(64,)", "a:float32(16,)"]);
    expect(placeOf(calls, 1)).toBe("run.py:9");
  });

  it("are told apart box by box", () => {
    const both = growTree(calls, { ...ALL, sides: [0, 1] });
    expect(both.flame.name).toEqual(["all", "main", "dot", "<built-in method builtins.len>", "fib", "fib", "dot"]);
    expect(both.flame.total[2]).toBe(130);
    expect([both.sums[0].self[2], both.sums[1].self[2]]).toEqual([30, 90]);
    expect(growTree(calls, { ...ALL, sides: [1] }).flame.total[0]).toBe(197);
  });

  it("have a table of what changed, the largest first", () => {
    const { table } = functionTable(calls, growTree(calls, { ...ALL, sides: [0, 1] }));
    expect(rowsOf(table, "self_change_ns", "calls", "calls_before")).toEqual([
      ["fib", -80, 0, 3], ["dot", -67, 2, 6], ["<built-in method builtins.len>", -10, 0, 5], ["main", 0, 1, 1],
    ]);
  });

  it("keep functions of one name in the order of their lines", () => {
    const lambdas = (lines: number[]): Profile => profile({
      functions: [FUNCTIONS[0], ...lines.map((line): FunctionData => ["<lambda>", "<lambda>", "run.py", line, "run", 0])],
      signatures: [[0, "", 0]], nodes: nodesOf([[0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 1, 1, 1], [0, 2, 0, 0, 1, 2, 2]]),
    });
    const joined = joinProfiles([lambdas([8, 3]), lambdas([4, 9])]);
    expect(Array.from(joined.func)).toEqual([0, 1, 2, 0, 2, 1]);
  });
});

describe("colours of changes", () => {
  it("begin at round numbers, less and more on either side", () => {
    const colors = new ChangeColors(Float64Array.from([-3000, 100, 7]), false);
    expect(colors.steps).toEqual([20, 200, 1000]);
    expect(colors.of(-3000)).toBe("#5a9bd4");
    expect(colors.of(100)).toBe("#fbdccb");
    expect(colors.of(7)).toBe(colors.of(0));
    expect(new ChangeColors(new Float64Array(2), false).of(0)).toBe("#e8e8e8");
  });

  it("are told with their sign", () => {
    expect([units.change(1500), units.change(-20), units.change(0)]).toEqual(["+1.50 \u00b5s", "\u221220 ns", "0 ns"]);
    expect([0.25, 3, 1500].map(units.fineDuration)).toEqual(["250 ps", "3.00 ns", "1.50 \u00b5s"]);
  });
});
