// One row of events on the canvas. Events wider than a few pixels are boxes with a label. The others are summed per pixel:
// covered share and dominant event; so a pixel that covers a thousand events is as dark as their busy share.

import { GREY, textOn, toPixel } from "../model/colors";
import { type Level, firstBlock, levelFor } from "../model/levels";
import type { Row } from "../model/row";

export interface SiteColors {
  css: string[];
  pixel: Uint32Array;
}

const WIDE_ENOUGH = 3; // pixels of a separate box
const LABEL_FROM = 24;
const GREY_PIXEL = toPixel(GREY); // for events without a colour
const FAINTEST = 0.3; // a pixel with any event

export class Strip {
  private cover = new Float32Array(0);
  private most = new Float32Array(0);
  private color = new Uint32Array(0);
  isUsed = false;

  reset(width: number): void {
    if (this.cover.length < width) {
      this.cover = new Float32Array(width);
      this.most = new Float32Array(width);
      this.color = new Uint32Array(width);
    } else {
      this.cover.fill(0, 0, width);
      this.most.fill(0, 0, width);
    }
    this.isUsed = false;
  }

  private addTo(p: number, share: number, color: number): void {
    this.cover[p] += share;
    if (share >= this.most[p]) {
      this.most[p] = share;
      this.color[p] = color;
    }
  }

  /** Cover from `x0` to `x1` by this share; 1: completely. */
  add(x0: number, x1: number, extent: number, color: number, width: number): void {
    if (x1 < 0 || x0 >= width) return;
    this.isUsed = true;
    const first = Math.max(0, Math.floor(x0)), last = Math.min(width - 1, Math.floor(x1));
    if (first === last) {
      this.addTo(first, Math.max((x1 - x0) * extent, 0.02), color);
      return;
    }
    for (let p = first; p <= last; p++) {
      const part = Math.min(x1, p + 1) - Math.max(x0, p);
      if (part > 0) this.addTo(p, part * extent, color);
    }
  }

  /** Mix the colours with the background into a line of an image. */
  compose(out: Uint32Array, at: number, width: number, background: number): void {
    const br = background & 255, bg = (background >> 8) & 255, bb = (background >> 16) & 255;
    for (let p = 0; p < width; p++) {
      const cover = this.cover[p];
      if (cover === 0) {
        out[at + p] = 0;
        continue;
      }
      const a = Math.max(FAINTEST, Math.min(1, cover));
      const c = this.color[p];
      const r = br + ((c & 255) - br) * a, g = bg + (((c >> 8) & 255) - bg) * a, b = bb + (((c >> 16) & 255) - bb) * a;
      out[at + p] = (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
    }
  }
}

export interface RowScene {
  context: CanvasRenderingContext2D; // device pixels, with the origin of the plot
  from: number; // nanoseconds at its left and right
  to: number;
  width: number; // of the plot, in device pixels
  ratio: number; // device pixels per CSS pixel
  nameOf: (site: number) => string;
  colors: SiteColors;
  isDim: Uint8Array | null; // by site, while searching
  dimPixel: number;
  dimCss: string;
  ink: string;
}

interface Box {
  i: number;
  x: number;
  width: number;
}

/** Collect boxes, add the rest to the strip. */
function sortOut(row: Row, levels: Level[], scene: RowScene, strip: Strip): Box[] {
  const { from, to, width, colors, isDim, dimPixel } = scene;
  const boxes: Box[] = [];
  const perPixel = (to - from) / width;
  const wide = WIDE_ENOUGH * scene.ratio;
  const level = levelFor(levels, perPixel);
  const pixelOf = (i: number): number => (isDim?.[row.id[i]] ? dimPixel : (colors.pixel[row.id[i]] ?? GREY_PIXEL));
  if (level !== null) {
    for (let b = firstBlock(level, from); b < level.n && level.start[b] < to; b++) {
      const x0 = (level.start[b] - from) / perPixel, x1 = (level.end[b] - from) / perPixel;
      const i = level.longest[b], length = x1 - x0;
      const isOne = (b + 1 < level.n ? level.first[b + 1] : row.n) - level.first[b] === 1;
      if (isOne && length >= wide) boxes.push({ i, x: x0, width: length });
      else strip.add(x0, x1, length > 0 ? Math.min(1, level.busy[b] / perPixel / length) : 1, pixelOf(i), width);
    }
    return boxes;
  }
  for (let i = row.firstReaching(from); i < row.n && row.start[i] < to; i++) {
    const x0 = (row.start[i] - from) / perPixel, length = row.duration(i) / perPixel;
    if (length >= wide) boxes.push({ i, x: x0, width: length });
    else strip.add(x0, x0 + length, 1, pixelOf(i), width);
  }
  return boxes;
}

/** Truncates strings to widths; each character is measured once. */
class Letters {
  private readonly widths = new Map<string, number>();

  private widthOf(context: CanvasRenderingContext2D, letter: string): number {
    let width = this.widths.get(letter);
    if (width === undefined) {
      width = context.measureText(letter).width;
      this.widths.set(letter, width);
    }
    return width;
  }

  fit(context: CanvasRenderingContext2D, text: string, room: number): string {
    const dots = this.widthOf(context, "\u2026");
    let used = 0, fitting = 0;
    for (let i = 0; i < text.length; i++) {
      used += this.widthOf(context, text[i]);
      if (used <= room - dots) fitting = i + 1;
      if (used > room) return fitting > 1 ? `${text.slice(0, fitting)}\u2026` : "";
    }
    return text;
  }
}

let letters = new Letters();

/** Reset after a change of font, for example of the pixel ratio. */
export function forgetLetters(): void {
  letters = new Letters();
}

export function fitText(context: CanvasRenderingContext2D, text: string, room: number): string {
  return letters.fit(context, text, room);
}

function drawBox(row: Row, box: Box, y: number, height: number, scene: RowScene): void {
  const { context, ratio, width } = scene;
  const site = row.id[box.i];
  const isDim = scene.isDim !== null && (scene.isDim[site] ?? 1) !== 0;
  const css = isDim ? scene.dimCss : (scene.colors.css[site] ?? GREY);
  const x0 = Math.max(box.x, -2), x1 = Math.min(box.x + box.width, width + 2);
  context.fillStyle = css;
  context.fillRect(x0, y, Math.max(x1 - x0 - Math.min(1, ratio / 2), 1), height);
  if (x1 - x0 < LABEL_FROM * ratio) return;
  const text = fitText(context, scene.nameOf(site), x1 - x0 - 6 * ratio);
  if (text === "") return;
  context.fillStyle = isDim ? scene.ink : textOn(css);
  context.fillText(text, x0 + 3 * ratio, y + height / 2);
}

/** Draw the row's boxes; the caller draws the strip. */
export function paintRow(row: Row, levels: Level[], y: number, height: number, scene: RowScene, strip: Strip): void {
  for (const box of sortOut(row, levels, scene, strip)) drawBox(row, box, y, height, scene);
}
