// State of one drawing of the timeline: positions of times and lines on the canvas, and colors.

import type { Line } from "../model/layout";

export const AXIS = 24; // height of the time axis
const GAP = 1; // between rows

export interface Ink {
  ink: string;
  faint: string;
  line: string;
  paper: string;
  band: string;
  accent: string;
  lost: string;
}

export class Plot {
  /** Sizes are device pixels; the origin is that of the plot, right of the labels. `scroll` is in CSS pixels. */
  constructor(
    readonly context: CanvasRenderingContext2D,
    readonly ratio: number,
    readonly width: number,
    readonly height: number,
    readonly from: number,
    readonly to: number,
    readonly scroll: number,
    readonly ink: Ink,
  ) {}

  get nsPerPixel(): number {
    return (this.to - this.from) / this.width;
  }

  x(time: number): number {
    return ((time - this.from) / (this.to - this.from)) * this.width;
  }

  /** Top and height of a line. */
  place(line: Line): [number, number] {
    const y = (AXIS + line.y - this.scroll) * this.ratio;
    return [Math.round(y), Math.max(1, Math.round((line.height - GAP) * this.ratio))];
  }

  font(size: number, weight = ""): void {
    this.context.font = `${weight}${weight === "" ? "" : " "}${size * this.ratio}px system-ui, sans-serif`;
  }
}
