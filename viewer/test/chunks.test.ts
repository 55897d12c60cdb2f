import { describe, expect, it } from "vitest";
import { fromBase64 } from "../src/decode/blocks";
import { decodeChunk } from "../src/decode/chunks";
import { Row } from "../src/model/row";

/** A chunk, see docs/formats/page.md. */
function chunk(events: [number, number, number][], first = events[0][0]): Uint8Array {
  const n = events.length, widths = [8, 8, 4];
  const bytes = new Uint8Array(16 + n * 20);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, n, true);
  widths.forEach((width, i) => view.setUint8(4 + i, width));
  view.setBigUint64(8, BigInt(first), true);
  let end = first;
  events.forEach(([start, value, id], i) => {
    const gap = BigInt(start - end);
    const columns = [gap >= 0n ? gap * 2n : -gap * 2n - 1n, BigInt(value), BigInt(id)];
    let at = 16;
    columns.forEach((column, c) => {
      for (let plane = 0; plane < widths[c]; plane++) bytes[at + plane * n + i] = Number((column >> BigInt(8 * plane)) & 255n);
      at += widths[c] * n;
    });
    end = start + value;
  });
  return bytes;
}

describe("chunks", () => {
  const events: [number, number, number][] = [
    [1000, 50, 1],
    [1050, 0, 2],
    [1040, 7, 3], // overlaps the previous one
    [9_000_000_000_000, 5_000_000_000, 70000], // after hours, and longer than 32 bits of nanoseconds
    [9_005_000_000_001, 4_294_967_295, 4],
  ];

  it("come back as they were put", () => {
    const row = new Row(events.length, 0, false, true);
    expect(decodeChunk(chunk(events), 0, row, 0)).toBe(events.length);
    expect(events.map((_, i) => [row.start[i], row.duration(i), row.id[i]])).toEqual(events);
  });

  it("fill their part of a row, wherever they lie in a section", () => {
    const one = chunk(events.slice(0, 2)), other = chunk(events.slice(2));
    const section = new Uint8Array(3 + one.length + other.length);
    section.set(one, 3);
    section.set(other, 3 + one.length);
    const row = new Row(events.length, 0, false, true);
    decodeChunk(section, 3 + one.length, row, 2);
    decodeChunk(section, 3, row, 0);
    expect(events.map((_, i) => [row.start[i], row.duration(i)])).toEqual(events.map(([start, value]) => [start, value]));
  });

  it("hold doubles for counters", () => {
    const values = [0.25, -1e300, NaN, 7];
    const bytes = new Uint8Array(16 + values.length * 9);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, values.length, true);
    view.setUint8(4, 1);
    view.setUint8(5, 8);
    view.setUint8(7, 1);
    values.forEach((value, i) => {
      bytes[16 + i] = i === 0 ? 0 : 20; // ten nanoseconds apart
      const raw = new Uint8Array(new Float64Array([value]).buffer);
      raw.forEach((byte, plane) => (bytes[16 + values.length * (1 + plane) + i] = byte));
    });
    const row = new Row(values.length, 0, true, false);
    decodeChunk(bytes, 0, row, 0);
    expect(Array.from(row.bits as Float64Array)).toEqual(values);
    expect(Array.from(row.start)).toEqual([0, 10, 20, 30]);
  });
});

describe("blocks", () => {
  it("are base64", () => {
    const bytes = Uint8Array.from({ length: 5000 }, (_, i) => (i * i) & 255);
    expect(fromBase64(btoa(String.fromCharCode(...bytes)))).toEqual(bytes);
    expect(fromBase64("")).toEqual(new Uint8Array(0));
  });
});
