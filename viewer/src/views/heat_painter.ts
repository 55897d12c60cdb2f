// Draws the heat map: a pixel shows the largest of its cells, so that slow cells remain visible.

import type { HeatMap } from "../model/heat";
import type { HeatScale } from "../model/heat_colors";
import { type Span, cellTicks } from "../model/heat_window";
import { cssColor } from "../ui/theme";

export const HEAT_GUTTER = 78; // for the names of rows
export const HEAT_AXIS = 22; // for the numbers of iterations

export interface HeatScene {
  map: HeatMap;
  scale: HeatScale;
  order: Int32Array;
  rows: Span;
  columns: Span;
  picked: [row: number, column: number] | null; // row on the screen
  label: (row: number) => string; // of the data
}

/** The end of a long label is more informative than its start. */
function short(label: string): string {
  return label.length > 11 ? `\u2026${label.slice(-10)}` : label;
}

/** For each pixel along an axis the first cell in it, and one more for the end. */
function edges(span: Span, pixels: number): Int32Array {
  return Int32Array.from({ length: pixels + 1 }, (_, p) => Math.min(span.n, Math.max(0, Math.floor(span.from + (p / pixels) * (span.to - span.from)))));
}

function paintCells(context: CanvasRenderingContext2D, scene: HeatScene, x: number, width: number, height: number): void {
  const image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  const tops = edges(scene.rows, height), lefts = edges(scene.columns, width);
  const { map, scale, order } = scene, all = map.data.columns, values = new Float32Array(all);
  let before = -1, beforeEnd = -1;
  for (let y = 0; y < height; y++) {
    const from = tops[y], to = Math.max(tops[y + 1], from + 1);
    if (from !== before || to !== beforeEnd) {
      values.fill(0);
      for (let r = from; r < to && r < order.length; r++) {
        const row = order[r] * all;
        for (let c = lefts[0]; c < all && c <= lefts[width]; c++) values[c] = Math.max(values[c], map.value(row + c, scale.measure));
      }
    } else {
      pixels.copyWithin(y * width, (y - 1) * width, y * width);
      continue;
    }
    before = from;
    beforeEnd = to;
    for (let p = 0; p < width; p++) {
      let most = 0;
      for (let c = lefts[p], end = Math.max(lefts[p + 1], lefts[p] + 1); c < end && c < all; c++) most = Math.max(most, values[c]);
      if (most > 0) pixels[y * width + p] = scale.pixel(most);
    }
  }
  context.putImageData(image, x, 0);
}

function paintLabels(context: CanvasRenderingContext2D, scene: HeatScene, ratio: number, height: number): void {
  context.fillStyle = cssColor("--faint");
  context.font = `${12 * ratio}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  const { rows, columns, map } = scene;
  for (const row of cellTicks(rows, 18)) {
    const y = (rows.place(row) + 0.5 / rows.perPixel) * ratio;
    if (y < 4 * ratio || y > height - 4 * ratio) continue;
    context.fillText(short(scene.label(scene.order[row])), (HEAT_GUTTER - 8) * ratio, Math.max(y, 7 * ratio), (HEAT_GUTTER - 12) * ratio);
  }
  context.textAlign = "center";
  for (const column of cellTicks(columns, 70)) {
    const x = (HEAT_GUTTER + columns.place(column) + 0.5 / columns.perPixel) * ratio;
    context.fillText(String(map.iterationOf(column)), x, height + (HEAT_AXIS / 2) * ratio);
  }
}

/** A frame around the selected cell, in two colors, visible on any background. */
function paintPicked(context: CanvasRenderingContext2D, scene: HeatScene, ratio: number): void {
  if (scene.picked === null) return;
  const [row, column] = scene.picked;
  const x = (HEAT_GUTTER + scene.columns.place(column)) * ratio, y = Math.max(scene.rows.place(row) * ratio, 3 * ratio);
  const width = Math.max(ratio / scene.columns.perPixel, 5 * ratio), height = Math.max(ratio / scene.rows.perPixel, 5 * ratio);
  for (const [grow, color] of [[2, "--paper"], [1, "--ink"]] as const) {
    context.strokeStyle = cssColor(color);
    context.lineWidth = ratio * grow;
    context.strokeRect(x - ratio * grow, y - ratio * grow, width + 2 * ratio * grow, height + 2 * ratio * grow);
  }
}

export function paintHeat(canvas: HTMLCanvasElement, scene: HeatScene): void {
  const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d");
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const width = canvas.width - Math.round(HEAT_GUTTER * ratio), height = canvas.height - Math.round(HEAT_AXIS * ratio);
  if (context === null || width <= 0 || height <= 0) return;
  context.fillStyle = cssColor("--paper");
  context.fillRect(0, 0, canvas.width, canvas.height);
  paintCells(context, scene, Math.round(HEAT_GUTTER * ratio), width, height);
  paintLabels(context, scene, ratio, height);
  context.save();
  context.beginPath();
  context.rect(Math.round(HEAT_GUTTER * ratio) - 3 * ratio, 0, width + 3 * ratio, height + 3 * ratio);
  context.clip();
  paintPicked(context, scene, ratio);
  context.restore();
}
