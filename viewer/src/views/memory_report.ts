// Allocated memory over time, suspected leaks, and the tables of `marey report --memory`.

import type { TableData } from "../decode/format";
import { LINE_COLORS } from "../model/colors";
import { held, leaksOf, linesOf } from "../model/memory_pools";
import * as units from "../model/units";
import { Chart, timeText } from "../ui/chart";
import { append, el } from "../ui/dom";
import { Tables } from "./tables";

const POINTS = 2000; // of a line

export class MemoryView {
  readonly element = el("div", { class: "memory" });

  constructor(tables: TableData[]) {
    const find = (name: string): TableData | undefined => tables.find((table) => table.name === name);
    const leaks = el("ul", { class: "leaks" });
    for (const sentence of leaksOf(find("growth"))) append(leaks, el("li", {}, sentence));
    if (leaks.childElementCount > 0) append(this.element, leaks);
    this.draw(find("resident"), find("live"));
    append(this.element, new Tables(tables, null, "memory").element);
  }

  private draw(resident: TableData | undefined, live: TableData | undefined): void {
    const all = [...linesOf(resident, "resident", POINTS), ...linesOf(live, "alive", POINTS)].sort((a, b) => b.most - a.most);
    const shown = all.slice(0, LINE_COLORS.length);
    if (shown.length === 0) return;
    const chart = new Chart();
    const x = [...new Set(shown.flatMap((line) => line.at))].sort((a, b) => a - b);
    const lines = shown.map((line, i) => ({ label: line.label, color: LINE_COLORS[i], values: held(line, x), kind: "steps" as const, width: 1.5 }));
    const more = all.length - shown.length;
    const text = shown.map((line) => `${line.label} at most ${units.bytes(line.most)}`).join("; ") + (more > 0 ? `; ${more} more are in the tables` : "");
    chart.show({ x, lines, xLabel: "time since the process began", yLabel: "memory", xText: timeText, yText: units.bytes, isFromZero: true }, text);
    append(this.element, el("h3", {}, "Memory over time"), chart.element, el("p", { class: "hint" }, text));
  }
}
