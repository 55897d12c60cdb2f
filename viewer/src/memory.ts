// The page of a memory timeline.

import { takeJson } from "./decode/blocks";
import type { MemoryIndex } from "./model/memory";
import * as units from "./model/units";
import { append, el } from "./ui/dom";
import { Shell } from "./ui/shell";
import { start } from "./ui/start";
import { about } from "./views/about";
import { MemoryTimeline } from "./views/memory_timeline";

async function open(): Promise<void> {
  const index = await takeJson<MemoryIndex>("index");
  if (index.format !== 1) throw new Error(`this page has data of format ${index.format}, which its script does not know`);
  const timeline = new MemoryTimeline(index);
  const notes = el("p", { class: "faint" }, `Times are from ${units.moment(index.origin_unix_ns)} on.`);
  if (index.lost > 0) append(notes, ` ${units.countOf(index.lost, "release")} of memory were not recorded, as of threads that the profiler does not watch; such a block ends where its place is used again.`);
  append(timeline.element, notes);
  new Shell(index.title).build([
    { id: "memory", title: "Memory", element: timeline.element, onShow: () => timeline.redraw() },
    { id: "about", title: "About", element: about(index.version) },
  ]);
}

start(open);
