import { describe, expect, it } from "vitest";
import type { Cell, TableData } from "../src/decode/format";
import { auditOf, notesOf, whatCounts } from "../src/model/samples";

function tableOf(name: string, row: Record<string, Cell>): TableData {
  const names = Object.keys(row);
  return {
    name,
    rows: 1,
    columns: names.map((column) => ({ name: column, title: column, type: "f64", unit: "" })),
    cells: names.map((column) => [row[column]]),
  };
}

describe("sentences about samples", () => {
  it("say which count", () => {
    const totals = tableOf("totals", { samples: 5235, threads: 2, processes: 1, what: "main threads all the time" });
    expect(whatCounts(totals)).toBe("5,235 samples of 2 threads in 1 process: main threads all the time.");
    expect(whatCounts(undefined)).toBe("");
  });

  it("report their quality", () => {
    const audit = tableOf("audit", {
      strategy: "snapshot", achieved_hz: 998.6, rate_hz: 1000, missed_share: 0.01, rejected_share: 0, unstable_share: 0.002,
      exact_share: 0.01, cost_share: 0.0005, distance: 0.02, distance_low: 0.01, distance_high: 0.03, distance_by_chance: 0.02,
    });
    const [sentence] = auditOf(audit);
    expect(sentence).toContain("snapshot: 999 of 1,000 rounds a second, 1.0 % missed");
    expect(sentence).toContain("it cost the program 0.05 % of its time");
    expect(sentence).toContain("differ by 2.0 %");
  });

  it("do without what was not measured", () => {
    const [sentence] = auditOf(tableOf("audit", { strategy: "", achieved_hz: 100, rate_hz: 100, distance: null }));
    expect(sentence).not.toContain("away");
    expect(sentence.startsWith("100 of 100")).toBe(true);
    expect(auditOf(undefined)).toEqual([]);
  });

  it("are the notes of the report", () => {
    expect(notesOf(tableOf("notes", { note: "Left out: 2 s of imports at start-up." }))).toEqual(["Left out: 2 s of imports at start-up."]);
    expect(notesOf(undefined)).toEqual([]);
  });
});
