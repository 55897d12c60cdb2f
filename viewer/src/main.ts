// The page: opens its data, then shows one view at a time.

import { type Profile, openProfiles } from "./decode/calls";
import type { CallsIndex, ComparisonIndex, Index, TableData } from "./decode/format";
import { type HeatCells, openHeat } from "./decode/heat";
import { openIndex, openRecording } from "./decode/recording";
import { joinProfiles } from "./model/calls";
import { Colors } from "./model/colors";
import { HeatMap } from "./model/heat";
import { type Recording, tableOf } from "./model/recording";
import { seriesTracks } from "./model/series";
import { append, el } from "./ui/dom";
import { Shell, type View } from "./ui/shell";
import { start } from "./ui/start";
import { about } from "./views/about";
import { BreakdownView } from "./views/breakdown";
import { CallsView } from "./views/calls";
import { GpusView } from "./views/gpus";
import { CompareView } from "./views/compare";
import { FlameView } from "./views/flame";
import { HeatView } from "./views/heat";
import { Iterations } from "./views/iterations";
import { MemoryView } from "./views/memory_report";
import { overview } from "./views/overview";
import { SamplesView } from "./views/samples";
import { Tables } from "./views/tables";
import { Timeline } from "./views/timeline";

function callsView(profiles: Profile[]): View {
  const view = new CallsView(joinProfiles(profiles));
  const title = profiles[0].is_samples === true ? "Samples" : "Calls";
  return { id: title.toLowerCase(), title, element: view.element, onShow: () => view.redraw() };
}

function samplesView(profiles: Profile[], tables: TableData[]): View {
  const view = new SamplesView(profiles, tables);
  return { id: "samples", title: "Samples", element: view.element, onShow: () => view.redraw() };
}

/** Ranks and iterations, if there are several of both. */
function heatView(recording: Recording, cells: HeatCells, timeline: Timeline, open: (id: string) => void, onTable: () => void): View[] {
  const { heat, processes } = recording.index;
  if (heat === undefined) return [];
  const view = new HeatView(new HeatMap(heat, cells, processes, tableOf(recording, "rank_times")), {
    isOnTimeline: (process) => processes[process]?.left_out !== true,
    onOpen: (process, iteration) => {
      open("timeline");
      timeline.showIteration(process, iteration);
    },
    onTable,
  });
  return [{ id: "ranks", title: "Ranks", element: view.element, onShow: () => view.redraw() }];
}

interface Opened {
  profiles: Profile[];
  sampled: Profile[];
  heat: HeatCells | null;
}

function reportViews(recording: Recording, { profiles, sampled, heat }: Opened, open: (id: string) => void): View[] {
  const { index } = recording;
  const counted = [...(profiles.length > 0 ? [callsView(profiles)] : []), ...(sampled.length > 0 ? [samplesView(sampled, index.samples ?? [])] : [])];
  const last = { id: "about", title: "About", element: about(index.version) };
  // Without ranges (only samples or a call profile) there are no events for the other views.
  if (index.cost.events === 0 && !index.damaged && counted.length > 0) return [...counted, last];
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
  const showRanks = (): void => {
    open("tables");
    tables.choose("rank_times");
  };
  const iterations = el("div");
  const hasSeries = seriesTracks(recording).length > 0;
  // These two draw events, which are decoded last.
  void recording.events.then(() => {
    timeline.start();
    if (hasSeries) append(iterations, new Iterations(recording).element);
  });
  return [
    { id: "overview", title: "Overview", element: overview(recording, colors, find) },
    { id: "timeline", title: "Timeline", element: timeline.element, onShow: () => timeline.redraw() },
    ...(hasSeries ? [{ id: "iterations", title: "Iterations", element: iterations }] : []),
    ...(heat === null ? [] : heatView(recording, heat, timeline, open, showRanks)),
    ...(index.breakdown ? [{ id: "breakdown", title: "Breakdown", element: new BreakdownView(index.breakdown).element }] : []),
    ...(index.gpu ? [{ id: "gpus", title: "GPUs", element: new GpusView(index.gpu, find).element }] : []),
    ...(index.memory ? [{ id: "memory", title: "Memory", element: new MemoryView(index.memory).element }] : []),
    ...counted,
    { id: "flame", title: "Flame graph", element: flame.element, onShow: () => flame.redraw() },
    { id: "tables", title: "Tables", element: tables.element },
    last,
  ];
}

function compareViews(index: ComparisonIndex): View[] {
  return [
    { id: "comparison", title: "Comparison", element: new CompareView(index).element },
    { id: "tables", title: "Tables", element: new Tables(index.tables, null).element },
    { id: "about", title: "About", element: about(index.version) },
  ];
}

function callsViews(index: CallsIndex, profiles: Profile[]): View[] {
  return [
    callsView(profiles),
    ...(index.tables.length > 0 ? [{ id: "tables", title: "Tables", element: new Tables(index.tables, null, "calls").element }] : []),
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
  if (index.kind === "calls") {
    const { calls } = index as CallsIndex;
    shell.build(callsViews(index as CallsIndex, await openProfiles(calls)));
    return;
  }
  const profiles = await openProfiles((index as Index).calls ?? []);
  const sampled = await openProfiles((index as Index).sample_calls ?? [], "samples");
  const recording = await openRecording(index as Index, (share) => {
    document.body.dataset["loaded"] = share.toFixed(3);
  });
  const data = (index as Index).heat, heat = data === undefined ? null : await openHeat(data);
  shell.build(reportViews(recording, { profiles, sampled, heat }, (id) => shell.open(id)));
  await recording.events;
}

start(open);
