// Nested boxes on a canvas, with pointing, keyboard navigation and zoom, for the flame graph and the calls.
//
// The canvas is as high as its container, for any depth of the tree: it stays fixed while the container scrolls, and draws the
// visible rows.

import { textOn } from "../model/colors";
import { ALL, CRUMBS, type Flame, type FlameBox, layoutFlame, magnify, shiftSight } from "../model/flame";
import { append, el } from "../ui/dom";
import { fitToPaper } from "../ui/paper";
import { cssColor, onTheme } from "../ui/theme";
import { listen } from "./flame_input";
import { fitText } from "./row_painter";

const ROW = 20;
const LABEL_FROM = 24;
const HIGHEST = 0.62; // of the window
const HIGHEST_ON_PAPER = 4000; // pixels, some pages

export interface PictureOptions {
  label: string; // for screen readers
  keys: string; // id of the element that lists its keys
  color: (node: number) => string;
  onPoint: (node: number) => void; // -1: none
  onPick: (node: number) => void; // by a click or a key; may zoom to it
  onSearch: () => void;
}

/** The style's colors, read once per drawing: a query per box would take longer than drawing it. */
interface Ink {
  ink: string;
  line: string;
  band: string;
  accent: string;
}

export class FlamePicture {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  picked = 0;
  zoomed = 0;
  /** Boxes whose value is not 1 are faint; null: none. */
  matches: Uint8Array | null = null;
  /** Boxes with a frame, besides the selected one. */
  isFramed: ((node: number) => boolean) | null = null;
  /** The root is at the bottom, as in a flame graph; else on top, as in an icicle. */
  isUpward = false;
  private readonly space = el("div");
  private sight = ALL; // of the box that is zoomed to
  private boxes: FlameBox[] = [];
  private nRows = 1;
  private scrolled = 0; // scroll position of the last drawing
  private isAsked = false;
  private nFrames = 0;

  constructor(private flame: Flame, private readonly options: PictureOptions) {
    this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": options.label, "aria-describedby": options.keys });
    this.element = el("div", { class: "flame-scroll" }, this.space);
    append(this.space, this.canvas);
    listen(this);
    this.element.addEventListener("scroll", () => this.ask());
    new ResizeObserver(() => this.redraw()).observe(this.element);
    fitToPaper(this.element, () => this.redraw());
    onTheme(() => this.redraw());
  }

  /** Show another tree. */
  show(flame: Flame, picked: number): void {
    this.flame = flame;
    this.picked = picked;
    this.sightOn(0);
    this.redraw();
    this.scrollToWhole();
  }

  turn(isUpward: boolean): void {
    this.isUpward = isUpward;
    this.redraw();
    this.scrollToWhole();
  }

  private scrollToWhole(): void {
    this.element.scrollTop = this.isUpward ? this.element.scrollHeight : 0;
  }

  // ---- drawing ----

  /** Draw in the next frame. */
  private ask(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  redraw(): void {
    const width = this.element.clientWidth;
    if (width === 0) return;
    this.boxes = layoutFlame(this.flame, this.zoomed, width, undefined, this.sight);
    this.nRows = 1 + this.boxes.reduce((row, box) => Math.max(row, box.row), 0);
    const isPaper = this.element.style.width !== ""; // not scrolled
    const height = this.nRows * ROW + 2, highest = isPaper ? HIGHEST_ON_PAPER : Math.max(Math.round(window.innerHeight * HIGHEST), 8 * ROW);
    this.space.style.height = `${height}px`;
    this.element.style.height = `${Math.min(height, highest)}px`;
    this.draw();
  }

  private draw(): void {
    const { canvas, element } = this, ratio = Math.max(1, window.devicePixelRatio || 1);
    if (element.clientWidth === 0) return;
    const started = performance.now();
    this.scrolled = element.scrollTop;
    // The canvas covers whole pixels, also if the page is scaled.
    canvas.style.height = `${element.clientHeight}px`;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(element.clientHeight * ratio);
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    const ink: Ink = { ink: cssColor("--ink"), line: cssColor("--line"), band: cssColor("--band"), accent: cssColor("--accent") };
    context.font = `${12 * ratio}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    const height = element.clientHeight, inSight = this.boxes.filter((box) => this.y(box.row) > -ROW && this.y(box.row) < height);
    for (const box of inSight) this.drawBox(context, box, ratio, ink);
    for (const box of inSight) {
      if (box.node !== this.picked && box.node >= 0 && this.isFramed?.(box.node)) this.frame(context, box, ratio, ink.accent);
    }
    const picked = inSight.find((box) => box.node === this.picked);
    if (picked !== undefined) this.frame(context, picked, ratio, ink.ink);
    // For tests that measure the frame rate.
    canvas.dataset["sight"] = String(this.flame.total[this.zoomed] / this.sight.scale);
    canvas.dataset["frames"] = String(++this.nFrames);
    canvas.dataset["boxes"] = String(inSight.length);
    canvas.dataset["ms"] = (performance.now() - started).toFixed(2);
  }

  /** The position of a row on the canvas, in CSS pixels. */
  private y(row: number): number {
    return (this.isUpward ? this.nRows - 1 - row : row) * ROW - this.scrolled;
  }

  private frame(context: CanvasRenderingContext2D, box: FlameBox, ratio: number, css: string): void {
    context.strokeStyle = css;
    context.lineWidth = 2 * ratio;
    context.strokeRect(box.x * ratio + ratio, this.y(box.row) * ratio + ratio, Math.max(box.width - 2, 1) * ratio, (ROW - 3) * ratio);
  }

  private drawBox(context: CanvasRenderingContext2D, box: FlameBox, ratio: number, ink: Ink): void {
    const { node, x, width } = box, y = this.y(box.row);
    if (node === CRUMBS) {
      context.fillStyle = ink.line;
      context.fillRect(x * ratio, y * ratio, Math.max(width, 0.5) * ratio, (ROW - 1) * ratio);
      return;
    }
    const isPlain = node === 0 || (this.matches !== null && this.matches[node] === 0);
    const css = isPlain ? ink.band : this.options.color(node);
    context.globalAlpha = node < this.zoomed && this.flame.last[node] >= this.zoomed ? 0.6 : 1;
    context.fillStyle = css;
    context.fillRect(x * ratio, y * ratio, Math.max(width - (width > 2 ? 1 : 0), 0.5) * ratio, (ROW - 1) * ratio);
    context.globalAlpha = 1;
    if (width < LABEL_FROM) return;
    context.fillStyle = isPlain ? ink.ink : textOn(css);
    context.fillText(fitText(context, this.flame.name[node], (width - 6) * ratio), (x + 4) * ratio, (y + ROW / 2) * ratio);
  }

  // ---- input ----

  pointAt(x: number, y: number): void {
    const node = this.nodeAt(x, y);
    this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
    this.options.onPoint(node);
  }

  pointAway(): void {
    this.options.onPoint(-1);
  }

  clickAt(x: number, y: number): void {
    const node = this.nodeAt(x, y);
    if (node < 0) return;
    this.picked = node;
    this.zoom(node);
  }

  /** Zoom with `x` fixed. */
  magnify(factor: number, x: number): void {
    [this.zoomed, this.sight] = magnify(this.flame, this.zoomed, this.sight, factor, x / this.element.clientWidth);
    this.redraw();
  }

  /** Move to the right by this many pixels. False if everything is visible. */
  pan(by: number): boolean {
    if (this.sight.scale === 1) return false;
    this.sight = shiftSight(this.sight, by / this.element.clientWidth);
    this.redraw();
    return true;
  }

  /** Make a whole box visible, with the next drawing. */
  sightOn(node: number): void {
    this.zoomed = node;
    this.sight = ALL;
  }

  press(key: string): boolean {
    const { flame } = this, inner = this.isUpward ? "ArrowUp" : "ArrowDown", outer = this.isUpward ? "ArrowDown" : "ArrowUp";
    if (key === "Enter") this.zoom(this.picked);
    else if (key === "Escape") this.zoom(Math.max(0, flame.parent[this.zoomed]));
    else if (key === inner) this.pick(this.picked < flame.last[this.picked] ? this.picked + 1 : this.picked);
    else if (key === outer) this.pick(Math.max(0, flame.parent[this.picked]));
    else if (key === "ArrowRight") this.pick(this.sibling(1));
    else if (key === "ArrowLeft") this.pick(this.sibling(-1));
    else if (key === "+" || key === "=") this.magnify(1.5, this.element.clientWidth / 2);
    else if (key === "-") this.magnify(1 / 1.5, this.element.clientWidth / 2);
    else if (key === "/") this.options.onSearch();
    else return false;
    return true;
  }

  /** The next or previous box of the same row. */
  private sibling(step: number): number {
    const depth = this.flame.depth[this.picked];
    for (let node = this.picked + step; node > 0 && node < this.flame.n; node += step) {
      if (this.flame.depth[node] === depth) return node;
    }
    return this.picked;
  }

  pick(node: number): void {
    this.picked = node;
    if (node < this.zoomed || node > this.flame.last[this.zoomed]) this.sightOn(Math.max(0, this.flame.parent[node]));
    else if (!this.boxes.some((box) => box.node === node)) this.sight = ALL;
    this.redraw();
    this.reveal(node);
    this.options.onPick(node);
  }

  zoom(node: number): void {
    this.sightOn(node);
    if (this.picked < node || this.picked > this.flame.last[node]) this.picked = node;
    this.redraw();
    this.reveal(node);
    this.options.onPick(this.picked);
  }

  /** Scroll the row of a box into view. */
  reveal(node: number): void {
    const { element } = this;
    this.scrolled = element.scrollTop;
    const y = this.y(this.flame.depth[node]);
    if (y < 0) element.scrollTop += y;
    else if (y + ROW > element.clientHeight) element.scrollTop += y + ROW - element.clientHeight + 2;
  }

  private nodeAt(x: number, y: number): number {
    return this.boxes.find((box) => y >= this.y(box.row) && y < this.y(box.row) + ROW && x >= box.x && x <= box.x + Math.max(box.width, 1))?.node ?? -1;
  }
}
