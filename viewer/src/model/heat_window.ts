// The visible part of the map along one axis: some of `n` cells on a number of pixels.

export class Span {
  from = 0;
  to: number;

  constructor(readonly n: number, public pixels = 1) {
    this.to = n;
  }

  get perPixel(): number {
    return (this.to - this.from) / this.pixels;
  }

  fit(): void {
    this.from = 0;
    this.to = this.n;
  }

  /** The cell at a pixel, -1 outside. */
  at(pixel: number): number {
    const cell = Math.floor(this.from + pixel * this.perPixel);
    return pixel < 0 || pixel >= this.pixels || cell < 0 || cell >= this.n ? -1 : cell;
  }

  /** The first pixel of a cell. */
  place(cell: number): number {
    return (cell - this.from) / this.perPixel;
  }

  /** Zoom by a factor, above 1 is closer, with `pixel` fixed. Shows at least a few cells, and at most all. */
  zoom(factor: number, pixel: number): void {
    const at = this.from + pixel * this.perPixel;
    const size = Math.min(this.n, Math.max((this.to - this.from) / factor, Math.min(this.n, 4)));
    this.show(at - (pixel / this.pixels) * size, size);
  }

  pan(pixels: number): void {
    this.show(this.from + pixels * this.perPixel, this.to - this.from);
  }

  /** Scroll a cell into view. */
  reveal(cell: number): void {
    const size = this.to - this.from;
    if (cell < this.from) this.show(cell, size);
    else if (cell + 1 > this.to) this.show(cell + 1 - size, size);
  }

  private show(from: number, size: number): void {
    this.from = Math.max(0, Math.min(from, this.n - size));
    this.to = this.from + size;
  }
}

/** Cells for labels: round numbers, at least `gap` pixels apart. */
export function cellTicks(span: Span, gap: number): number[] {
  const least = Math.max(span.perPixel * gap, 1);
  let step = Math.pow(10, Math.floor(Math.log10(least)));
  for (const factor of [1, 2, 5, 10]) {
    if (step * factor < least) continue;
    step *= factor;
    break;
  }
  const result: number[] = [];
  for (let cell = Math.ceil(span.from / step) * step; cell < span.to; cell += step) result.push(cell);
  return result;
}
