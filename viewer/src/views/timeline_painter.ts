// The canvas of the timeline: axis, labels of tracks, rows, counters, what is lost, left open and selected.

import { type Colors, toPixel } from "../model/colors";
import type { Arrow, Spot } from "../model/arrows";
import type { Layout, Line } from "../model/layout";
import { type Level, buildLevels } from "../model/levels";
import { type Recording, nameOf } from "../model/recording";
import type { Row } from "../model/row";
import * as units from "../model/units";
import { type Viewport, ticks } from "../model/viewport";
import { cssColor } from "../ui/theme";
import { type RowScene, type SiteColors, Strip, fitText, forgetLetters, paintRow } from "./row_painter";

export const AXIS = 24; // height of the time axis
const GAP = 1; // between rows

export interface Picked {
  line: Line;
  i: number; // the event, or -1 - n for the n-th unfinished one
}

export interface Scene {
  view: Viewport; // width in pixels of the page
  layout: Layout;
  scroll: number;
  gutter: number;
  selected: Picked | null;
  range: [number, number] | null; // selected time
  matches: Uint8Array[] | null; // by process and site, while searching
  arrows: Arrow[]; // of what is selected
}

export class TimelinePainter {
  private readonly context: CanvasRenderingContext2D;
  private readonly strips = document.createElement("canvas");
  private readonly strip = new Strip();
  private readonly levels = new Map<Row, Level[]>();
  private readonly siteColors: SiteColors[] = [];
  private ratio = 0;
  private colors = { ink: "", faint: "", line: "", paper: "", band: "", accent: "", lost: "" };

  constructor(private readonly canvas: HTMLCanvasElement, private readonly recording: Recording, colors: Colors) {
    this.context = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    recording.index.processes.forEach((_, process) => this.siteColors.push(colors.ofSites(process)));
    this.readTheme();
  }

  readTheme(): void {
    this.colors = {
      ink: cssColor("--ink"), faint: cssColor("--faint"), line: cssColor("--line"), paper: cssColor("--paper"),
      band: cssColor("--band"), accent: cssColor("--accent"), lost: cssColor("--lost"),
    };
  }

  levelsOf(row: Row): Level[] {
    let levels = this.levels.get(row);
    if (levels === undefined) {
      levels = buildLevels(row);
      this.levels.set(row, levels);
    }
    return levels;
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
    const { context, canvas, ratio, colors } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colors.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.font = `${12 * ratio}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    this.paintGrid(scene);
    this.paintLines(scene);
    this.paintGutter(scene);
    this.paintAxis(scene);
  }

  private x(scene: Scene, time: number): number {
    return (scene.gutter + scene.view.x(time)) * this.ratio;
  }

  private paintGrid(scene: Scene): void {
    const { context, canvas, colors } = this;
    context.fillStyle = colors.line;
    for (const time of ticks(scene.view, 90)) context.fillRect(Math.round(this.x(scene, time)), 0, 1, canvas.height);
  }

  private paintAxis(scene: Scene): void {
    const { context, canvas, ratio, colors } = this;
    context.fillStyle = colors.paper;
    context.fillRect(0, 0, canvas.width, AXIS * ratio);
    context.fillStyle = colors.line;
    context.fillRect(0, AXIS * ratio - 1, canvas.width, 1);
    const times = ticks(scene.view, 90);
    const step = times.length > 1 ? times[1] - times[0] : scene.view.length;
    for (const time of times) {
      const x = this.x(scene, time);
      if (x < scene.gutter * ratio) continue;
      context.fillStyle = colors.line;
      context.fillRect(Math.round(x), (AXIS - 6) * ratio, 1, 6 * ratio);
      context.fillStyle = colors.faint;
      context.fillText(axisLabel(time, step), x + 4 * ratio, (AXIS / 2) * ratio);
    }
    if (scene.range !== null) this.paintRangeLabel(scene, scene.range);
  }

  private paintRangeLabel(scene: Scene, range: [number, number]): void {
    const { context, ratio, colors } = this;
    const x0 = Math.max(this.x(scene, range[0]), scene.gutter * ratio), x1 = this.x(scene, range[1]);
    if (x1 < x0) return;
    context.fillStyle = colors.accent;
    context.fillRect(x0, (AXIS - 3) * ratio, Math.max(x1 - x0, 1), 3 * ratio);
  }

  /** The rows that are in sight; strips of pixels are put together first and drawn into place line by line. */
  private paintLines(scene: Scene): void {
    const { context, canvas, ratio, strips } = this;
    const left = Math.round(scene.gutter * ratio), width = canvas.width - left;
    if (width <= 0) return;
    const shown = this.shownLines(scene);
    if (strips.width !== width || strips.height < shown.length) {
      strips.width = width;
      strips.height = Math.max(shown.length, strips.height);
    }
    const image = new ImageData(width, Math.max(shown.length, 1));
    const pixels = new Uint32Array(image.data.buffer);
    const stripped: { line: Line; at: number }[] = [];
    context.save();
    context.beginPath();
    context.rect(left, AXIS * ratio, width, canvas.height);
    context.clip();
    context.translate(left, 0);
    shown.forEach((line, at) => {
      if (this.paintLine(scene, line, width, pixels, at)) stripped.push({ line, at });
    });
    if (stripped.length > 0) {
      const aside = strips.getContext("2d") as CanvasRenderingContext2D;
      aside.putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      for (const { line, at } of stripped) {
        const [y, height] = this.place(scene, line);
        context.drawImage(strips, 0, at, width, 1, 0, y, width, height);
      }
    }
    for (const line of shown) this.paintOver(scene, line, width);
    this.paintSelection(scene, shown);
    for (const arrow of scene.arrows) this.paintArrow(scene, arrow, width);
    context.restore();
  }

  private shownLines(scene: Scene): Line[] {
    const { layout, scroll } = scene;
    const bottom = scroll + this.canvas.clientHeight;
    const shown: Line[] = [];
    for (let i = Math.max(0, layout.at(scroll)); i < layout.lines.length && layout.lines[i].y < bottom; i++) {
      shown.push(layout.lines[i]);
    }
    return shown;
  }

  private place(scene: Scene, line: Line): [number, number] {
    const y = (AXIS + line.y - scene.scroll) * this.ratio;
    return [Math.round(y), Math.max(1, Math.round((line.height - GAP) * this.ratio))];
  }

  private rowScene(scene: Scene, line: Line, width: number): RowScene {
    const { process } = line;
    const isCounted = line.track?.kind === "progress" && line.depth < 2;
    return {
      context: this.context,
      from: scene.view.from,
      to: scene.view.to,
      width,
      ratio: this.ratio,
      nameOf: isCounted ? (number) => String(number) : (site) => nameOf(this.recording, process, site)[0],
      colors: isCounted ? COUNTED : this.siteColors[process],
      isDim: isCounted ? null : (scene.matches?.[process] ?? null),
      dimPixel: toPixel(isCounted ? "#c8c8c8" : this.colors.band),
      dimCss: isCounted ? "#c8c8c8" : this.colors.band,
      ink: isCounted ? "#000000" : this.colors.faint,
    };
  }

  /** Draw a line; whether it left a strip of pixels at `at` of the image. */
  private paintLine(scene: Scene, line: Line, width: number, pixels: Uint32Array, at: number): boolean {
    const [y, height] = this.place(scene, line);
    const { context, colors, strip } = this;
    if (line.kind === "process") {
      context.fillStyle = colors.band;
      context.fillRect(0, y, width, height);
      return false;
    }
    if (line.row === null) return false;
    if (line.kind === "counter") {
      this.paintCounter(scene, line, line.row, y, height, width);
      return false;
    }
    strip.reset(width);
    paintRow(line.row, this.levelsOf(line.row), y, height, this.rowScene(scene, line, width), strip);
    if (strip.isUsed) strip.compose(pixels, at * width, width, toPixel(colors.paper));
    return strip.isUsed;
  }

  /** Steps of a counter; where several values fall on a pixel, from the lowest to the highest. */
  private paintCounter(scene: Scene, line: Line, row: Row, y: number, height: number, width: number): void {
    const { context, ratio } = this;
    const values = row.bits as Float64Array;
    let low = 0, high = 0;
    for (let i = 0; i < row.n; i++) {
      if (values[i] < low) low = values[i];
      if (values[i] > high) high = values[i];
    }
    const scale = (height - 4 * ratio) / (high - low || 1);
    const yOf = (v: number): number => y + height - 2 * ratio - (v - low) * scale;
    context.fillStyle = this.siteColors[line.process].css[row.about] ?? this.colors.accent;
    const perPixel = (scene.view.to - scene.view.from) / width, from = scene.view.from;
    let i = Math.max(0, row.lowerBound(from) - 1);
    while (i < row.n && row.start[i] < scene.view.to) {
      const x0 = Math.floor((row.start[i] - from) / perPixel);
      let least = values[i], most = values[i];
      let next = i + 1;
      while (next < row.n && row.start[next] - from < (x0 + 1) * perPixel) {
        least = Math.min(least, values[next]);
        most = Math.max(most, values[next]);
        next++;
      }
      const last = next < row.n ? (row.start[next] - from) / perPixel : width;
      context.globalAlpha = 0.5;
      context.fillRect(x0, yOf(most), 1, Math.max(yOf(Math.min(0, low)) - yOf(most), 1));
      const hold = values[next - 1];
      context.fillRect(x0 + 1, yOf(hold), Math.max(last - x0 - 1, 0), yOf(Math.min(0, low)) - yOf(hold));
      context.globalAlpha = 1;
      context.fillRect(x0, yOf(most), 1, Math.max(yOf(least) - yOf(most), ratio));
      context.fillRect(x0, yOf(hold) - ratio / 2, Math.max(last - x0, 1), ratio);
      i = next;
    }
    this.paintScale(high, low, y, height);
  }

  private paintScale(high: number, low: number, y: number, height: number): void {
    const { context, ratio, colors } = this;
    context.fillStyle = colors.faint;
    context.font = `${10 * ratio}px system-ui, sans-serif`;
    context.fillText(String(Number(high.toPrecision(4))), 2 * ratio, y + 7 * ratio);
    context.fillText(String(Number(low.toPrecision(4))), 2 * ratio, y + height - 6 * ratio);
    context.font = `${12 * ratio}px system-ui, sans-serif`;
  }

  /** What lies over a row: ranges without an end, and where events are missing. */
  private paintOver(scene: Scene, line: Line, width: number): void {
    const { track } = line;
    if (line.kind !== "row" || track === null || track.kind === "progress") return;
    const [y, height] = this.place(scene, line);
    for (const open of track.unfinished) {
      if (open.depth !== line.depth) continue;
      const x0 = this.plotX(scene, open.start, width), x1 = this.plotX(scene, open.last, width);
      if (x1 < 0 || x0 > width) continue;
      this.paintOpen(x0, Math.max(x1, x0 + 2), y, height, line.process, open.site);
    }
    if (line.depth === 0) this.paintLosses(scene, track.losses, y, width);
  }

  private plotX(scene: Scene, time: number, width: number): number {
    return ((time - scene.view.from) / (scene.view.to - scene.view.from)) * width;
  }

  /** A box that fades out to its right, with a dashed end. */
  private paintOpen(x0: number, x1: number, y: number, height: number, process: number, site: number): void {
    const { context, ratio, colors } = this;
    const css = this.siteColors[process].css[site] ?? colors.faint;
    const from = Math.max(x0, -10), to = Math.min(x1, this.canvas.width + 10);
    context.globalAlpha = 0.55;
    context.fillStyle = css;
    context.fillRect(from, y, to - from, height);
    context.globalAlpha = 1;
    context.strokeStyle = colors.ink;
    context.lineWidth = ratio;
    context.setLineDash([3 * ratio, 3 * ratio]);
    context.strokeRect(from + 0.5, y + 0.5, to - from - 1, height - 1);
    context.setLineDash([]);
    const text = fitText(context, `${nameOf(this.recording, process, site)[0]} (no end)`, to - from - 6 * ratio);
    context.fillStyle = colors.ink;
    context.fillText(text, Math.max(from, 0) + 3 * ratio, y + height / 2);
  }

  private paintLosses(scene: Scene, losses: Row, y: number, width: number): void {
    const { context, ratio, colors } = this;
    for (let i = 0; i < losses.n; i++) {
      const x0 = this.plotX(scene, losses.start[i], width), x1 = this.plotX(scene, losses.end(i), width);
      if (x1 < 0 || x0 > width) continue;
      context.fillStyle = colors.lost;
      context.fillRect(x0, y, Math.max(x1 - x0, 2 * ratio), 4 * ratio);
    }
  }

  private paintSelection(scene: Scene, shown: Line[]): void {
    const { context, canvas, ratio, colors } = this;
    const width = canvas.width - Math.round(scene.gutter * ratio);
    if (scene.range !== null) {
      const x0 = this.plotX(scene, scene.range[0], width), x1 = this.plotX(scene, scene.range[1], width);
      context.fillStyle = colors.accent;
      context.globalAlpha = 0.12;
      context.fillRect(x0, AXIS * ratio, x1 - x0, canvas.height);
      context.globalAlpha = 1;
    }
    const { selected } = scene;
    if (selected === null || !shown.includes(selected.line)) return;
    const [start, end] = pickedSpan(selected);
    const [y, height] = this.place(scene, selected.line);
    const x0 = this.plotX(scene, start, width), x1 = this.plotX(scene, end, width);
    context.strokeStyle = colors.ink;
    context.lineWidth = 2 * ratio;
    context.strokeRect(x0, y + ratio, Math.max(x1 - x0, 3 * ratio), height - 2 * ratio);
  }

  private spot(scene: Scene, spot: Spot, width: number): [number, number] | null {
    const line = scene.layout.lineAt(spot.track, spot.time);
    if (line === undefined) return null; // its process is collapsed
    const [y, height] = this.place(scene, line);
    return [this.plotX(scene, spot.time, width), y + height / 2];
  }

  /** A curve with a head, from what caused to what was caused. */
  private paintArrow(scene: Scene, arrow: Arrow, width: number): void {
    const from = this.spot(scene, arrow.from, width), to = this.spot(scene, arrow.to, width);
    if (from === null || to === null) return;
    const { context, ratio, colors } = this;
    const bend = Math.max(20 * ratio, Math.abs(to[0] - from[0]) / 3);
    context.strokeStyle = context.fillStyle = colors.accent;
    context.lineWidth = 1.5 * ratio;
    context.beginPath();
    context.moveTo(from[0], from[1]);
    context.bezierCurveTo(from[0] + bend, from[1], to[0] - bend, to[1], to[0], to[1]);
    context.stroke();
    context.beginPath();
    context.moveTo(to[0], to[1]);
    context.lineTo(to[0] - 7 * ratio, to[1] - 4 * ratio);
    context.lineTo(to[0] - 7 * ratio, to[1] + 4 * ratio);
    context.fill();
  }

  private paintGutter(scene: Scene): void {
    const { context, canvas, ratio, colors } = this;
    context.save();
    context.beginPath();
    context.rect(0, AXIS * ratio, canvas.width, canvas.height);
    context.clip();
    for (const line of this.shownLines(scene)) {
      const [y, height] = this.place(scene, line);
      const isProcess = line.kind === "process";
      context.fillStyle = isProcess ? colors.band : colors.paper;
      context.fillRect(0, y, scene.gutter * ratio, height + ratio);
      if (line.label === "") continue;
      context.fillStyle = isProcess ? colors.ink : colors.faint;
      context.font = `${isProcess ? "600 " : ""}${12 * ratio}px system-ui, sans-serif`;
      const text = isProcess ? `${scene.layout.collapsed.has(line.process) ? "\u25b8" : "\u25be"} ${line.label}` : line.label;
      const room = isProcess ? canvas.width : (scene.gutter - 12) * ratio;
      context.fillText(fitText(context, text, room), (isProcess ? 4 : 10) * ratio, y + Math.min(height, 18 * ratio) / 2);
    }
    context.font = `${12 * ratio}px system-ui, sans-serif`;
    context.fillStyle = colors.line;
    context.fillRect(Math.round(scene.gutter * ratio) - 1, AXIS * ratio, 1, canvas.height);
    context.restore();
  }
}

const COUNTED: SiteColors = { css: [], pixel: new Uint32Array(0) };

/** Begin and end of what was picked. */
export function pickedSpan(picked: Picked): [number, number] {
  const { line, i } = picked;
  if (i < 0) {
    const open = line.track?.unfinished[-1 - i];
    return open ? [open.start, open.last] : [0, 0];
  }
  return line.row ? [line.row.start[i], line.row.end(i)] : [0, 0];
}

/** A moment on the axis, with as many digits as the step asks for. */
function axisLabel(time: number, step: number): string {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["\u00b5s", 1e3]] as [string, number][]) {
    if (Math.abs(time) >= size) {
      const digits = Math.max(0, Math.ceil(Math.log10(size / step)));
      return `${(time / size).toFixed(Math.min(digits, 9))} ${unit}`;
    }
  }
  return units.duration(time);
}
