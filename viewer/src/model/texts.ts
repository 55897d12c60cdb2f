// Further data of events besides names and times: JSON values, decompressed on first use.

import type { Track } from "./recording";

export type Known = [string, string][];

/** A JSON value as rows: an object's fields, or one value. Arguments are a string that contains an object. */
export function asRows(value: unknown): Known {
  if (typeof value === "string") {
    try {
      const inner: unknown = JSON.parse(value);
      if (typeof inner === "object" && inner !== null) return asRows(inner);
    } catch {
      // not JSON: a plain string
    }
    return [["payload", value]];
  }
  if (typeof value !== "object" || value === null) return [["payload", String(value)]];
  return Object.entries(value).map(([key, field]) => [key, typeof field === "string" ? field : JSON.stringify(field)]);
}

export class Texts {
  private readonly blocks = new Map<number, Promise<Uint8Array>>();

  /** `take` returns the strings of a process. */
  constructor(private readonly take: (process: number) => Promise<Uint8Array>) {}

  /** All further data of the event that begins at `start` at this site. */
  async of(track: Track, start: number, site: number): Promise<Known> {
    const { texts } = track, places: number[] = [];
    for (let i = 0; i < texts.n; i++) if (texts.start[i] === start && texts.id[i] === site) places.push(texts.duration(i));
    if (places.length === 0) return [];
    let block = this.blocks.get(track.process);
    if (block === undefined) {
      block = this.take(track.process);
      this.blocks.set(track.process, block);
    }
    const bytes = await block;
    return places.flatMap((at) => asRows(JSON.parse(new TextDecoder().decode(bytes.subarray(at, bytes.indexOf(0, at))))));
  }
}
