// A counter on the timeline: steps from value to value, filled down to zero.

import type { Row } from "../model/row";
import * as units from "../model/units";
import type { Plot } from "./plot";

const bounds = new WeakMap<Row, [number, number]>();

/** The lowest and highest value, zero among them. */
function boundsOf(row: Row): [number, number] {
  let known = bounds.get(row);
  if (known === undefined) {
    let low = 0, high = 0;
    for (const value of row.bits ?? []) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    known = [low, high];
    bounds.set(row, known);
  }
  return known;
}

interface Step {
  x: number; // of the pixel
  least: number; // of the values in it
  most: number;
  hold: number; // the last value, valid until
  until: number; // this pixel
}

/** Visible values; for several in a pixel, from minimum to maximum. */
function* steps(row: Row, plot: Plot): Generator<Step> {
  const values = row.bits as Float64Array, perPixel = plot.nsPerPixel;
  let i = Math.max(0, row.lowerBound(plot.from) - 1);
  while (i < row.n && row.start[i] < plot.to) {
    const x = Math.floor((row.start[i] - plot.from) / perPixel);
    let least = values[i], most = values[i], next = i + 1;
    while (next < row.n && row.start[next] - plot.from < (x + 1) * perPixel) {
      least = Math.min(least, values[next]);
      most = Math.max(most, values[next]);
      next++;
    }
    yield { x, least, most, hold: values[next - 1], until: next < row.n ? plot.x(row.start[next]) : plot.width };
    i = next;
  }
}

export function paintCounter(plot: Plot, row: Row, color: string, y: number, height: number): void {
  const { context, ratio } = plot;
  const [low, high] = boundsOf(row);
  const scale = (height - 4 * ratio) / (high - low || 1);
  const yOf = (value: number): number => y + height - 2 * ratio - (value - low) * scale;
  const zero = yOf(0);
  const fill = (x: number, width: number, value: number): void => context.fillRect(x, Math.min(yOf(value), zero), width, Math.abs(zero - yOf(value)));
  context.fillStyle = color;
  for (const { x, least, most, hold, until } of steps(row, plot)) {
    context.globalAlpha = 0.5;
    fill(x, 1, most);
    fill(x + 1, Math.max(until - x - 1, 0), hold);
    context.globalAlpha = 1;
    context.fillRect(x, yOf(most), 1, Math.max(yOf(least) - yOf(most), ratio));
    context.fillRect(x, yOf(hold) - ratio / 2, Math.max(until - x, 1), ratio);
  }
  context.fillStyle = plot.ink.faint;
  plot.font(10);
  context.fillText(units.scientific(high), 2 * ratio, y + 7 * ratio);
  context.fillText(units.scientific(low), 2 * ratio, y + height - 6 * ratio);
  plot.font(12);
}
