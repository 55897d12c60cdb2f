// Colors of changes, as in `marey export --to flamegraph --baseline`: seven, with bounds at round times derived from
// the largest change.

const COLORS = ["#5a9bd4", "#9ac6e6", "#d3e6f4", "#e8e8e8", "#fbdccb", "#f5ab89", "#e3705a"];
/** On a dark page, unchanged boxes are dark. */
const DARK_COLORS = ["#5a9bd4", "#44749d", "#3a5670", "#454c53", "#6a4d43", "#a65f49", "#e3705a"];
const SAME = 3;

/** The largest of 1, 2, 5, 10, 20, ... not above it; 0 for 0. */
function roundDown(ns: number): number {
  if (ns < 1) return 0;
  const power = 10 ** Math.floor(Math.log10(ns) + 1e-12);
  return (ns >= 5 * power ? 5 : ns >= 2 * power ? 2 : 1) * power;
}

export class ChangeColors {
  /** The lower bounds of the three colors of each sign. */
  readonly steps: number[];
  private readonly colors: string[];

  constructor(changes: Float64Array, isDark: boolean) {
    this.colors = isDark ? DARK_COLORS : COLORS;
    const most = changes.reduce((largest, change) => Math.max(largest, Math.abs(change)), 0);
    this.steps = [most / 100, most / 10, most / 2].map(roundDown);
  }

  of(change: number): string {
    const size = Math.abs(change), n = size === 0 ? 0 : this.steps.filter((step) => size >= step).length;
    return this.colors[change > 0 ? SAME + n : SAME - n];
  }

  /** Colors and their lower bounds, from much less to much more. */
  legend(): [css: string, from: number][] {
    const [a, b, c] = this.steps;
    return [-c, -b, -a, 0, a, b, c].map((from, i) => [this.colors[i], from]);
  }
}
