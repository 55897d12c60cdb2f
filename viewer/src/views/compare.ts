// The page of a comparison: the result, each range's change with its confidence interval, and the distributions of times.

import type { ComparisonIndex, TableData } from "../decode/format";
import { type Curve, type Range, curvesOf, percent, reach, rangesOf } from "../model/comparison";
import { columnOf } from "../model/tables";
import * as units from "../model/units";
import { Chart, type Line, timeText } from "../ui/chart";
import { append, clear, el } from "../ui/dom";

const COLOR = { A: "#4477aa", B: "#ee6677" }; // Paul Tol's "bright": distinguishable with any colour vision
const FIRST = 40; // ranges shown at first

function tableOf(index: ComparisonIndex, name: string): TableData | undefined {
  return index.tables.find((table) => table.name === name);
}

/** The interval on an axis that extends `far` percent to either side of no change. */
function interval(range: Range, far: number): HTMLElement {
  const track = el("span", { class: "interval", "aria-hidden": "true" }, el("span", { class: "zero" }));
  if (range.low === null || range.high === null) return track;
  const place = (value: number): number => 50 + 50 * Math.max(-1, Math.min(1, value / far));
  const span = el("span", { class: `span ${range.verdict}` });
  span.style.left = `${place(range.low)}%`;
  span.style.width = `${Math.max(place(range.high) - place(range.low), 0.5)}%`;
  append(track, span);
  if (range.change !== null) {
    const dot = el("span", { class: `dot ${range.verdict}` });
    dot.style.left = `${place(range.change)}%`;
    append(track, dot);
  }
  return track;
}

function time(ns: number | null): string {
  return ns === null ? "" : units.duration(ns);
}

export class CompareView {
  readonly element = el("div", { class: "compare" });
  private readonly ranges: Range[];
  private readonly body = el("tbody");
  private readonly chart = new Chart();
  private readonly about = el("h3");
  private readonly rows = new Map<string, HTMLElement>();
  private shown = FIRST;

  constructor(private readonly index: ComparisonIndex) {
    const rowsOf = (...names: string[]): Range[] => names.flatMap((name) => rangesOf(tableOf(index, name)));
    // Shares of the program are not shares of the iteration.
    this.ranges = [...rowsOf("iteration", "ranges"), ...rowsOf("program", "functions").map((row) => ({ ...row, effect: null }))];
    append(this.element, el("p", { class: "verdict" }, index.summary), this.findings(), this.notes(), this.list(), this.about, this.chart.element, el("p", { class: "hint" }, "The longest 32nd of each run's times is omitted: one of them could be longer than all the rest."));
    this.drawRows();
    if (this.ranges.length > 0) this.show(this.ranges[0]);
  }

  /** What became of findings of the diagnosis. */
  private findings(): HTMLElement | null {
    const table = tableOf(this.index, "findings");
    if (table === undefined || table.rows === 0) return null;
    const [ids, changes, places, predicted, measured] = ["id", "change", "where", "predicted", "measured"].map((name) => columnOf(table, name));
    const factor = (value: unknown): string => `${Number(value).toFixed(2)}x`;
    const items = ids.map((id, i) => {
      const gain = measured[i] === null ? "" : `; predicted at most ${factor(predicted[i])} faster, measured ${factor(measured[i])}`;
      return el("li", {}, `${String(id)}: ${String(changes[i])}${places[i] === null ? "" : `, ${String(places[i])}`}${gain}`);
    });
    return el("section", { class: "card findings" }, el("h2", {}, "Findings of the diagnosis"), el("ul", {}, ...items));
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
    const titles = ["range", "A", "B", "change", "interval of 95 %", "", "verdict", "of the iteration"];
    const head = el("tr", {}, ...titles.map((title, i) => el("th", { scope: "col", class: i !== 0 && i !== 6 ? "number" : "" }, title)));
    return el(
      "div",
      { class: "table-view" },
      el(
        "div",
        { class: "table-scroll", tabindex: 0, role: "range", "aria-label": "Changes" },
        el("table", {}, el("caption", { class: "offscreen" }, "Change of each range, B against A"), el("thead", { class: "plain" }, head), this.body),
      ),
    );
  }

  private drawRows(): void {
    clear(this.body);
    const far = reach(this.ranges);
    for (const range of this.ranges.slice(0, this.shown)) {
      const row = this.row(range, far);
      this.rows.set(range.name, row);
      append(this.body, row);
    }
    const left = this.ranges.length - this.shown;
    if (left <= 0) return;
    const more = (): void => {
      this.shown += 200;
      this.drawRows();
    };
    append(this.body, el("tr", {}, el("td", { colspan: 8 }, el("button", { type: "button", onclick: more }, `Show more (${units.count(left)} left)`))));
  }

  private row(range: Range, far: number): HTMLElement {
    const bounds = range.low === null ? "" : `${percent(range.low)} to ${percent(range.high)}`;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, el("button", { type: "button", class: "link", onclick: () => this.show(range) }, range.name)),
      el("td", { class: "number" }, time(range.a)),
      el("td", { class: "number" }, time(range.b)),
      el("td", { class: "number" }, percent(range.change)),
      el("td", { class: "number" }, bounds),
      el("td", {}, interval(range, far)),
      el("td", { title: range.reason }, el("span", { class: `badge ${range.verdict}` }, range.verdict)),
      el("td", { class: "number" }, range.effect === null ? "" : percent(range.effect)),
    );
  }

  /** The cumulative distribution of times, one line per run. */
  private show(range: Range): void {
    const curves = curvesOf(tableOf(this.index, "quantiles"), range.name);
    this.rows.forEach((row, name) => row.toggleAttribute("aria-current", name === range.name));
    this.about.textContent = `Times of ${range.name}: the share that is shorter`;
    const x = [...new Set(curves.flatMap((curve) => curve.times.slice(0, -1)))].sort((a, b) => a - b);
    const lines = curves.map((curve): Line => ({
      label: `${curve.side}${curves.filter((c) => c.side === curve.side).length > 1 ? `, run ${curve.run + 1}` : ""}`,
      color: COLOR[curve.side],
      values: x.map((time) => shareBelow(curve, time)),
      width: 1.5,
    }));
    const text = `A: median ${time(range.a)}. B: median ${time(range.b)}. ${range.verdict}${range.reason === "" ? "" : `: ${range.reason}`}`;
    this.chart.show(
      { x, lines, xLabel: "time", yLabel: "share", xText: timeText, yText: (v) => `${Math.round(v * 100)} %`, height: 300 },
      `Distribution of ${range.name}. ${text}`,
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
