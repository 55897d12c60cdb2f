// From the page's blocks to a recording: the index and names at once, events section by section.

import { takeBlock, takeJson } from "./blocks";
import { decodeChunk } from "./chunks";
import type { Index, Names, PageIndex, RowData, TrackData } from "./format";
import { Row } from "../model/row";
import type { Recording, Track } from "../model/recording";
import { Texts } from "../model/texts";

const NOTHING: RowData = [0];

interface Place {
  row: Row;
  offset: number;
  at: number; // of the chunk's first event in the row
}

/** Rows with space for their events, and the destination of each section's chunks. */
class Plan {
  readonly sections = new Map<number, Place[]>();

  row(data: RowData, hasBits: boolean, manyIds: boolean): Row {
    let n = 0;
    for (let i = 1; i < data.length; i++) n += (data[i] as number[])[2];
    const row = new Row(n, data[0], hasBits, manyIds);
    let at = 0;
    for (let i = 1; i < data.length; i++) {
      const [section, offset, count] = data[i] as number[];
      const places = this.sections.get(section);
      if (places) places.push({ row, offset, at });
      else this.sections.set(section, [{ row, offset, at }]);
      at += count;
    }
    return row;
  }

  track(data: TrackData, number: number, manySites: boolean): Track {
    const manyIds = manySites || data.kind === "progress";
    return {
      number,
      kind: data.kind,
      process: data.process,
      name: data.name ?? "",
      tid: data.tid ?? 0,
      device: data.device ?? 0,
      stream: data.stream ?? 0,
      tooDeep: data.too_deep ?? 0,
      labels: data.labels ?? [],
      rows: data.rows.map((row) => this.row(row, data.kind === "counters", manyIds)),
      marks: this.row(data.marks ?? NOTHING, false, manySites),
      losses: this.row(data.losses ?? NOTHING, false, true),
      texts: this.row(data.texts ?? NOTHING, false, manySites),
      links: this.row(data.links ?? NOTHING, false, manySites),
      flows: this.row(data.flows ?? NOTHING, false, false),
      unfinished: data.unfinished.map(([depth, start, last, site, lost]) => ({
        depth, start, last, site, isLost: lost === 1,
      })),
    };
  }
}

async function decodeSections(plan: Plan, onProgress: (share: number) => void): Promise<void> {
  let done = 0;
  // Two at a time: one is decompressed in another thread while this thread decodes the other.
  const numbers = [...plan.sections.keys()].sort((a, b) => a - b);
  const next = async (): Promise<void> => {
    for (let number = numbers.shift(); number !== undefined; number = numbers.shift()) {
      const section = await takeBlock(`events-${number}`);
      for (const place of plan.sections.get(number) ?? []) {
        decodeChunk(section, place.offset, place.row, place.at);
      }
      onProgress(++done / plan.sections.size);
    }
  };
  await Promise.all([next(), next()]);
}

export async function openIndex(): Promise<PageIndex> {
  const index = await takeJson<PageIndex>("index");
  if (index.format !== 1) throw new Error(`this page has data of format ${index.format}, which its script does not know`);
  return index;
}

/** Read the names; `events` is done once all rows are filled. */
export async function openRecording(index: Index, onProgress: (share: number) => void): Promise<Recording> {
  const names = await takeJson<Names>("names");
  const plan = new Plan();
  const tracks = index.tracks.map((data, i) =>
    plan.track(data, i, (names.sites[data.process] ?? []).length > 0xffff || index.processes[data.process].merged !== undefined),
  );
  const recording: Recording = {
    index, names: names.names, sites: names.sites, tracks, events: Promise.resolve(), texts: new Texts((process) => takeBlock(`texts-${process}`)),
  };
  recording.events = decodeSections(plan, onProgress);
  return recording;
}
