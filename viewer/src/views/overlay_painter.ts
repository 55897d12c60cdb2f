// Overlays of the rows: ranges without an end, missing events, the selection, and arrows.

import type { Arrow, Spot } from "../model/arrows";
import type { Layout, Line } from "../model/layout";
import type { Loss } from "../model/losses";
import { type Recording, type Unfinished, nameOf } from "../model/recording";
import type { Row } from "../model/row";
import * as units from "../model/units";
import { AXIS, type Plot } from "./plot";
import { fitText } from "./row_painter";

/** A box with a dashed edge, open to its right up to the last known time. */
function paintUnfinished(plot: Plot, open: Unfinished, y: number, height: number, color: string, name: string): void {
  const { context, ratio, ink } = plot;
  const from = Math.max(plot.x(open.start), -10), to = Math.min(Math.max(plot.x(open.last), from + 2 * ratio), plot.width + 10);
  if (to < 0 || from > plot.width) return;
  context.globalAlpha = 0.55;
  context.fillStyle = color;
  context.fillRect(from, y, to - from, height);
  context.globalAlpha = 1;
  context.strokeStyle = ink.ink;
  context.lineWidth = ratio;
  context.setLineDash([3 * ratio, 3 * ratio]);
  context.strokeRect(from + 0.5, y + 0.5, to - from - 1, height - 1);
  context.setLineDash([]);
  context.fillStyle = ink.ink;
  context.fillText(fitText(context, `${name} (no end)`, to - from - 6 * ratio), Math.max(from, 0) + 3 * ratio, y + height / 2);
}

/** Stripes in the color of losses, with a label if there is space. */
function hatch(plot: Plot, from: number, to: number, y: number, height: number, text: string): void {
  const { context, ratio, ink } = plot;
  const x0 = Math.max(plot.x(from), -10), x1 = Math.min(Math.max(plot.x(to), x0 + 2 * ratio), plot.width + 10);
  if (x1 < 0 || x0 > plot.width) return;
  context.save();
  context.beginPath();
  context.rect(x0, y, x1 - x0, height);
  context.clip();
  context.strokeStyle = ink.lost;
  context.lineWidth = 1.5 * ratio;
  context.beginPath();
  for (let x = x0 - height; x < x1; x += 6 * ratio) {
    context.moveTo(x, y + height);
    context.lineTo(x + height, y);
  }
  context.stroke();
  const room = context.measureText(text).width + 6 * ratio;
  if (x1 - x0 > room + 6 * ratio) {
    context.fillStyle = ink.paper;
    context.fillRect(Math.max(x0, 0) + 3 * ratio, y, room, height);
    context.fillStyle = ink.lost;
    context.fillText(text, Math.max(x0, 0) + 6 * ratio, y + height / 2);
  }
  context.restore();
}

/** From the last known event to the next one. */
function paintLosses(plot: Plot, losses: Row, y: number, height: number): void {
  for (let i = losses.firstReaching(plot.from); i < losses.n && losses.start[i] < plot.to; i++) {
    hatch(plot, losses.start[i], losses.end(i), y, height, losses.id[i] > 0 ? `${units.count(losses.id[i])} lost` : "lost");
  }
}

/** Lost events on the line of a process. */
export function paintProcessLoss(plot: Plot, loss: Loss, y: number, height: number): void {
  hatch(plot, loss.from, loss.to, y, height, loss.text);
}

/** A line of a process after which nothing was recorded. */
export function paintRest(plot: Plot, loss: Loss, line: Line): void {
  if (loss.rest === null) return;
  const [y, height] = plot.place(line), { context, ratio, ink } = plot;
  const x0 = plot.x(loss.rest), x1 = Math.max(plot.x(loss.to), x0 + 2 * ratio);
  context.fillStyle = ink.lost;
  context.globalAlpha = 0.12;
  context.fillRect(x0, y, x1 - x0, height + ratio);
  context.globalAlpha = 1;
  context.fillRect(x0, y, ratio, height + ratio);
}

export function paintOverRow(plot: Plot, recording: Recording, line: Line, colors: string[]): void {
  const { track } = line;
  if (line.kind !== "row" || track === null || track.kind === "progress") return;
  const [y, height] = plot.place(line);
  for (const open of track.unfinished) {
    if (open.depth !== line.depth) continue;
    paintUnfinished(plot, open, y, height, colors[open.site] ?? plot.ink.faint, nameOf(recording, line.process, open.site)[0]);
  }
  if (line.depth === 0) paintLosses(plot, track.losses, y, height);
}

export function paintRange(plot: Plot, range: [number, number]): void {
  const { context, ratio, ink } = plot;
  const x0 = plot.x(range[0]), x1 = plot.x(range[1]);
  context.fillStyle = ink.accent;
  context.globalAlpha = 0.12;
  context.fillRect(x0, AXIS * ratio, x1 - x0, plot.height);
  context.globalAlpha = 1;
}

/** A frame around the selected event. */
export function paintPicked(plot: Plot, line: Line, span: [number, number]): void {
  const { context, ratio, ink } = plot;
  const [y, height] = plot.place(line);
  const x0 = plot.x(span[0]), x1 = plot.x(span[1]);
  context.strokeStyle = ink.ink;
  context.lineWidth = 2 * ratio;
  context.strokeRect(x0, y + ratio, Math.max(x1 - x0, 3 * ratio), height - 2 * ratio);
}

function spotOf(plot: Plot, layout: Layout, spot: Spot): [number, number] | null {
  const line = layout.lineAt(spot.track, spot.time);
  if (line === undefined) return null; // its process is collapsed
  const [y, height] = plot.place(line);
  return [plot.x(spot.time), y + height / 2];
}

/** An arrow from cause to effect. */
export function paintArrow(plot: Plot, layout: Layout, arrow: Arrow): void {
  const from = spotOf(plot, layout, arrow.from), to = spotOf(plot, layout, arrow.to);
  if (from === null || to === null) return;
  const { context, ratio, ink } = plot;
  const bend = Math.max(20 * ratio, Math.abs(to[0] - from[0]) / 3);
  context.strokeStyle = context.fillStyle = ink.accent;
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
