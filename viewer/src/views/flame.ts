// The flame graph: boxes as wide as the time in them, inner ones below outer ones.

import type { Colors } from "../model/colors";
import { GREY, textOn } from "../model/colors";
import { CRUMBS, type Flame, type FlameBox, buildFlame, layoutFlame, searchFlame } from "../model/flame";
import { type Recording, tableOf } from "../model/recording";
import { keptRows } from "../model/tables";
import * as units from "../model/units";
import { announce, append, el } from "../ui/dom";
import { type Hint, keyHints } from "../ui/keys";
import { fitToPaper } from "../ui/paper";
import { cssColor, onTheme } from "../ui/theme";
import { fitText } from "./row_painter";

const ROW = 20;
const LABEL_FROM = 24;
const HINTS: Hint[] = [
  [["\u2190", "\u2192", "\u2191", "\u2193"], "go from box to box"],
  [["Enter"], "zoom to it"],
  [["Esc"], "back out"],
  [["/"], "search"],
];

export class FlameView {
  readonly element = el("div", { class: "flame" });
  private readonly flame: Flame;
  private readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Flame graph", "aria-describedby": "flame-keys" });
  private readonly facts = el("p", { class: "facts" });
  private readonly search = el("input", { type: "search", placeholder: "Search names", "aria-label": "Search the flame graph" });
  private readonly found = el("span", { class: "found", role: "status" });
  private readonly finder = el("button", { type: "button", onclick: () => this.onName(this.flame.name[this.picked]) }, "Find on the timeline");
  private zoomed = 0;
  private picked = 0;
  private matches: Uint8Array | null = null;
  private boxes: FlameBox[] = [];

  /** `onName` is told which name to find on the timeline, `onTable` that the same is wanted as a table. */
  constructor(
    recording: Recording,
    private readonly colors: Colors,
    private readonly onName: (name: string) => void,
    private readonly onTable: () => void,
  ) {
    const tree = tableOf(recording, "tree") ?? { name: "tree", rows: 0, columns: [], cells: [] };
    this.flame = buildFlame(tree);
    this.build(tree.rows - keptRows(tree));
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    fitToPaper(this.canvas, () => this.redraw());
    onTheme(() => this.redraw());
    this.describe(0);
  }

  private build(nLeftOut: number): void {
    this.search.addEventListener("input", () => this.find(this.search.value));
    append(
      this.element,
      el(
        "div",
        { class: "timeline-tools", role: "toolbar", "aria-label": "Flame graph" },
        this.search,
        this.found,
        el("span", { class: "spring" }),
        this.finder,
        el("button", { type: "button", title: "The same as a table", onclick: () => this.onTable() }, "Table"),
        el("button", { type: "button", onclick: () => this.zoom(0) }, "Show all"),
      ),
      this.facts,
      this.canvas,
      el("p", { class: "hint" }, "Width is total time; where nothing stands below a box, it was busy itself. What is too narrow to be drawn is pale grey. Click a box to zoom to it."),
      keyHints("flame-keys", HINTS),
      nLeftOut > 0 ? el("p", { class: "hint" }, `${units.countOf(nLeftOut, "path")} of little time ${nLeftOut === 1 ? "is" : "are"} not in this page; grey boxes, "(3 others)" for instance, are as wide as they were.`) : null,
    );
  }

  // ---- drawing ----

  redraw(): void {
    const { canvas } = this;
    if (canvas.clientWidth === 0) return;
    const ratio = Math.max(1, window.devicePixelRatio || 1);
    this.boxes = layoutFlame(this.flame, this.zoomed, canvas.clientWidth);
    canvas.style.height = `${(1 + this.boxes.reduce((row, box) => Math.max(row, box.row), 0)) * ROW + 2}px`;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    context.font = `${12 * ratio}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    for (const box of this.boxes) this.drawBox(context, box, ratio);
    const picked = this.boxes.find((box) => box.node === this.picked);
    if (picked === undefined) return;
    context.strokeStyle = cssColor("--ink");
    context.lineWidth = 2 * ratio;
    context.strokeRect(picked.x * ratio + ratio, picked.row * ROW * ratio + ratio, Math.max(picked.width - 2, 1) * ratio, (ROW - 3) * ratio);
  }

  private drawBox(context: CanvasRenderingContext2D, box: FlameBox, ratio: number): void {
    const { node, x, width, row } = box;
    if (node === CRUMBS) {
      context.fillStyle = cssColor("--line");
      context.fillRect(x * ratio, row * ROW * ratio, Math.max(width, 0.5) * ratio, (ROW - 1) * ratio);
      return;
    }
    const isFaint = this.matches !== null && this.matches[node] === 0;
    const css = node === 0 || isFaint ? cssColor("--band") : this.flame.areOthers[node] ? GREY : this.colors.ofName(this.flame.name[node]);
    context.globalAlpha = node < this.zoomed && this.flame.last[node] >= this.zoomed ? 0.6 : 1;
    context.fillStyle = css;
    context.fillRect(x * ratio, row * ROW * ratio, Math.max(width - (width > 2 ? 1 : 0), 0.5) * ratio, (ROW - 1) * ratio);
    context.globalAlpha = 1;
    if (width < LABEL_FROM) return;
    context.fillStyle = node === 0 || isFaint ? cssColor("--ink") : textOn(css);
    context.fillText(fitText(context, this.flame.name[node], (width - 6) * ratio), (x + 4) * ratio, (row * ROW + ROW / 2) * ratio);
  }

  // ---- what a reader does ----

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => {
      const node = this.nodeAt(event.offsetX, event.offsetY);
      canvas.style.cursor = node >= 0 ? "pointer" : "default";
      this.describe(node >= 0 ? node : this.picked);
    });
    canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event.offsetX, event.offsetY);
      if (node < 0) return;
      this.picked = node;
      this.zoom(node);
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.press(event.key)) return;
      event.preventDefault();
    });
  }

  private press(key: string): boolean {
    const { flame } = this;
    if (key === "Enter") this.zoom(this.picked);
    else if (key === "Escape") this.zoom(Math.max(0, flame.parent[this.zoomed]));
    else if (key === "ArrowDown") this.pick(this.picked < flame.last[this.picked] ? this.picked + 1 : this.picked);
    else if (key === "ArrowUp") this.pick(Math.max(0, flame.parent[this.picked]));
    else if (key === "ArrowRight") this.pick(this.sibling(1));
    else if (key === "ArrowLeft") this.pick(this.sibling(-1));
    else if (key === "/") this.search.focus();
    else return false;
    return true;
  }

  /** The next box of the same row, or the one before. */
  private sibling(step: number): number {
    const depth = this.flame.depth[this.picked];
    for (let node = this.picked + step; node > 0 && node < this.flame.n; node += step) {
      if (this.flame.depth[node] === depth) return node;
    }
    return this.picked;
  }

  private pick(node: number): void {
    this.picked = node;
    this.describe(node);
    announce(this.facts.textContent ?? "");
    if (node < this.zoomed || node > this.flame.last[this.zoomed]) this.zoomed = Math.max(0, this.flame.parent[node]);
    this.redraw();
  }

  private zoom(node: number): void {
    this.zoomed = node;
    if (this.picked < node || this.picked > this.flame.last[node]) this.picked = node;
    this.describe(this.picked);
    announce(this.facts.textContent ?? "");
    this.redraw();
  }

  private nodeAt(x: number, y: number): number {
    const row = Math.floor(y / ROW);
    return this.boxes.find((box) => box.row === row && x >= box.x && x <= box.x + Math.max(box.width, 1))?.node ?? -1;
  }

  private describe(node: number): void {
    const { flame } = this;
    this.finder.disabled = this.picked === 0 || flame.areOthers[this.picked] === 1;
    const part = flame.total[0] > 0 ? units.share(flame.total[node] / flame.total[0]) : "";
    this.facts.textContent =
      node === 0
        ? `all: ${units.duration(flame.total[0])} in ranges`
        : `${flame.name[node]}: ${units.duration(flame.total[node])}, ${part}; itself ${units.duration(flame.self[node])}; ${units.countOf(flame.count[node], "call")}`;
  }

  private find(word: string): void {
    if (word.trim() === "") {
      this.matches = null;
      this.found.textContent = "";
    } else {
      const result = searchFlame(this.flame, word);
      this.matches = result.matches;
      const part = this.flame.total[0] > 0 ? result.total / this.flame.total[0] : 0;
      this.found.textContent = `${units.countOf(result.count, "box")} found, ${units.duration(result.total)}, ${units.share(part)}`;
    }
    this.redraw();
  }
}
