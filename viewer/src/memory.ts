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
  const notes = el("p", { class: "faint" }, `Times are relative to ${units.moment(index.origin_unix_ns)}.`);
  if (index.lost > 0) append(notes, ` ${units.countOf(index.lost, "release")} of memory were not recorded, for example on threads without the profiler; such a block ends when its address is reused.`);
  append(timeline.element, notes);
  new Shell(index.title).build([
    { id: "memory", title: "Memory", element: timeline.element, onShow: () => timeline.redraw() },
    { id: "about", title: "About", element: about(index.version) },
  ]);
}

start(open);
