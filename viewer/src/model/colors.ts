// Colours of names. Paul Tol's "light" scheme: distinguishable with any colour vision, and black text reads well on
// each of them, on white and on dark pages.

import type { Recording } from "./recording";
import { nameOf, tableOf } from "./recording";
import { columnOf } from "./tables";

export const PALETTE = ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#44bb99", "#99ddff", "#bbcc33", "#aaaa00"];
/** Paul Tol's "bright" scheme and two more, for lines, which are thin and need more contrast with light and dark. */
export const LINE_COLORS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#888888"];
export const GREY = "#bbbbbb";

function hash(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}

/** Opaque "#rrggbb" of a call site's color, 0xAARRGGBB. */
function ownColor(argb: number): string {
  return `#${(argb & 0xffffff).toString(16).padStart(6, "0")}`;
}

/** The names with the most time come first and get successive colors, so that these differ. */
export class NameColors {
  private readonly ranks = new Map<string, number>();

  constructor(heaviest: string[]) {
    for (let i = 0; i < Math.min(heaviest.length, PALETTE.length); i++) this.ranks.set(heaviest[i], i);
  }

  ofName(name: string): string {
    return PALETTE[(this.ranks.get(name) ?? hash(name)) % PALETTE.length];
  }
}

function heaviestNames(recording: Recording): string[] {
  const ranges = tableOf(recording, "ranges");
  return ranges === undefined ? [] : columnOf(ranges, "name").slice(0, PALETTE.length).map(String);
}

export class Colors extends NameColors {
  constructor(private readonly recording: Recording) {
    super(heaviestNames(recording));
  }

  /** By site, for each process; as 32-bit pixels of an image on this machine, and as CSS. */
  ofSites(process: number): { css: string[]; pixel: Uint32Array } {
    const sites = this.recording.sites[process] ?? [];
    const css = sites.map((_, site) => {
      const [name, , , , own] = nameOf(this.recording, process, site);
      return own !== 0 ? ownColor(own) : this.ofName(name);
    });
    return { css, pixel: Uint32Array.from(css, toPixel) };
  }
}

/** "#rrggbb" as a little-endian pixel of an ImageData. */
export function toPixel(css: string): number {
  const rgb = parseInt(css.slice(1), 16);
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

/** Black or white, whichever is more legible on this color. */
export function textOn(css: string): string {
  const rgb = parseInt(css.slice(1), 16);
  const light = 0.299 * (rgb >> 16) + 0.587 * ((rgb >> 8) & 255) + 0.114 * (rgb & 255);
  return light > 120 ? "#000000" : "#ffffff";
}
