// The canvas of the timeline: axis, labels of tracks, visible rows.

import type { Arrow } from "../model/arrows";
import { type Colors, toPixel } from "../model/colors";
import type { Layout, Line } from "../model/layout";
import { type Level, buildLevels } from "../model/levels";
import { type Loss, lossOf } from "../model/losses";
import { type Recording, nameOf } from "../model/recording";
import type { Row } from "../model/row";
import * as units from "../model/units";
import { type Viewport, ticks } from "../model/viewport";
import { cssColor } from "../ui/theme";
import { paintCounter } from "./counter_painter";
import { paintArrow, paintOverRow, paintPicked, paintProcessLoss, paintRange, paintRest } from "./overlay_painter";
import { AXIS, type Ink, Plot } from "./plot";
import { type RowScene, type SiteColors, Strip, fitText, forgetLetters, paintRow } from "./row_painter";

const TICKS = 90; // pixels between labels of the axis
const NARROW = 480;

export interface Picked {
  line: Line;
  i: number; // the event, or -1 - n for the n-th unfinished one
}

export interface Scene {
  view: Viewport; // width in CSS pixels
  layout: Layout;
  scroll: number;
  gutter: number; // for labels, left of the plot
  selected: Picked | null;
  range: [number, number] | null; // selected time
  matches: Uint8Array[] | null; // by process and site, while searching
  arrows: Arrow[]; // of the selected event
}

export class TimelinePainter {
  private readonly context: CanvasRenderingContext2D;
  private readonly strips = document.createElement("canvas");
  private readonly strip = new Strip();
  private readonly levels = new Map<Row, Level[]>();
  private readonly siteColors: SiteColors[] = [];
  private readonly losses: (Loss | null)[]; // by process
  private ratio = 0;
  private measured: Line[] | null = null; // whose longest label has been measured
  private longest = 0;
  private ink: Ink = { ink: "", faint: "", line: "", paper: "", band: "", accent: "", lost: "" };

  constructor(private readonly canvas: HTMLCanvasElement, private readonly recording: Recording, colors: Colors) {
    this.context = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    recording.index.processes.forEach((_, process) => this.siteColors.push(colors.ofSites(process)));
    this.losses = recording.index.processes.map(lossOf);
    this.readTheme();
  }

  readTheme(): void {
    for (const name of Object.keys(this.ink) as (keyof Ink)[]) this.ink[name] = cssColor(`--${name}`);
  }

  /** Created when the row is first drawn. */
  levelsOf(row: Row): Level[] {
    let levels = this.levels.get(row);
    if (levels === undefined) {
      levels = buildLevels(row);
      this.levels.set(row, levels);
    }
    return levels;
  }

  /** Width of the labels in a canvas of this many CSS pixels. */
  gutterFor(layout: Layout, width: number): number {
    if (width < NARROW) return 90;
    if (layout.lines !== this.measured) {
      this.measured = layout.lines;
      this.context.font = "12px system-ui, sans-serif";
      this.longest = layout.lines.reduce((most, { kind, label }) => (kind === "process" ? most : Math.max(most, this.context.measureText(label).width)), 0);
    }
    return Math.round(Math.max(160, Math.min(this.longest + 24, 300, width / 4)));
  }

  private fitCanvas(): void {
    const ratio = Math.max(1, window.devicePixelRatio || 1);
    const width = Math.round(this.canvas.clientWidth * ratio), height = Math.round(this.canvas.clientHeight * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    if (ratio !== this.ratio) forgetLetters();
    this.ratio = ratio;
  }

  paint(scene: Scene): void {
    this.fitCanvas();
    const { context, canvas, ratio, ink } = this;
    const left = Math.round(scene.gutter * ratio);
    const plot = new Plot(context, ratio, Math.max(canvas.width - left, 1), canvas.height, scene.view.from, scene.view.to, scene.scroll, ink);
    const shown = this.shownLines(scene);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = ink.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.textBaseline = "middle";
    plot.font(12);
    context.save();
    context.beginPath();
    context.rect(left, 0, canvas.width, canvas.height);
    context.clip();
    context.translate(left, 0);
    this.paintGrid(plot, scene);
    this.paintRows(plot, scene, shown);
    for (const line of shown) this.paintOver(plot, line);
    this.paintSelection(plot, scene, shown);
    this.paintAxis(plot, scene);
    context.restore();
    this.paintGutter(plot, scene, shown, left);
  }

  private shownLines(scene: Scene): Line[] {
    const { layout, scroll } = scene;
    const bottom = scroll + this.canvas.clientHeight;
    const shown: Line[] = [];
    for (let i = Math.max(0, layout.at(scroll)); i < layout.lines.length && layout.lines[i].y < bottom; i++) shown.push(layout.lines[i]);
    return shown;
  }

  private paintGrid(plot: Plot, scene: Scene): void {
    this.context.fillStyle = this.ink.line;
    for (const time of ticks(scene.view, TICKS)) this.context.fillRect(Math.round(plot.x(time)), 0, 1, plot.height);
  }

  private paintAxis(plot: Plot, scene: Scene): void {
    const { context, ratio, ink } = this;
    context.fillStyle = ink.paper;
    context.fillRect(0, 0, plot.width, AXIS * ratio);
    context.fillStyle = ink.line;
    context.fillRect(0, AXIS * ratio - 1, plot.width, 1);
    const times = ticks(scene.view, TICKS);
    const step = times.length > 1 ? times[1] - times[0] : scene.view.length;
    for (const time of times) {
      context.fillStyle = ink.line;
      context.fillRect(Math.round(plot.x(time)), (AXIS - 6) * ratio, 1, 6 * ratio);
      const label = axisLabel(time, step), x = plot.x(time) + 4 * ratio;
      if (x + context.measureText(label).width > plot.width) continue;
      context.fillStyle = ink.faint;
      context.fillText(label, x, (AXIS / 2) * ratio);
    }
    if (scene.range === null) return;
    const [x0, x1] = scene.range.map((time) => plot.x(time));
    context.fillStyle = ink.accent;
    context.fillRect(x0, (AXIS - 3) * ratio, Math.max(x1 - x0, 1), 3 * ratio);
  }

  /** Strips of pixels are first composed as lines of an image, then drawn in place. */
  private paintRows(plot: Plot, scene: Scene, shown: Line[]): void {
    const { context, strips } = this;
    const { width } = plot;
    if (strips.width !== width || strips.height < shown.length) {
      strips.width = width;
      strips.height = Math.max(shown.length, strips.height);
    }
    const image = new ImageData(width, Math.max(shown.length, 1));
    const pixels = new Uint32Array(image.data.buffer);
    const stripped = shown.map((line, at) => ({ line, at })).filter(({ line, at }) => this.paintLine(plot, scene, line, pixels, at));
    if (stripped.length === 0) return;
    (strips.getContext("2d") as CanvasRenderingContext2D).putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    for (const { line, at } of stripped) {
      const [y, height] = plot.place(line);
      context.drawImage(strips, 0, at, width, 1, 0, y, width, height);
    }
  }

  /** Draw a line; returns whether it wrote a strip at line `at` of the image. */
  private paintLine(plot: Plot, scene: Scene, line: Line, pixels: Uint32Array, at: number): boolean {
    const [y, height] = plot.place(line);
    const { strip } = this;
    if (line.kind === "process") {
      this.context.fillStyle = this.ink.band;
      this.context.fillRect(0, y, plot.width, height);
      return false;
    }
    if (line.row === null) return false;
    if (line.kind === "counter") {
      paintCounter(plot, line.row, this.siteColors[line.process].css[line.row.about] ?? this.ink.accent, y, height);
      return false;
    }
    strip.reset(plot.width);
    paintRow(line.row, this.levelsOf(line.row), y, height, this.rowScene(plot, scene, line), strip);
    if (strip.isUsed) strip.compose(pixels, at * plot.width, plot.width, toPixel(this.ink.paper));
    return strip.isUsed;
  }

  /** Iterations and epochs are labelled by numbers and have one color. */
  private rowScene(plot: Plot, scene: Scene, line: Line): RowScene {
    const { process } = line;
    const isCounted = line.track?.kind === "progress" && line.depth < 2;
    return {
      context: plot.context,
      from: plot.from,
      to: plot.to,
      width: plot.width,
      ratio: plot.ratio,
      nameOf: isCounted ? (number) => String(number) : (site) => nameOf(this.recording, process, site)[0],
      colors: isCounted ? NONE : this.siteColors[process],
      isDim: isCounted ? null : (scene.matches?.[process] ?? null),
      dimPixel: toPixel(this.ink.band),
      dimCss: this.ink.band,
      ink: this.ink.faint,
    };
  }

  private paintOver(plot: Plot, line: Line): void {
    const loss = this.losses[line.process];
    const [y, height] = plot.place(line);
    if (loss !== null && line.kind === "process") paintProcessLoss(plot, loss, y, height);
    else if (loss !== null) paintRest(plot, loss, line);
    paintOverRow(plot, this.recording, line, this.siteColors[line.process].css);
  }

  private paintSelection(plot: Plot, scene: Scene, shown: Line[]): void {
    const { selected, range } = scene;
    if (range !== null) paintRange(plot, range);
    if (selected !== null && shown.includes(selected.line)) paintPicked(plot, selected.line, pickedSpan(selected));
    for (const arrow of scene.arrows) paintArrow(plot, scene.layout, arrow);
  }

  private paintGutter(plot: Plot, scene: Scene, shown: Line[], left: number): void {
    const { context, canvas, ratio, ink } = this;
    context.save();
    context.beginPath();
    context.rect(0, AXIS * ratio, canvas.width, canvas.height);
    context.clip();
    for (const line of shown) {
      const [y, height] = plot.place(line);
      const isProcess = line.kind === "process";
      context.fillStyle = isProcess ? ink.band : ink.paper;
      context.fillRect(0, y, left, height + ratio);
      context.fillStyle = ink.line;
      if (!isProcess) context.fillRect(left - 1, y, 1, height + ratio);
      if (line.label === "") continue;
      const mark = isProcess ? (scene.layout.collapsed.has(line.process) ? "\u25b8 " : "\u25be ") : "";
      context.fillStyle = isProcess ? ink.ink : ink.faint;
      plot.font(12, isProcess ? "600" : "");
      const room = isProcess ? canvas.width : left - 12 * ratio;
      const middle = isProcess ? height / 2 : Math.min(height, 18 * ratio) / 2;
      context.fillText(fitText(context, mark + line.label, room), (isProcess ? 4 : 10) * ratio, y + middle);
    }
    context.restore();
  }
}

const NONE: SiteColors = { css: [], pixel: new Uint32Array(0) };

/** Start and end of the selected event. */
export function pickedSpan(picked: Picked): [number, number] {
  const { line, i } = picked;
  if (i < 0) {
    const open = line.track?.unfinished[-1 - i];
    return open ? [open.start, open.last] : [0, 0];
  }
  if (line.row === null) return [0, 0];
  return [line.row.start[i], line.row.bits === null ? line.row.end(i) : line.row.start[i]];
}

/** A time on the axis, with the digits that the step requires. */
function axisLabel(time: number, step: number): string {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["\u00b5s", 1e3]] as [string, number][]) {
    if (Math.abs(time) >= size) {
      const digits = Math.max(0, Math.ceil(Math.log10(size / step)));
      return `${(time / size).toFixed(Math.min(digits, 9))} ${unit}`;
    }
  }
  return units.duration(time);
}
