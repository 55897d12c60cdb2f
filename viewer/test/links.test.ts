import { describe, expect, it } from "vitest";
import { arrowsOf } from "../src/model/arrows";
import type { Recording, Track } from "../src/model/recording";
import type { Row } from "../src/model/row";
import { Texts } from "../src/model/texts";
import { rowOf } from "./rows";

const NONE = rowOf([]);

function track(kind: string, rows: Partial<Record<"links" | "flows" | "texts", Row>>, process = 0): Track {
  return { kind, process, links: NONE, flows: NONE, texts: NONE, ...rows } as unknown as Track;
}

describe("arrows", () => {
  // Launches 1 to 3 from the thread, two with activity on the stream; the other process also counts from 1.
  const thread = track("thread", { links: rowOf([[10, 1], [20, 2], [30, 3]]), flows: rowOf([[12, 7]]) });
  const stream = track("gpu", { links: rowOf([[100, 1], [200, 3]]) });
  const elsewhere = track("gpu", { links: rowOf([[100, 1]]), flows: rowOf([[50, 7], [40, 7]]) }, 1);
  const recording = { tracks: [thread, stream, elsewhere] } as unknown as Recording;
  const told = (of: Track, from: number, to: number): [number, number][] => arrowsOf(recording, of, from, to).map((arrow) => [arrow.from.time, arrow.to.time]);

  it("lead from launches to their work, in one process", () => {
    expect(told(thread, 15, 35)).toEqual([[30, 200]]);
    expect(told(stream, 100, 150)).toEqual([[10, 100]]);
    expect(told(stream, 101, 150)).toEqual([]);
  });

  it("follow flows through all processes, in order of time", () => {
    expect(told(thread, 12, 13)).toEqual([[12, 40], [40, 50]]);
  });
});

describe("texts", () => {
  const bytes = new TextEncoder().encode('{"bytes":4096}\0"a text"\0');
  const about = track("thread", { texts: rowOf([[5, 15, 2], [5, 0, 2], [5, 0, 3]]) });

  it("are those of the event's moment and site", async () => {
    let n = 0;
    const texts = new Texts(() => Promise.resolve((n++, bytes)));
    expect(await texts.of(about, 5, 2)).toEqual([["payload", "a text"], ["bytes", "4096"]]);
    expect(await texts.of(about, 5, 3)).toEqual([["bytes", "4096"]]);
    expect(await texts.of(about, 6, 3)).toEqual([]);
    expect(n).toBe(1); // decompressed once
  });
});
