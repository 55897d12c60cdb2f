// The page: opens its data, then shows one view at a time.

import type { ComparisonIndex, Index } from "./decode/format";
import { openIndex, openRecording } from "./decode/recording";
import { Colors } from "./model/colors";
import type { Recording } from "./model/recording";
import { seriesTracks } from "./model/series";
import { append, el } from "./ui/dom";
import { Shell, type View } from "./ui/shell";
import { start } from "./ui/start";
import { about } from "./views/about";
import { BreakdownView } from "./views/breakdown";
import { GpusView } from "./views/gpus";
import { CompareView } from "./views/compare";
import { FlameView } from "./views/flame";
import { Iterations } from "./views/iterations";
import { MemoryView } from "./views/memory_report";
import { overview } from "./views/overview";
import { Tables } from "./views/tables";
import { Timeline } from "./views/timeline";

function reportViews(recording: Recording, open: (id: string) => void): View[] {
  const { index } = recording;
  const colors = new Colors(recording);
  const timeline = new Timeline(recording, colors);
  const find = (name: string): void => {
    open("timeline");
    timeline.searchFor(name);
  };
  const tables = new Tables(index.tables, find);
  const flame = new FlameView(recording, colors, find, () => {
    open("tables");
    tables.choose("tree");
  });
  const iterations = el("div");
  const hasSeries = seriesTracks(recording).length > 0;
  // These two draw events, which come behind the rest.
  void recording.events.then(() => {
    timeline.start();
    if (hasSeries) append(iterations, new Iterations(recording).element);
  });
  return [
    { id: "overview", title: "Overview", element: overview(recording, colors, find) },
    { id: "timeline", title: "Timeline", element: timeline.element, onShow: () => timeline.redraw() },
    ...(hasSeries ? [{ id: "iterations", title: "Iterations", element: iterations }] : []),
    ...(index.breakdown ? [{ id: "breakdown", title: "Breakdown", element: new BreakdownView(index.breakdown).element }] : []),
    ...(index.gpu ? [{ id: "gpus", title: "GPUs", element: new GpusView(index.gpu, find).element }] : []),
    ...(index.memory ? [{ id: "memory", title: "Memory", element: new MemoryView(index.memory).element }] : []),
    { id: "flame", title: "Flame graph", element: flame.element, onShow: () => flame.redraw() },
    { id: "tables", title: "Tables", element: tables.element },
    { id: "about", title: "About", element: about(index.version) },
  ];
}

function compareViews(index: ComparisonIndex): View[] {
  return [
    { id: "comparison", title: "Comparison", element: new CompareView(index).element },
    { id: "tables", title: "Tables", element: new Tables(index.tables, null).element },
    { id: "about", title: "About", element: about(index.version) },
  ];
}

async function open(): Promise<void> {
  const index = await openIndex();
  const shell = new Shell(index.title);
  if (index.kind === "compare") {
    shell.build(compareViews(index as ComparisonIndex));
    return;
  }
  const recording = await openRecording(index as Index, (share) => {
    document.body.dataset["loaded"] = share.toFixed(3);
  });
  shell.build(reportViews(recording, (id) => shell.open(id)));
  await recording.events;
}

start(open);
