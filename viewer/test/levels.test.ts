import { describe, expect, it } from "vitest";
import { buildLevels, firstBlock, levelFor } from "../src/model/levels";
import { rowOf } from "./rows";

/** A burst of short events, a long one, a gap, and another burst, from a fixed random sequence. */
function bursts(n: number): [number, number, number][] {
  let seed = 1, time = 0;
  const random = (): number => (seed = (seed * 16807) % 2147483647) / 2147483647;
  return Array.from({ length: n }, (_, i) => {
    const length = i % 5000 === 4999 ? 1e7 : Math.floor(random() * 40);
    const event: [number, number, number] = [time, length, i % 7];
    time += length + Math.floor(random() * 20) + (i % 20000 === 0 ? 1e8 : 0);
    return event;
  });
}

describe("levels of detail", () => {
  const row = rowOf(bursts(100_000));
  const levels = buildLevels(row);
  const busy = Array.from({ length: row.n }, (_, i) => row.duration(i)).reduce((a, b) => a + b);

  it("get coarser, and each is less than half of the one below", () => {
    expect(levels.length).toBeGreaterThan(1);
    let n = row.n;
    for (const level of levels) {
      expect(level.n).toBeLessThanOrEqual(n / 2);
      n = level.n;
    }
    expect(n).toBeLessThanOrEqual(4096);
  });

  it("cover the same time as the events, each of which is in one block", () => {
    for (const level of levels) {
      expect(level.busy.reduce((a, b) => a + b)).toBe(busy);
      expect(level.first[0]).toBe(0);
      const inOrder = Array.from(level.first).every((first, b) => b === 0 || first > level.first[b - 1]);
      const beginWithThem = Array.from(level.first).every((first, b) => level.start[b] === row.start[first]);
      expect([inOrder, beginWithThem]).toEqual([true, true]);
    }
  });

  it("merge nothing that can be told apart", () => {
    for (const level of levels) {
      const wrong = Array.from(level.first).filter((first, b) => {
        const last = b + 1 < level.n ? level.first[b + 1] - 1 : row.n - 1;
        const isClose = row.start[last] - level.start[b] < level.resolution * 2;
        return last !== first && (row.duration(level.longest[b]) >= level.resolution || !isClose);
      });
      expect(wrong).toEqual([]);
    }
  });

  it("leave few blocks in any window", () => {
    const pixels = 1000;
    for (const share of [1, 0.1, 0.01, 0.0001]) {
      const span = (row.end(row.n - 1) - row.start[0]) * share;
      const level = levelFor(levels, span / pixels);
      for (const from of [0, span, 5 * span]) {
        let n = 0;
        if (level !== null) for (let b = firstBlock(level, from); b < level.n && level.start[b] < from + span; b++) n++;
        else for (let i = row.firstReaching(from); i < row.n && row.start[i] < from + span; i++) n++;
        expect(n).toBeLessThan(pixels * 8);
      }
    }
  });

  it("are not needed for few events", () => {
    expect(buildLevels(rowOf([[0, 1], [5, 1]]))).toEqual([]);
    expect(buildLevels(rowOf([]))).toEqual([]);
    expect(levelFor([], 1)).toBeNull();
  });

  it("stand events that all begin together", () => {
    const same = rowOf(Array.from({ length: 10_000 }, () => [5, 0] as [number, number]));
    for (const level of buildLevels(same)) expect(level.n).toBeGreaterThan(0);
  });
});
