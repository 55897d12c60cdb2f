// Colours of the heat map. Against the median: blue is faster, orange and red are slower, and the median is near the
// background color, so that typical cells recede. Absolute: viridis, whose lightness is uniform for any color vision.

import { toPixel } from "./colors";
import type { Measure } from "./heat";

type Stop = [number, string];

const LIGHT: Stop[] = [[-1, "#2166ac"], [-0.5, "#7fb2d8"], [0, "#f1f3f5"], [0.25, "#fdc68a"], [0.6, "#e8622c"], [1, "#8f0d1f"]];
const DARK: Stop[] = [[-1, "#7cc4ff"], [-0.5, "#2f6c9e"], [0, "#24292e"], [0.25, "#7a431c"], [0.6, "#e8702f"], [1, "#ffd7a8"]];
const VIRIDIS: Stop[] = [[0, "#440154"], [0.25, "#3b528b"], [0.5, "#21918c"], [0.75, "#5ec962"], [1, "#fde725"]];

function mix(a: string, b: string, share: number): string {
  const channel = (css: string, k: number): number => parseInt(css.slice(1 + 2 * k, 3 + 2 * k), 16);
  const parts = [0, 1, 2].map((k) => Math.round(channel(a, k) + (channel(b, k) - channel(a, k)) * share));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

export function colorAt(stops: Stop[], x: number): string {
  let i = 1;
  while (i < stops.length - 1 && x > stops[i][0]) i++;
  const [from, a] = stops[i - 1], [to, b] = stops[i];
  return mix(a, b, Math.min(Math.max((x - from) / (to - from), 0), 1));
}

const STEPS = 256;

/** Colours of values from `floor` to `ceiling`, at even steps of their logarithms. */
export class HeatScale {
  readonly floor: number;
  readonly pixels: Uint32Array;

  constructor(readonly measure: Measure, readonly ceiling: number, dark: boolean) {
    this.floor = 1 / ceiling;
    const stops = measure === "absolute" ? VIRIDIS : dark ? DARK : LIGHT;
    const low = measure === "absolute" ? 0 : -1;
    this.pixels = Uint32Array.from({ length: STEPS }, (_, i) => toPixel(colorAt(stops, low + ((1 - low) * i) / (STEPS - 1))));
  }

  step(value: number): number {
    const share = (Math.log(value) + Math.log(this.ceiling)) / (2 * Math.log(this.ceiling));
    return Math.min(Math.max(Math.round(share * (STEPS - 1)), 0), STEPS - 1);
  }

  /** A pixel of an ImageData. */
  pixel(value: number): number {
    return this.pixels[this.step(value)];
  }
}
