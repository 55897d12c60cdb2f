// Details of the selected event, and the summary of a span of time, below the timeline.

import type { Line } from "../model/layout";
import { processLabel, trackLabel } from "../model/layout";
import { type Recording, nameOf } from "../model/recording";
import { summarize } from "../model/selection";
import * as units from "../model/units";
import { append, clear, el } from "../ui/dom";
import { TableView } from "./table_view";
import type { Picked } from "./timeline_painter";
import { pickedSpan } from "./timeline_painter";

const PROGRESS = ["iteration", "epoch", "phase"];

export function pickedName(recording: Recording, picked: Picked): string {
  const { line, i } = picked;
  if (line.track === null) return "";
  if (i < 0) return nameOf(recording, line.process, line.track.unfinished[-1 - i].site)[0];
  const id = line.row?.id[i] ?? 0;
  if (line.track.kind === "progress" && line.depth < 2) return `${PROGRESS[line.depth]} ${id}`;
  return nameOf(recording, line.process, id)[0];
}

function place(recording: Recording, line: Line): [string, string][] {
  const rows: [string, string][] = [["process", processLabel(recording, line.process)]];
  const label = line.track ? trackLabel(line.track, recording) : "";
  if (label !== "") rows.push([line.track?.kind === "gpu" ? "stream" : "thread", label]);
  return rows;
}

function describe(recording: Recording, picked: Picked): [string, string][] {
  const { line, i } = picked;
  const [start, end] = pickedSpan(picked);
  const rows: [string, string][] = [["begins at", `${units.duration(start)} (${units.exactNs(start)})`]];
  if (i < 0) {
    const open = line.track?.unfinished[-1 - i];
    rows.push(["ends", open?.isLost ? "not known: its end is among the lost events" : "never: it was open at the end"]);
    rows.push(["open for at least", units.duration(end - start)]);
  } else if (line.kind === "counter" && line.row?.bits) {
    rows.push(["value", String(line.row.bits[i])]);
  } else if (line.kind !== "marks") {
    rows.push(["takes", `${units.duration(end - start)} (${units.exactNs(end - start)})`]);
  }
  rows.push(...place(recording, line));
  if (line.kind === "row" && line.track?.kind === "thread") rows.push(["depth", String(line.depth)]);
  if (line.track?.kind !== "progress") {
    const site = i < 0 ? (line.track?.unfinished[-1 - i].site ?? 0) : (line.row?.id[i] ?? 0);
    const [, category, file, number] = nameOf(recording, line.process, site);
    if (category !== "") rows.push(["category", category]);
    if (file !== "") rows.push(["source", number > 0 ? `${file}:${number}` : file]);
  }
  return rows;
}

export class Details {
  readonly element = el("section", { class: "details", "aria-label": "Details" });

  constructor(private readonly recording: Recording) {
    this.showNothing();
  }

  showNothing(): void {
    clear(this.element);
    append(
      this.element,
      el("p", { class: "hint" }, "Click a range for its details. Drag to move, Ctrl and wheel or pinch to zoom; drag along the axis, or with Shift, to sum up a span of time."),
    );
  }

  showEvent(picked: Picked): void {
    clear(this.element);
    const list = el("dl");
    for (const [key, value] of describe(this.recording, picked)) append(list, el("dt", {}, key), el("dd", {}, value));
    append(this.element, el("h3", {}, pickedName(this.recording, picked)), list);
    void this.addKnown(picked, list);
  }

  /** Further data of the event is loaded asynchronously. */
  private async addKnown(picked: Picked, list: HTMLElement): Promise<void> {
    const { line, i } = picked;
    if (line.track === null) return;
    const open = i < 0 ? line.track.unfinished[-1 - i] : null;
    const start = open ? open.start : (line.row?.start[i] ?? 0), site = open ? open.site : (line.row?.id[i] ?? 0);
    for (const [key, value] of await this.recording.texts.of(line.track, start, site)) {
      append(list, el("dt", {}, key), el("dd", {}, value));
    }
  }

  /** Show a table of the ranges in this time; returns a summary sentence. */
  showRange(from: number, to: number): string {
    clear(this.element);
    const table = summarize(this.recording, from, to);
    const title = `${units.duration(to - from)} from ${units.duration(from)} on`;
    append(
      this.element,
      el("h3", {}, title),
      new TableView(table, { caption: "Ranges in the selected time" }).element,
    );
    const most = table.rows > 0 ? `; most of it ${String(table.cells[0][0])}, ${units.duration(Number(table.cells[2][0]))}` : "";
    return `${title}: ${units.countOf(table.rows, "name")}${most}`;
  }
}
