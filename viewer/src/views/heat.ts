// Ranks: a heat map of the time of each iteration on each rank.

import { type HeatCell, HeatMap, type Measure, type Order } from "../model/heat";
import { HeatScale } from "../model/heat_colors";
import { Span } from "../model/heat_window";
import * as units from "../model/units";
import { announce, append, el } from "../ui/dom";
import { type Hint, keyHints } from "../ui/keys";
import { fitToPaper } from "../ui/paper";
import { isDark, onTheme } from "../ui/theme";
import { listen } from "./heat_input";
import { HEAT_AXIS, HEAT_GUTTER, paintHeat } from "./heat_painter";

const HINTS: Hint[] = [
  [["W", "S"], "zoom"],
  [["A", "D"], "move"],
  [["0"], "show all"],
  [["Space"], "pick the slowest in sight"],
  [["\u2190", "\u2192", "\u2191", "\u2193"], "go from cell to cell"],
  [["Enter"], "see it on the timeline"],
  [["T"], "a table of ranks"],
  [["Esc"], "let go"],
];

const ROW = 14; // preferred height of a row in pixels
const POINT = "Point at a cell to read it; click to show it on the timeline, if the timeline has its rank.";

export interface HeatActs {
  isOnTimeline: (process: number) => boolean;
  onOpen: (process: number, iteration: number) => void; // on the timeline
  onTable: () => void;
}

export class HeatView {
  readonly element = el("div", { class: "heat" });
  readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Ranks and iterations", "aria-describedby": "heat-keys" });
  private readonly rows: Span;
  private readonly columns: Span;
  private readonly facts = el("p", { class: "facts" }, POINT);
  private readonly legend = el("div", { class: "heat-legend" });
  private readonly opener = el("button", { type: "button", onclick: () => this.openPicked() }, "Show on the timeline");
  private readonly colour = el("select", { id: "heat-colour", onchange: () => this.rescale() },
    el("option", { value: "relative" }, "against the median of the iteration"), el("option", { value: "absolute" }, "time"));
  private readonly sort = el("select", { id: "heat-order", onchange: () => this.reorder() },
    el("option", { value: "rank" }, "rank"), el("option", { value: "mean" }, "mean, slowest first"), el("option", { value: "host" }, "host"));
  private order: Int32Array;
  private scale: HeatScale;
  private picked: [number, number] | null = null;
  private frame = 0;

  constructor(private readonly map: HeatMap, private readonly acts: HeatActs) {
    this.rows = new Span(map.data.rows);
    this.columns = new Span(map.data.columns);
    this.order = map.order("rank");
    this.scale = new HeatScale("relative", map.ceiling("relative"), isDark());
    this.build();
    listen(this);
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    fitToPaper(this.canvas, () => this.paintNow());
    onTheme(() => this.rescale());
    this.pick(null);
    this.rescale();
  }

  private build(): void {
    const { data } = this.map;
    const button = (text: string, label: string, act: () => void): HTMLElement =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.canvas.style.height = `${Math.max(160, Math.min(data.rows * ROW, 620)) + HEAT_AXIS}px`;
    append(
      this.element,
      el("p", { class: "faint" }, `${this.map.who()} from top to bottom, ${units.count(data.columns * data.iterations)} iterations from left to right. Blank: warm-up, or not recorded. ${this.map.thinning()}`),
      el("div", { class: "timeline-tools", role: "toolbar", "aria-label": "Ranks" },
        el("label", { for: "heat-colour" }, "Colour "), this.colour,
        el("label", { for: "heat-order" }, "Order "), this.sort,
        el("span", { class: "spring" }),
        button("Table", "A table of ranks", () => this.onTable()),
        button("+", "Zoom in", () => this.zoomMiddle(2)),
        button("\u2212", "Zoom out", () => this.zoomMiddle(0.5)),
        button("Fit", "Show all", () => this.fit())),
      this.canvas, this.legend,
      el("div", { class: "heat-facts" }, this.facts, this.opener),
      keyHints("heat-keys", HINTS),
    );
  }

  // ---- drawing ----

  redraw(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paintNow();
    });
  }

  paintNow(): void {
    if (this.canvas.clientWidth === 0) return;
    this.columns.pixels = Math.max(1, this.canvas.clientWidth - HEAT_GUTTER);
    this.rows.pixels = Math.max(1, this.canvas.clientHeight - HEAT_AXIS);
    paintHeat(this.canvas, { map: this.map, scale: this.scale, order: this.order, rows: this.rows, columns: this.columns, picked: this.picked, label: (row) => this.label(row) });
  }

  private label(row: number): string {
    return this.sort.value === "host" ? `${this.map.hostOf(row)} ${this.map.shortLabelOf(row)}` : this.map.shortLabelOf(row);
  }

  private get measure(): Measure {
    return this.colour.value === "absolute" ? "absolute" : "relative";
  }

  private rescale(): void {
    this.scale = new HeatScale(this.measure, this.map.ceiling(this.measure), isDark());
    this.drawLegend();
    this.redraw();
  }

  /** The colour scale, with its values at both ends and in the middle. */
  private drawLegend(): void {
    const bar = el("canvas", { class: "heat-bar", "aria-hidden": "true", width: this.scale.pixels.length, height: 1 });
    const context = bar.getContext("2d"), { ceiling, floor } = this.scale;
    if (context !== null) {
      const image = context.createImageData(this.scale.pixels.length, 1);
      new Uint32Array(image.data.buffer).set(this.scale.pixels);
      context.putImageData(image, 0, 0);
    }
    const isRelative = this.measure === "relative";
    const text = (value: number): string => (isRelative ? units.share(Math.abs(value * this.map.typical - 1)) : units.duration(this.map.nsOf(value)));
    this.legend.replaceChildren(
      el("span", {}, isRelative ? `${text(floor)} faster, or more` : `${text(floor)} or less`), bar,
      el("span", {}, isRelative ? `${text(ceiling)} slower, or more` : `${text(ceiling)} or more`));
  }

  private reorder(): void {
    const picked = this.picked === null ? null : ([this.order[this.picked[0]], this.picked[1]] as const);
    this.order = this.map.order(this.sort.value as Order);
    this.rows.fit();
    this.pick(picked === null ? null : [this.order.indexOf(picked[0]), picked[1]]);
    announce(`Ranks by ${this.sort.selectedOptions[0].textContent ?? ""}; the first is ${this.map.labelOf(this.order[0])}`);
  }

  // ---- moving ----

  zoom(factor: number, x: number, y: number): void {
    this.columns.zoom(factor, x - HEAT_GUTTER);
    this.rows.zoom(factor, y);
    this.redraw();
  }

  zoomMiddle(factor: number): void {
    const at = this.picked;
    if (at === null) this.zoom(factor, HEAT_GUTTER + this.columns.pixels / 2, this.rows.pixels / 2);
    else this.zoom(factor, HEAT_GUTTER + this.columns.place(at[1] + 0.5), this.rows.place(at[0] + 0.5));
  }

  pan(x: number, y: number): void {
    this.columns.pan(x);
    this.rows.pan(y);
    this.redraw();
  }

  fit(): void {
    this.columns.fit();
    this.rows.fit();
    this.redraw();
  }

  // ---- picking ----

  /** The largest cell in the pixel, which is the one drawn. */
  private placeAt(x: number, y: number): [number, number] | null {
    const row = this.rows.at(y), column = this.columns.at(x - HEAT_GUTTER);
    if (row < 0 || column < 0) return null;
    const rows: [number, number] = [row, Math.min(this.rows.n, Math.max(row + 1, Math.ceil(row + this.rows.perPixel)))];
    const columns: [number, number] = [column, Math.min(this.columns.n, Math.max(column + 1, Math.ceil(column + this.columns.perPixel)))];
    const at = this.map.largest(this.order, rows, columns, this.measure);
    return at < 0 ? [row, column] : [this.order.indexOf(Math.floor(at / this.columns.n)), at % this.columns.n];
  }

  private cellAt(place: [number, number] | null): HeatCell | null {
    return place === null ? null : this.map.cell(this.order[place[0]], place[1]);
  }

  private describe(place: [number, number] | null): string {
    const cell = this.cellAt(place);
    if (cell !== null) return this.map.describe(cell);
    if (place === null) return POINT;
    return `rank ${this.map.labelOf(this.order[place[0]])}, iteration ${units.count(this.map.iterationOf(place[1]))}: warm-up, or not recorded`;
  }

  pointAt(x: number, y: number): void {
    const place = this.placeAt(x, y);
    this.facts.textContent = this.describe(place ?? this.picked);
    this.canvas.style.cursor = place !== null && this.isOnTimeline(place) ? "pointer" : "";
  }

  pointAway(): void {
    this.facts.textContent = this.describe(this.picked);
  }

  pick(place: [number, number] | null): void {
    this.picked = place;
    this.facts.textContent = this.describe(place);
    this.opener.disabled = !this.isOnTimeline(place);
    this.opener.title = place === null || !this.opener.disabled ? "" : "The timeline of this page does not include this rank";
    if (place !== null) {
      this.rows.reveal(place[0]);
      this.columns.reveal(place[1]);
      announce(this.facts.textContent ?? "");
    }
    this.redraw();
  }

  private isOnTimeline(place: [number, number] | null): boolean {
    const cell = this.cellAt(place);
    return cell !== null && this.acts.isOnTimeline(cell.process);
  }

  /** With a mouse, pointing describes a cell and a click opens it; with a finger, the first tap describes, the second opens. */
  clickAt(x: number, y: number, isMouse: boolean): void {
    const place = this.placeAt(x, y), before = this.picked;
    const isAgain = place !== null && before !== null && place[0] === before[0] && place[1] === before[1];
    this.pick(place);
    if (isMouse || isAgain) this.openPicked();
  }

  openPicked(): void {
    const cell = this.cellAt(this.picked);
    if (cell !== null && this.acts.isOnTimeline(cell.process)) this.acts.onOpen(cell.process, cell.iteration);
  }

  step(down: number, across: number): void {
    const [row, column] = this.picked ?? [Math.floor(this.rows.from), Math.floor(this.columns.from)];
    const clamp = (value: number, n: number): number => Math.max(0, Math.min(n - 1, value));
    this.pick(this.picked === null ? [row, column] : [clamp(row + down, this.rows.n), clamp(column + across, this.columns.n)]);
  }

  pickSlowest(): void {
    const inSight = (span: Span): [number, number] => [Math.floor(span.from), Math.ceil(span.to)];
    const at = this.map.largest(this.order, inSight(this.rows), inSight(this.columns), this.measure);
    if (at >= 0) this.pick([this.order.indexOf(Math.floor(at / this.columns.n)), at % this.columns.n]);
  }

  onTable(): void {
    this.acts.onTable();
  }
}
