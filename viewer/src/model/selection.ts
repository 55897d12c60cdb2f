// Summary of a span of time: count and duration by name.

import type { TableData } from "../decode/format";
import { hasSites } from "./search";
import { type Recording, mergedIn, nameOf } from "./recording";

interface Sum {
  name: string;
  count: number;
  total: number;
}

/** Ranges that overlap the span, clipped to it. Nested ranges count separately. */
export function summarize(recording: Recording, from: number, to: number): TableData {
  const sums = new Map<string, Sum>();
  for (const track of recording.tracks) {
    if (!hasSites(track)) continue;
    const bySite = new Map<number, Sum>();
    for (const row of track.rows) {
      for (let i = row.firstReaching(from); i < row.n && row.start[i] < to; i++) {
        const part = Math.min(row.end(i), to) - Math.max(row.start[i], from);
        let sum = bySite.get(row.id[i]);
        const merged = mergedIn(recording, track.process, row.id[i]);
        if (sum === undefined) {
          const name = merged > 0 ? "(short ranges)" : nameOf(recording, track.process, row.id[i])[0];
          sum = sums.get(name) ?? { name, count: 0, total: 0 };
          sums.set(name, sum);
          bySite.set(row.id[i], sum);
        }
        sum.count += Math.max(merged, 1);
        sum.total += part;
      }
    }
  }
  const list = [...sums.values()].sort((a, b) => b.total - a.total);
  return {
    name: "selection",
    rows: list.length,
    columns: [
      { name: "name", title: "name", type: "text", unit: "" },
      { name: "count", title: "count", type: "u64", unit: "count" },
      { name: "total_ns", title: "in the selection", type: "u64", unit: "ns" },
      { name: "mean_ns", title: "mean", type: "f64", unit: "ns" },
      { name: "share", title: "share of it", type: "f64", unit: "share" },
    ],
    cells: [
      list.map((s) => s.name),
      list.map((s) => s.count),
      list.map((s) => s.total),
      list.map((s) => s.total / s.count),
      list.map((s) => (to > from ? s.total / (to - from) : 0)),
    ],
  };
}
