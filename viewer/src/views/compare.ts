// The page of a comparison: the result, each range's change with its confidence interval, and the distributions of times.

import type { ComparisonIndex, TableData } from "../decode/format";
import { type Curve, type Region, curvesOf, percent, reach, regionsOf } from "../model/comparison";
import { columnOf } from "../model/tables";
import * as units from "../model/units";
import { Chart, type Line, timeText } from "../ui/chart";
import { append, clear, el } from "../ui/dom";

const COLOR = { A: "#4477aa", B: "#ee6677" }; // Paul Tol's "bright": distinguishable with any colour vision
const FIRST = 40; // regions shown at first

function tableOf(index: ComparisonIndex, name: string): TableData | undefined {
  return index.tables.find((table) => table.name === name);
}

/** The interval on an axis that extends `far` percent to either side of no change. */
function interval(region: Region, far: number): HTMLElement {
  const track = el("span", { class: "interval", "aria-hidden": "true" }, el("span", { class: "zero" }));
  if (region.low === null || region.high === null) return track;
  const place = (value: number): number => 50 + 50 * Math.max(-1, Math.min(1, value / far));
  const span = el("span", { class: `span ${region.verdict}` });
  span.style.left = `${place(region.low)}%`;
  span.style.width = `${Math.max(place(region.high) - place(region.low), 0.5)}%`;
  append(track, span);
  if (region.change !== null) {
    const dot = el("span", { class: `dot ${region.verdict}` });
    dot.style.left = `${place(region.change)}%`;
    append(track, dot);
  }
  return track;
}

function time(ns: number | null): string {
  return ns === null ? "" : units.duration(ns);
}

export class CompareView {
  readonly element = el("div", { class: "compare" });
  private readonly regions: Region[];
  private readonly body = el("tbody");
  private readonly chart = new Chart();
  private readonly about = el("h3");
  private readonly rows = new Map<string, HTMLElement>();
  private shown = FIRST;

  constructor(private readonly index: ComparisonIndex) {
    const rowsOf = (...names: string[]): Region[] => names.flatMap((name) => regionsOf(tableOf(index, name)));
    // Shares of the program are not shares of the iteration.
    this.regions = [...rowsOf("iteration", "regions"), ...rowsOf("program", "functions").map((row) => ({ ...row, effect: null }))];
    append(this.element, el("p", { class: "verdict" }, index.summary), this.notes(), this.list(), this.about, this.chart.element, el("p", { class: "hint" }, "The longest 32nd of each run's times is omitted: one of them could be longer than all the rest."));
    this.drawRows();
    if (this.regions.length > 0) this.show(this.regions[0]);
  }

  private notes(): HTMLElement | null {
    const warnings = tableOf(this.index, "warnings");
    const list = el("ul");
    if (this.index.damaged) append(list, el("li", {}, "A recording is damaged; this is its readable part."));
    for (const text of warnings ? warnings.cells[0] : []) append(list, el("li", {}, String(text)));
    const only = tableOf(this.index, "only");
    if (only !== undefined && only.rows > 0) {
      const names = columnOf(only, "name").slice(0, 5).map(String).join(", ");
      append(list, el("li", {}, `Only on one side: ${names}${only.rows > 5 ? ` and ${only.rows - 5} more` : ""}.`));
    }
    return list.childElementCount === 0 ? null : el("section", { class: "card notes" }, el("h2", {}, "Please note"), list);
  }

  private list(): HTMLElement {
    const titles = ["region", "A", "B", "change", "interval of 95 %", "", "verdict", "of the iteration"];
    const head = el("tr", {}, ...titles.map((title, i) => el("th", { scope: "col", class: i !== 0 && i !== 6 ? "number" : "" }, title)));
    return el(
      "div",
      { class: "table-view" },
      el(
        "div",
        { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Changes" },
        el("table", {}, el("caption", { class: "offscreen" }, "Change of each region, B against A"), el("thead", { class: "plain" }, head), this.body),
      ),
    );
  }

  private drawRows(): void {
    clear(this.body);
    const far = reach(this.regions);
    for (const region of this.regions.slice(0, this.shown)) {
      const row = this.row(region, far);
      this.rows.set(region.name, row);
      append(this.body, row);
    }
    const left = this.regions.length - this.shown;
    if (left <= 0) return;
    const more = (): void => {
      this.shown += 200;
      this.drawRows();
    };
    append(this.body, el("tr", {}, el("td", { colspan: 8 }, el("button", { type: "button", onclick: more }, `Show more (${units.count(left)} left)`))));
  }

  private row(region: Region, far: number): HTMLElement {
    const bounds = region.low === null ? "" : `${percent(region.low)} to ${percent(region.high)}`;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, el("button", { type: "button", class: "link", onclick: () => this.show(region) }, region.name)),
      el("td", { class: "number" }, time(region.a)),
      el("td", { class: "number" }, time(region.b)),
      el("td", { class: "number" }, percent(region.change)),
      el("td", { class: "number" }, bounds),
      el("td", {}, interval(region, far)),
      el("td", { title: region.reason }, el("span", { class: `badge ${region.verdict}` }, region.verdict)),
      el("td", { class: "number" }, region.effect === null ? "" : percent(region.effect)),
    );
  }

  /** The cumulative distribution of times, one line per run. */
  private show(region: Region): void {
    const curves = curvesOf(tableOf(this.index, "quantiles"), region.name);
    this.rows.forEach((row, name) => row.toggleAttribute("aria-current", name === region.name));
    this.about.textContent = `Times of ${region.name}: the share that is shorter`;
    const x = [...new Set(curves.flatMap((curve) => curve.times.slice(0, -1)))].sort((a, b) => a - b);
    const lines = curves.map((curve): Line => ({
      label: `${curve.side}${curves.filter((c) => c.side === curve.side).length > 1 ? `, run ${curve.run + 1}` : ""}`,
      color: COLOR[curve.side],
      values: x.map((time) => shareBelow(curve, time)),
      width: 1.5,
    }));
    const text = `A: median ${time(region.a)}. B: median ${time(region.b)}. ${region.verdict}${region.reason === "" ? "" : `: ${region.reason}`}`;
    this.chart.show(
      { x, lines, xLabel: "time", yLabel: "share", xText: timeText, yText: (v) => `${Math.round(v * 100)} %`, height: 300 },
      `Distribution of ${region.name}. ${text}`,
    );
  }
}

/** Linear between quantiles. The longest times are omitted, because one could be as long as all the others together. */
function shareBelow(curve: Curve, time: number): number | null {
  const { times } = curve, last = times.length - 1;
  if (time < times[0] || time > times[last - 1]) return null;
  let i = 0;
  while (i < last && times[i + 1] < time) i++;
  const step = times[i + 1] - times[i];
  return (i + (step > 0 ? (time - times[i]) / step : 1)) / last;
}
