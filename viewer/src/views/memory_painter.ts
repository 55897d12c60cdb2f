// The chart of a memory timeline: stacked areas, axes, phases, the peak and the selected time.

import { CATEGORIES, type Memory, columns, sizeTicks } from "../model/memory";
import { textOn } from "../model/colors";
import * as units from "../model/units";
import { type Viewport, ticks } from "../model/viewport";
import { cssColor } from "../ui/theme";

export const GUTTER = 76; // left of the areas
export const STRIP = 18; // of phases
const AXIS = 24; // of times
const TOP = 22; // for the label of the peak

const PHASES: Record<string, string> = {
  data: "#66ccee", forward: "#ee8866", backward: "#77aadd", optimizer: "#eedd88", update: "#dddddd", other: "#bbcc33",
};

export interface Scene {
  memory: Memory;
  totals: Float64Array; // of visible categories
  isShown: boolean[];
  view: Viewport;
  phases: [number, number, string][];
  peak: number; // a change
  picked: number; // a change, -1: none
  pointed: number | null; // a time
}

export class MemoryPainter {
  private context: CanvasRenderingContext2D;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d") as CanvasRenderingContext2D;
  }

  paint(scene: Scene): void {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (width === 0) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    scene.view.width = Math.max(1, width - GUTTER);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.fillStyle = cssColor("--paper");
    this.context.fillRect(0, 0, width, height);
    const floor = height - AXIS - STRIP;
    const chosen = columns(scene.memory, scene.totals, scene.view.from, scene.view.to, Math.max(1, Math.round(scene.view.width)));
    const most = chosen.reduce((most, change) => Math.max(most, change < 0 ? 0 : scene.totals[change]), 0) * 1.04;
    const y = (bytes: number): number => floor - (most > 0 ? bytes / most : 0) * (floor - TOP);
    this.sizes(most, y, width);
    this.areas(scene, chosen, y);
    this.phases(scene, floor);
    this.times(scene, height, width);
    this.marks(scene, floor, y, width);
  }

  private text(text: string, x: number, y: number, align: CanvasTextAlign, color: string): void {
    this.context.font = "12px system-ui, sans-serif";
    this.context.textAlign = align;
    this.context.textBaseline = "middle";
    this.context.fillStyle = color;
    this.context.fillText(text, x, y);
  }

  private sizes(most: number, y: (bytes: number) => number, width: number): void {
    for (const size of sizeTicks(most, 6)) {
      this.context.fillStyle = cssColor("--line");
      this.context.fillRect(GUTTER, Math.round(y(size)), width - GUTTER, 1);
      this.text(units.bytes(size), GUTTER - 8, y(size), "right", cssColor("--faint"));
    }
  }

  /** By columns of pixels; equal neighbors form one rectangle. */
  private areas(scene: Scene, chosen: Int32Array, y: (bytes: number) => number): void {
    for (let x = 0; x < chosen.length; ) {
      let to = x + 1;
      while (to < chosen.length && chosen[to] === chosen[x]) to++;
      if (chosen[x] >= 0) this.column(scene, chosen[x], x, to, y);
      x = to;
    }
  }

  private column(scene: Scene, change: number, from: number, to: number, y: (bytes: number) => number): void {
    let below = 0;
    CATEGORIES.forEach(({ color }, c) => {
      const bytes = scene.memory.sums[c][change];
      if (!scene.isShown[c] || bytes <= 0) return;
      const top = y(below + bytes);
      this.context.fillStyle = color;
      this.context.fillRect(GUTTER + from, top, to - from, y(below) - top);
      below += bytes;
    });
  }

  private phases(scene: Scene, top: number): void {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(GUTTER, top, scene.view.width, STRIP);
    context.clip();
    for (const [begin, end, name] of scene.phases) {
      const from = GUTTER + scene.view.x(begin), to = GUTTER + scene.view.x(end);
      if (to < GUTTER || from > GUTTER + scene.view.width) continue;
      context.fillStyle = PHASES[name] ?? cssColor("--band");
      context.fillRect(from, top + 3, Math.max(to - from, 1), STRIP - 3);
      const left = Math.max(from, GUTTER), right = Math.min(to, GUTTER + scene.view.width);
      context.font = "12px system-ui, sans-serif";
      if (right - left > context.measureText(name).width + 8) this.text(name, (left + right) / 2, top + STRIP / 2 + 2, "center", textOn(PHASES[name] ?? "#ffffff"));
    }
    context.restore();
  }

  private times(scene: Scene, height: number, width: number): void {
    const moments = ticks(scene.view, 110);
    const texts = units.durationTicks(moments);
    moments.forEach((time, i) => {
      const x = GUTTER + scene.view.x(time);
      if (x > width - 24 || x < GUTTER) return;
      this.context.fillStyle = cssColor("--faint");
      this.context.fillRect(Math.round(x), height - AXIS, 1, 4);
      this.text(texts[i], x, height - AXIS / 2 + 2, "center", cssColor("--faint"));
    });
  }

  private line(x: number, floor: number, color: string, dash: number[]): void {
    this.context.strokeStyle = color;
    this.context.setLineDash(dash);
    this.context.beginPath();
    this.context.moveTo(x, TOP - 4);
    this.context.lineTo(x, floor);
    this.context.stroke();
    this.context.setLineDash([]);
  }

  private marks(scene: Scene, floor: number, y: (bytes: number) => number, width: number): void {
    const { memory, view } = scene;
    const place = (time: number): number => GUTTER + Math.max(view.x(time), 0);
    const isInSight = (time: number): boolean => time >= view.from && time <= view.to;
    if (scene.pointed !== null && isInSight(scene.pointed)) this.line(place(scene.pointed), floor, cssColor("--faint"), []);
    if (scene.picked >= 0 && isInSight(memory.times[scene.picked])) this.line(place(memory.times[scene.picked]), floor, cssColor("--accent"), []);
    if (memory.n === 0 || !isInSight(memory.times[scene.peak])) return;
    const x = place(memory.times[scene.peak]), text = `peak ${units.bytes(memory.total(scene.peak))}`;
    this.line(x, floor, cssColor("--ink"), [4, 3]);
    this.context.fillStyle = cssColor("--ink");
    this.context.beginPath();
    this.context.arc(x, y(scene.totals[scene.peak]), 3.5, 0, 2 * Math.PI);
    this.context.fill();
    this.context.font = "12px system-ui, sans-serif";
    const half = this.context.measureText(text).width / 2;
    this.text(text, Math.min(Math.max(x, GUTTER + half), width - half - 2), TOP / 2, "center", cssColor("--ink"));
  }
}
