// Sentences about samples, from their tables.

import type { Cell, TableData } from "../decode/format";
import { cellOf } from "./tables";
import * as units from "./units";

function numberOf(table: TableData, row: number, name: string): number {
  const cell: Cell = cellOf(table, row, name);
  return typeof cell === "number" ? cell : 0;
}

/** The number of samples, and which of them count. */
export function whatCounts(totals: TableData | undefined): string {
  if (totals === undefined || totals.rows === 0) return "";
  const what = cellOf(totals, 0, "what"), n = numberOf(totals, 0, "samples");
  return `${units.countOf(n, "sample")} of ${units.countOf(numberOf(totals, 0, "threads"), "thread")} in ${units.countOf(numberOf(totals, 0, "processes"), "process")}${typeof what === "string" && what !== "" ? `: ${what}` : ""}.`;
}

/** Quality of each sampler. */
export function auditOf(audit: TableData | undefined): string[] {
  const rows = audit?.cells[0]?.length ?? 0, list: string[] = [];
  for (let row = 0; audit !== undefined && row < rows; row++) {
    const part = (name: string): string => units.share(numberOf(audit, row, name));
    const distance = cellOf(audit, row, "distance"), strategy = cellOf(audit, row, "strategy");
    const rate = `${units.count(Math.round(numberOf(audit, row, "achieved_hz")))} of ${units.count(Math.round(numberOf(audit, row, "rate_hz")))} rounds a second`;
    const error = typeof distance === "number"
      ? ` Shares of functions differ by ${units.share(distance)} from those of the exact samples (${part("distance_low")} to ${part("distance_high")}; ${part("distance_by_chance")} is expected by chance).`
      : "";
    list.push(
      `${typeof strategy === "string" && strategy !== "" ? `${strategy}: ` : ""}${rate}, ${part("missed_share")} missed, ${part("rejected_share")} rejected, ` +
        `${part("unstable_share")} unstable, ${part("exact_share")} exact; it cost the program ${part("cost_share")} of its time.${error}`,
    );
  }
  return list;
}

/** Notes on the results: omitted data, and the meaning of special rows. */
export function notesOf(notes: TableData | undefined): string[] {
  return (notes?.cells[0] ?? []).filter((cell): cell is string => typeof cell === "string");
}
