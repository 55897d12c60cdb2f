// The first view: program, machine, duration, largest self times, losses and overhead.

import type { ProcessInfo } from "../decode/format";
import { type Bar, COMMUNICATION, IDLE, barsOf, sumOf, windowsOf } from "../model/breakdown";
import type { Colors } from "../model/colors";
import { type Recording, tableOf } from "../model/recording";
import { cellOf, columnOf } from "../model/tables";
import * as units from "../model/units";
import { append, el } from "../ui/dom";
import { partsList, stackedBar } from "./breakdown";

const MOST = 12; // names shown by their self time
const FOREIGN = "trace"; // the clock of imported traces

interface Figure {
  label: string;
  value: string;
  about: string;
}

function card(title: string, ...children: (Node | string | null)[]): HTMLElement {
  return el("section", { class: "card" }, el("h2", {}, title), ...children);
}

function facts(rows: [string, string][]): HTMLElement {
  const list = el("dl");
  for (const [key, value] of rows) if (value !== "") append(list, el("dt", {}, key), el("dd", {}, value));
  return list;
}

/** Distinct values: "a, b and 3 more". */
function distinct(processes: ProcessInfo[], of: (p: ProcessInfo) => string): string {
  const values = [...new Set(processes.map(of))].filter((value) => value !== "");
  return values.length <= 3 ? values.join(", ") : `${values.slice(0, 2).join(", ")} and ${values.length - 2} more`;
}

/** Processes of the program, not those that only measured. */
function ofProgram(recording: Recording): ProcessInfo[] {
  return recording.index.processes.filter((p) => p.role === "");
}

/** "2 processes, 4 threads": processes of the program that have events. */
function whoRan(recording: Recording): string {
  const n = ofProgram(recording).filter((p) => p.events > 0).length;
  return `${units.countOf(n, "process")}, ${units.countOf(recording.index.threads, "thread")}`;
}

const ENDS: Record<string, string> = {
  unclosed: "ended by a kill or _exit",
  running: "still running",
  "write failed": "not recorded to the end because a write failed",
};

function endings(processes: ProcessInfo[]): string {
  const told = Object.keys(ENDS).map((end) => {
    const n = processes.filter((p) => p.end === end).length;
    return n === 0 ? "" : processes.length === 1 ? ENDS[end] : `${n} ${ENDS[end]}`;
  });
  return told.filter((text) => text !== "").join(", ");
}

function whatRan(recording: Recording): HTMLElement {
  const { index } = recording, processes = ofProgram(recording);
  return card(
    "What ran",
    facts([
      ["command", distinct(processes, (p) => p.command)],
      ["started", processes.length > 0 ? units.moment(index.origin_unix_ns) : ""],
      ["processes", whoRan(recording)],
      ["events", units.count(index.cost.events)],
      ["ended", endings(processes)],
    ]),
  );
}

function where(recording: Recording): HTMLElement {
  const processes = ofProgram(recording);
  return card(
    "Where",
    facts([
      ["machine", distinct(processes, (p) => p.host)],
      ["processor", distinct(processes, (p) => (p.cpus === "" ? p.cpu : `${p.cpu}, ${p.cpus} usable`))],
      ["GPU", distinct(processes, (p) => p.gpu)],
      ["kernel", distinct(processes, (p) => p.kernel)],
      ["versions", distinct(processes, (p) => p.versions)],
      ["recorded by", distinct(processes, (p) => (p.clock === FOREIGN ? "another tool" : p.version === "" ? "" : `marey ${p.version}`))],
      ["clock", distinct(processes, (p) => (p.clock === FOREIGN ? "" : p.clock))],
    ]),
  );
}

const OF_STEADY =
  "Time in a range without the ranges inside it, and its share of the steady part: from the end of the warm-up, or of the first step, to the end of the last step, in all processes with steps. Time outside ranges is not listed.";
const OF_RUN = "Time in a range without the ranges inside it, and its share of the wall time of all processes. Time outside ranges is not listed.";

/** Bars of self time, as shares of the steady part if there are steps, else of the run. Time outside ranges has no bar.
 * */
function dominates(recording: Recording, colors: Colors, onName: (name: string) => void): HTMLElement {
  const title = "Ranges by self time";
  const steady = tableOf(recording, "steady"), isSteady = steady !== undefined && steady.rows > 0;
  const table = isSteady ? steady : tableOf(recording, "ranges");
  if (table === undefined || table.rows === 0) return card(title, el("p", {}, "No ranges were recorded."));
  const names = columnOf(table, "name"), self = columnOf(table, "self_ns"), calls = columnOf(table, "count"), shares = columnOf(table, "share");
  const order = names.map((_, i) => i).sort((a, b) => Number(self[b]) - Number(self[a])).slice(0, MOST);
  const wall = recording.index.cost.program_ns;
  const list = el("ol", { class: isSteady ? "bars" : "bars counted" });
  for (const i of order) {
    const name = String(names[i]), part = isSteady ? Number(shares[i]) : wall > 0 ? Number(self[i]) / wall : 0;
    const bar = el("span", { class: "fill", "aria-hidden": "true" });
    bar.style.width = `${Math.min(100 * part, 100).toFixed(2)}%`; // parallel threads may exceed 100 %
    bar.style.background = colors.ofName(name);
    append(
      list,
      el(
        "li",
        {},
        el("button", { type: "button", class: "link", title: `${name}: find it on the timeline`, onclick: () => onName(name) }, name),
        el("span", { class: "track", "aria-hidden": "true" }, bar),
        el("span", { class: "number" }, units.duration(Number(self[i]))),
        el("span", { class: "number" }, units.share(part)),
        isSteady ? null : el("span", { class: "number faint count" }, `${units.count(Number(calls[i]))}\u00d7`),
      ),
    );
  }
  const more = table.rows - order.length;
  return card(
    `${title}, ${isSteady ? "of steady" : "of run"}`,
    el("p", { class: "faint" }, isSteady ? OF_STEADY : OF_RUN),
    list,
    more > 0 ? el("p", { class: "faint" }, `and ${units.count(more)} more ${more === 1 ? "name" : "names"}`) : null,
  );
}

function iterations(recording: Recording): HTMLElement | null {
  const table = tableOf(recording, "iterations"), rates = tableOf(recording, "throughput");
  if (table === undefined || table.rows === 0) return null;
  const ns = (name: string): string => units.duration(Number(cellOf(table, 0, name)));
  const perSecond = cellOf(rates, 0, "iterations_per_s"), samples = cellOf(rates, 0, "samples_per_s");
  const rate = (value: unknown): string => (value === null ? "" : String(Number(Number(value).toPrecision(4))));
  const outliers = tableOf(recording, "outliers")?.rows ?? 0;
  return card(
    "Iterations",
    facts([
      ["how many", units.count(Number(cellOf(table, 0, "count")))],
      ["median", ns("p50_ns")],
      ["p99", ns("p99_ns")],
      ["in a second", rate(perSecond)],
      ["samples/s", rate(samples)],
      ["outliers", outliers > 0 ? units.count(outliers) : ""],
    ]),
  );
}

const TINY = "less than 0.01 %";

/** A share of the program's time, "less than" if it rounds to zero. */
function smallShare(part: number): string {
  return part < 0.00005 ? TINY : units.share(part);
}

/** Imported traces have no overhead of marey. */
function measuring(recording: Recording): HTMLElement | null {
  const { cost, processes } = recording.index;
  if (processes.every((p) => p.clock === FOREIGN)) return null;
  const share = (ns: number) => (cost.program_ns > 0 ? smallShare(ns / cost.program_ns) : "an unknown share");
  const [low, high] = [share(cost.low_ns), share(cost.high_ns)];
  const inProgram = cost.high_ns > 0 ? `${low === TINY ? "" : "at least "}${low} of the program${low === high ? "" : `, ${high} with cold caches`}` : "";
  return card(
    "What marey cost",
    facts([
      ["estimate", inProgram],
      ["not included", cost.missing.replace(/^\s*not included: /, "")],
      ["flush thread", cost.flush_cpu_ns > 0 ? units.duration(cost.flush_cpu_ns) : ""],
      ["log", units.bytes(cost.log_bytes)],
      ["lost events", cost.incomplete > 0 ? `unknown: ${units.countOf(cost.incomplete, "process")} not recorded to the end` : cost.lost_events === 0 ? "none" : units.count(cost.lost_events)],
    ]),
  );
}

/** Important notes. */
function notes(recording: Recording): HTMLElement | null {
  const { cost, damaged } = recording.index;
  const list = el("ul");
  if (damaged) append(list, el("li", {}, "The recording is damaged; this is its readable part."));
  if (cost.lost_events > 0) {
    const between = `between ${units.duration(cost.lost_first_ns)} and ${units.duration(cost.lost_last_ns)} after the start`;
    const text = `${units.countOf(cost.lost_events, "event")} lost ${between}; times of ranges around there are not complete.`;
    append(list, el("li", {}, text));
  }
  const open = tableOf(recording, "open")?.rows ?? 0;
  if (open > 0) append(list, el("li", {}, `${units.countOf(open, "range")} had begun and not ended.`));
  for (const text of tableOf(recording, "warnings")?.cells[0] ?? []) append(list, el("li", {}, String(text)));
  const deep = recording.tracks.reduce((sum, track) => sum + track.tooDeep, 0);
  if (deep > 0) append(list, el("li", {}, `${units.countOf(deep, "range")} nested deeper than 256 are in the tables and not on the timeline.`));
  const merged = recording.index.processes.reduce((sum, process) => sum + (process.merged ?? 0), 0);
  if (merged > 0) append(list, el("li", {}, `${units.countOf(merged, "short range")} are drawn as one with their neighbours on the timeline; tables have them all.`));
  const texts = recording.index.processes.reduce((sum, process) => sum + (process.texts_left_out ?? 0), 0);
  if (texts > 0) append(list, el("li", {}, `Payloads and arguments of ${units.countOf(texts, "event")} are left out of this page.`));
  return list.childElementCount === 0 ? null : el("section", { class: "card notes" }, el("h2", {}, "Please note"), list);
}

function deviceSum(recording: Recording): Bar {
  const devices = recording.index.breakdown?.find((table) => table.name === "devices");
  return sumOf(barsOf(devices, windowsOf(devices)[0] ?? ""));
}

function hasGpu(recording: Recording): boolean {
  return recording.tracks.some((track) => track.kind === "gpu");
}

/** Time of all devices, in one bar. */
function devices(recording: Recording): HTMLElement | null {
  const all = deviceSum(recording);
  if (all.span === 0) return null;
  return card(hasGpu(recording) ? "What the devices did" : "What the processes did", stackedBar(all, all.span), partsList(all), el("p", { class: "more" }, el("a", { href: "#breakdown" }, "The breakdown has more")));
}

/** The key numbers. */
function figures(recording: Recording): HTMLElement {
  const { index } = recording, { cost } = index;
  const iterations = tableOf(recording, "iterations"), all = deviceSum(recording);
  const list: Figure[] = [
    { label: "first to last event", value: units.duration(index.duration_ns), about: whoRan(recording) },
  ];
  if (iterations !== undefined && iterations.rows > 0) {
    const n = Number(cellOf(iterations, 0, "count"));
    list.push({ label: "an iteration", value: units.duration(Number(cellOf(iterations, 0, "p50_ns"))), about: `median of ${units.count(n)}` });
  }
  if (all.span > 0 && !hasGpu(recording)) {
    list.push({ label: "communication", value: units.share(all.parts[COMMUNICATION] / all.span), about: "that nothing hides" });
  } else if (all.span > 0) {
    list.push({ label: "devices at work", value: units.share(1 - all.parts[IDLE] / all.span), about: `${units.duration(all.parts[IDLE])} idle` });
  }
  if (cost.lost_events > 0) list.push({ label: "lost", value: units.countOf(cost.lost_events, "event"), about: "see below" });
  const one = ({ label, value, about }: Figure): HTMLElement =>
    el("li", {}, el("span", { class: "faint" }, label), el("strong", { title: value }, value), el("span", { class: "faint" }, about));
  return el("ul", { class: "figures", "aria-label": "Key figures" }, ...list.map(one));
}

/** Results on the left, environment on the right. */
export function overview(recording: Recording, colors: Colors, onName: (name: string) => void): HTMLElement {
  const left = el("div", {}), right = el("div", {});
  append(left, dominates(recording, colors, onName), devices(recording));
  append(right, whatRan(recording), iterations(recording), where(recording), measuring(recording));
  const isEmpty = recording.index.cost.events === 0;
  return el("div", { class: "overview" }, isEmpty ? el("p", { class: "empty" }, "No events were recorded.") : figures(recording), notes(recording), left, right);
}
