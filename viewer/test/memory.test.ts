import { describe, expect, it } from "vitest";
import { type DeviceData, Memory, columns, placeOf, sizeTicks } from "../src/model/memory";

/** A parameter that existed before; an activation at 10, one at 20, the first freed at 30. */
const device: DeviceData = {
  name: "CPU", is_main: 1, peak: 2, before: 1, reserved: 0,
  gaps: [0, 10, 10, 10],
  ends: [0, 0, 0, 2],
  bytes: [100, 50, 70],
  categories: [0, 4, 4],
  stacks: [0, 1, 1],
  names: [[0, "w"]],
};

describe("memory over time", () => {
  const memory = new Memory(device);

  it("adds blocks up by category", () => {
    expect([...memory.times]).toEqual([0, 10, 20, 30]);
    expect([0, 1, 2, 3].map((change) => memory.total(change))).toEqual([100, 150, 220, 170]);
    expect(memory.at(2)).toEqual([100, 0, 0, 0, 120, 0, 0, 0]);
    expect(memory.total(-1)).toBe(0);
  });

  it("finds the change at a time", () => {
    expect([-1, 0, 9, 10, 29, 30, 99].map((time) => memory.changeAt(time))).toEqual([-1, 0, 0, 1, 2, 3, 3]);
  });

  it("tells what was there, the largest first", () => {
    expect(memory.alive(2)).toEqual([
      { category: 4, stack: 1, name: "", bytes: 120, count: 2 },
      { category: 0, stack: 0, name: "w", bytes: 100, count: 1 },
    ]);
    expect(memory.alive(3).map((group) => group.bytes)).toEqual([100, 70]);
    expect(memory.alive(-1)).toEqual([]);
  });

  it("shows the most of each column, and what lasts into it", () => {
    const all = memory.totals(device.categories.concat([0, 0, 0, 0, 0]).map(() => true));
    expect([...columns(memory, all, 0, 40, 4)]).toEqual([0, 1, 2, 2]); // at 30 the previous change is larger
    expect([...columns(memory, all, 0, 40, 1)]).toEqual([2]);
    expect([...columns(memory, all, -20, 0, 2)]).toEqual([-1, -1]);
    const parameters = memory.totals([true, false, false, false, false, false, false, false]);
    expect([...parameters]).toEqual([100, 100, 100, 100]);
  });
});

describe("places", () => {
  it("are a module and a line of the user's", () => {
    const stack = "<built-in function linear>;torch/nn/modules/linear.py(130): forward;nn.Module: Linear_0;train.py(7): step;main.py(1): <module>;";
    expect(placeOf(stack)).toBe("Linear_0 \u00b7 train.py(7): step");
    expect(placeOf("torch/optim/adam.py(139): _init_group;train.py(9): step;")).toBe("torch/optim/adam.py(139): _init_group \u00b7 train.py(9): step");
    expect(placeOf("train.py(9): step;")).toBe("train.py(9): step");
    expect(placeOf("<built-in>;")).toBe("<built-in>");
    expect(placeOf("")).toBe("");
  });
});

describe("an axis of sizes", () => {
  it("has round numbers, not too many", () => {
    expect(sizeTicks(100, 5)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(sizeTicks(7, 4)).toEqual([0, 2, 4, 6]);
    expect(sizeTicks(0, 4)).toEqual([0]);
    expect(sizeTicks(1.1e9, 6).length).toBeLessThanOrEqual(7);
  });
});
