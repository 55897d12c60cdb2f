// The breakdown: a bar for each device and each step, the causes of idle time, and the tables.

import type { TableData } from "../decode/format";
import { type Bar, PARTS, barsOf, sumOf, windowTitle, windowsOf } from "../model/breakdown";
import { cellOf, columnOf } from "../model/tables";
import * as units from "../model/units";
import { append, clear, el } from "../ui/dom";
import { Tables } from "./tables";

const MOST = 64; // bars of steps or devices

/** One bar, as wide as its share of the longest; the label has the same numbers. */
export function stackedBar(bar: Bar, longest: number): HTMLElement {
  const text = PARTS.map(({ title }, i) => `${title} ${units.share(bar.span > 0 ? bar.parts[i] / bar.span : 0)}`).join(", ");
  const track = el("span", { class: "stack", role: "img", "aria-label": text, title: text });
  track.style.width = `${longest > 0 ? (100 * bar.span) / longest : 0}%`;
  bar.parts.forEach((part, i) => {
    if (part <= 0) return;
    const piece = el("span", { class: "piece" });
    piece.style.width = `${(100 * part) / bar.span}%`;
    piece.style.background = PARTS[i].color;
    append(track, piece);
  });
  return track;
}

function barList(bars: Bar[]): HTMLElement {
  const longest = Math.max(...bars.map((bar) => bar.span), 0);
  const list = el("ol", { class: "stacks" });
  for (const bar of bars.slice(0, MOST)) {
    const hidden = bar.hidden > 0 ? `; ${units.duration(bar.hidden)} of communication hidden by computation` : "";
    append(
      list,
      el("li", {}, el("span", { class: "label", title: bar.label }, bar.label), el("span", {}, stackedBar(bar, longest)), el("span", { class: "number faint", title: `${units.duration(bar.span)}${hidden}` }, units.duration(bar.span))),
    );
  }
  if (bars.length > MOST) append(list, el("li", { class: "faint" }, `and ${units.count(bars.length - MOST)} more; the tables have all`));
  return list;
}

/** Legend of the colours, with times and shares. */
export function partsList(all: Bar): HTMLElement {
  const share = (ns: number): string => units.share(all.span > 0 ? ns / all.span : 0);
  const row = (title: string, ns: number, color: string): HTMLElement => {
    const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
    if (color !== "") swatch.style.background = color;
    return el("li", {}, swatch, el("span", {}, title), el("span", { class: "number" }, units.duration(ns)), el("span", { class: "number" }, share(ns)));
  };
  const list = el("ul", { class: "parts" }, ...PARTS.map(({ title, color }, i) => row(title, all.parts[i], color)));
  if (all.hidden > 0) append(list, row("communication hidden by computation", all.hidden, ""));
  return list;
}

const REASONS: Record<string, string> = {
  queued: "work was queued after other work",
  host_bound: "the host had launched nothing",
  launch: "launched, and not begun yet",
};

function idleBars(table: TableData | undefined): HTMLElement | null {
  if (table === undefined || table.rows === 0) return null;
  const sums = new Map<string, number>();
  columnOf(table, "reason").forEach((reason, row) => {
    sums.set(String(reason), (sums.get(String(reason)) ?? 0) + Number(cellOf(table, row, "ns")));
  });
  const total = [...sums.values()].reduce((a, b) => a + b, 0);
  const list = el("ol", { class: "bars" });
  for (const [reason, ns] of [...sums].sort((a, b) => b[1] - a[1])) {
    const fill = el("span", { class: "fill", "aria-hidden": "true" });
    fill.style.width = `${total > 0 ? (100 * ns) / total : 0}%`;
    append(
      list,
      el(
        "li",
        {},
        el("span", { title: REASONS[reason] ?? "" }, reason.replaceAll("_", " ")),
        el("span", { class: "track", "aria-hidden": "true" }, fill),
        el("span", { class: "number" }, units.duration(ns)),
        el("span", { class: "number faint" }, units.share(total > 0 ? ns / total : 0)),
      ),
    );
  }
  return el("section", {}, el("h3", {}, "Why nothing ran"), list);
}

export function breakdownTable(tables: TableData[], name: string): TableData | undefined {
  return tables.find((table) => table.name === name);
}

export class BreakdownView {
  readonly element = el("div", { class: "breakdown" });
  private readonly place = el("div");

  constructor(private readonly tables: TableData[]) {
    const devices = breakdownTable(tables, "devices");
    const windows = windowsOf(devices);
    const select = el("select", { id: "which-window", onchange: () => this.draw(select.value) });
    for (const window of windows) append(select, el("option", { value: window }, windowTitle(window)));
    append(this.element, el("div", { class: "chooser" }, el("label", { for: "which-window" }, "Of the time "), select), this.place);
    this.draw(windows[0] ?? "");
    append(this.element, el("h3", {}, "Tables"), new Tables(tables, null, "breakdown").element);
  }

  private draw(window: string): void {
    clear(this.place);
    const devices = barsOf(breakdownTable(this.tables, "devices"), window);
    const steps = barsOf(breakdownTable(this.tables, "by"), null);
    append(
      this.place,
      partsList(sumOf(devices)),
      el("h3", {}, "Devices"),
      barList(devices),
      steps.length > 0 ? el("h3", {}, "Steps") : null,
      steps.length > 0 ? barList(steps) : null,
      idleBars(breakdownTable(this.tables, "idle")),
    );
  }
}
