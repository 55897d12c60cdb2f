// A row: events in order of their begin, as columns. In most rows, events do not overlap.

import { type Columns, WIDE } from "../decode/chunks";

export class Row implements Columns {
  readonly start: Float64Array;
  readonly value: Uint32Array;
  readonly id: Uint16Array | Uint32Array;
  readonly wide = new Map<number, number>();
  readonly bits: Float64Array | null;

  /** `about`: common to the whole row, such as a counter's site. */
  constructor(readonly n: number, readonly about: number, hasBits: boolean, manyIds: boolean) {
    this.start = new Float64Array(n);
    this.value = new Uint32Array(hasBits ? 0 : n);
    this.id = manyIds ? new Uint32Array(n) : new Uint16Array(n);
    this.bits = hasBits ? new Float64Array(n) : null;
  }

  duration(i: number): number {
    const v = this.value[i];
    return v === WIDE ? (this.wide.get(i) ?? v) : v;
  }

  end(i: number): number {
    return this.start[i] + this.duration(i);
  }

  /** The first event that begins at `time` or later; n when there is none. */
  lowerBound(time: number): number {
    let low = 0, high = this.n;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first event that may reach into times from `time` on. Ends are in order, as begins are. */
  firstReaching(time: number): number {
    const i = this.lowerBound(time);
    return i > 0 && this.end(i - 1) > time ? i - 1 : i;
  }
}
