// The window of time that a timeline shows.

export class Viewport {
  from = 0;
  to = 1;

  /** Shows up to `length` nanoseconds on `width` pixels. */
  constructor(readonly length: number, public width = 1) {
    this.fit();
  }

  get nsPerPixel(): number {
    return (this.to - this.from) / this.width;
  }

  x(time: number): number {
    return (time - this.from) / this.nsPerPixel;
  }

  time(x: number): number {
    return this.from + x * this.nsPerPixel;
  }

  /** Show everything, with a small margin on both sides. */
  fit(): void {
    const margin = Math.max(this.length * 0.01, 1);
    this.from = -margin;
    this.to = this.length + margin;
  }

  show(from: number, to: number): void {
    const least = Math.max(this.width / 100, 10); // at most a hundred pixels per nanosecond
    const most = Math.max(this.length * 1.02, least) + 2;
    const middle = (from + to) / 2;
    const span = Math.min(Math.max(to - from, least), most);
    this.from = middle - span / 2;
    this.to = middle + span / 2;
    this.clamp();
  }

  /** Zoom by a factor, above 1 is closer, with `x` fixed. */
  zoom(factor: number, x: number): void {
    const at = this.time(x), share = x / this.width;
    const span = (this.to - this.from) / factor;
    this.show(at - span * share, at + span * (1 - share));
  }

  pan(pixels: number): void {
    const by = pixels * this.nsPerPixel;
    this.from += by;
    this.to += by;
    this.clamp();
  }

  /** Scroll a span into view, and zoom if it does not fit or is too small. */
  reveal(from: number, to: number): void {
    const span = this.to - this.from;
    const isSmall = to - from < span / this.width; // less than a pixel: zoom in
    if (isSmall && to - from > 0) this.show(from - 10 * (to - from), to + 10 * (to - from));
    else if (to - from > span * 0.9) this.show(from - (to - from) * 0.1, to + (to - from) * 0.1);
    else if (from < this.from || to > this.to) this.show((from + to - span) / 2, (from + to + span) / 2);
  }

  /** Keep the window within the data. */
  private clamp(): void {
    const span = this.to - this.from, margin = span * 0.5;
    if (this.from < -margin) this.from = -margin;
    if (this.from > this.length - margin) this.from = Math.max(this.length - margin, -margin);
    this.to = this.from + span;
  }
}

const STEPS = [1, 2, 5];

/** Round times for labels of an axis, at least `gap` pixels apart. */
export function ticks(view: Viewport, gap: number): number[] {
  const least = view.nsPerPixel * gap;
  let size = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
  let step = size;
  for (let i = 0; step < least; i++) {
    if (i === STEPS.length) {
      i = 0;
      size *= 10;
    }
    step = STEPS[i] * size;
  }
  const result: number[] = [];
  for (let t = Math.ceil(view.from / step) * step; t < view.to; t += step) result.push(Math.round(t));
  return result;
}
