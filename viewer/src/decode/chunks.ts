// Chunks of events in an unpacked section: a header of 16 bytes, then the columns gap, value and id as planes of bytes,
// the lowest bytes of all events first.

const HEADER = 16;

/** Arrays for the decoded events of a whole row; a chunk fills a part of them. */
export interface Columns {
  start: Float64Array; // nanoseconds since the page's origin
  value: Uint32Array; // a duration; WIDE: it is in `wide`
  id: Uint16Array | Uint32Array;
  wide: Map<number, number>; // values beyond 32 bits, by index
  bits: Float64Array | null; // values of counters, instead of `value`
}

/** Type of the values, byte 7 of the header. */
const DURATIONS = 0;

export const WIDE = 0xffffffff;

/** Numbers of `width` planes from `at` on, into `out`. */
export function readPlanes(bytes: Uint8Array, at: number, width: number, n: number, out: Float64Array): void {
  if (width === 0) {
    out.fill(0, 0, n);
    return;
  }
  for (let i = 0; i < n; i++) out[i] = bytes[at + i];
  let factor = 256;
  for (let plane = 1; plane < width; plane++, factor *= 256) {
    const from = at + plane * n;
    for (let i = 0; i < n; i++) out[i] += bytes[from + i] * factor;
  }
}

function readDoubles(bytes: Uint8Array, at: number, width: number, n: number, out: Float64Array): void {
  const raw = new Uint8Array(n * 8);
  for (let plane = 0; plane < width; plane++) {
    const from = at + plane * n;
    for (let i = 0; i < n; i++) raw[i * 8 + plane] = bytes[from + i];
  }
  out.set(new Float64Array(raw.buffer));
}

let scratch = new Float64Array(16384);

function scratchOf(n: number): Float64Array {
  if (scratch.length < n) scratch = new Float64Array(n);
  return scratch;
}

function putValues(values: Float64Array, n: number, out: Columns, at: number): void {
  const value = out.value;
  for (let i = 0; i < n; i++) {
    const v = values[i];
    if (v >= WIDE) {
      value[at + i] = WIDE;
      out.wide.set(at + i, v);
    } else {
      value[at + i] = v;
    }
  }
}

/** Convert gaps to begins: a gap counts from the end of the previous event. An odd gap is negative. */
function putStarts(gaps: Float64Array, first: number, n: number, out: Columns, at: number, arePoints: boolean): void {
  const { start, value, wide } = out;
  let end = first;
  for (let i = 0; i < n; i++) {
    const gap = gaps[i];
    const half = Math.floor(gap / 2);
    const begin = gap === half * 2 ? end + half : end - half - 1;
    start[at + i] = begin;
    if (arePoints) {
      end = begin;
      continue;
    }
    const v = value[at + i];
    end = begin + (v === WIDE ? (wide.get(at + i) ?? 0) : v);
  }
}

/** Decode the chunk at `offset` of a section into the elements from `at` on; returns its number of events. */
export function decodeChunk(section: Uint8Array, offset: number, out: Columns, at: number): number {
  const view = new DataView(section.buffer, section.byteOffset + offset, HEADER);
  const n = view.getUint32(0, true);
  const gapWidth = view.getUint8(4), valueWidth = view.getUint8(5), idWidth = view.getUint8(6);
  const first = Number(view.getBigUint64(8, true));
  const gapsAt = offset + HEADER, valuesAt = gapsAt + gapWidth * n, idsAt = valuesAt + valueWidth * n;
  const numbers = scratchOf(n);
  if (out.bits !== null) {
    readDoubles(section, valuesAt, valueWidth, n, out.bits.subarray(at, at + n));
  } else {
    readPlanes(section, valuesAt, valueWidth, n, numbers);
    putValues(numbers, n, out, at);
  }
  readPlanes(section, idsAt, idWidth, n, numbers);
  out.id.set(numbers.subarray(0, n), at);
  readPlanes(section, gapsAt, gapWidth, n, numbers);
  putStarts(numbers, first, n, out, at, view.getUint8(7) !== DURATIONS);
  return n;
}
