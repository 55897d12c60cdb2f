// The timeline: canvas, search, details; actions of mouse, touchpad and keys.

import { arrowsOf } from "../model/arrows";
import type { Colors } from "../model/colors";
import { Layout, type Line } from "../model/layout";
import { endOf } from "../model/losses";
import { type Recording, nameOf } from "../model/recording";
import { type Match, countMatches, nextMatch, notMatching } from "../model/search";
import * as units from "../model/units";
import { Viewport } from "../model/viewport";
import { announce, append, el } from "../ui/dom";
import { type Hint, keyHints } from "../ui/keys";
import { fitToPaper } from "../ui/paper";
import { onTheme } from "../ui/theme";
import { Details, pickedName } from "./timeline_details";
import { AXIS } from "./plot";
import { listen } from "./timeline_input";
import { type Picked, type Scene, TimelinePainter, pickedSpan } from "./timeline_painter";

const HINTS: Hint[] = [
  [["W", "S"], "zoom"],
  [["A", "D"], "move"],
  [["0"], "show all"],
  [["/"], "search"],
  [["Space"], "pick the first range in sight"],
  [["\u2190", "\u2192", "\u2191", "\u2193"], "go to its neighbours"],
  [["Enter"], "zoom to it"],
  [["C"], "fold its process"],
  [["T"], "a table of what is in sight"],
  [["Esc"], "let go"],
];

export class Timeline {
  readonly element = el("div", { class: "timeline" });
  readonly view: Viewport;
  readonly layout: Layout;
  readonly canvas = el("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label": "Timeline",
    "aria-describedby": "timeline-keys",
  });
  readonly details: Details;
  private readonly painter: TimelinePainter;
  private readonly scene: Scene;
  private readonly search = el("input", { type: "search", placeholder: "Search names", "aria-label": "Search the timeline" });
  private readonly found = el("span", { class: "found", role: "status" });
  private frame = 0;
  private hasEvents = false;
  private match: Match | null = null;
  private misses: Uint8Array[] | null = null;

  constructor(private readonly recording: Recording, colors: Colors) {
    this.view = new Viewport(endOf(recording.index.duration_ns, recording.index.processes));
    this.layout = new Layout(recording, (track, row) => nameOf(recording, track.process, row.about)[0]);
    this.details = new Details(recording);
    this.scene = {
      view: this.view, layout: this.layout, scroll: 0, gutter: 160, selected: null, range: null, matches: null, arrows: [],
    };
    this.build();
    this.painter = new TimelinePainter(this.canvas, recording, colors);
    listen(this);
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    fitToPaper(this.canvas, () => this.paintNow());
    onTheme(() => {
      this.painter.readTheme();
      this.redraw();
    });
  }

  private build(): void {
    const button = (text: string, label: string, act: () => void): HTMLElement =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const middle = (): number => this.view.width / 2;
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.goToMatch(!event.shiftKey);
      if (event.key === "Escape") this.find((this.search.value = ""));
    });
    append(
      this.element,
      el(
        "div",
        { class: "timeline-tools", role: "toolbar", "aria-label": "Timeline" },
        this.search,
        button("\u2191", "Previous match", () => this.goToMatch(false)),
        button("\u2193", "Next match", () => this.goToMatch(true)),
        this.found,
        el("span", { class: "spring" }),
        button("Table", "A table of what is in sight", () => this.sumUpSight()),
        button("+", "Zoom in", () => this.zoom(2, middle())),
        button("\u2212", "Zoom out", () => this.zoom(0.5, middle())),
        button("Fit", "Show all", () => this.fit()),
      ),
      this.someRanks(),
      this.canvas,
      keyHints("timeline-keys", HINTS),
      this.details.element,
    );
  }

  /** For many ranks: which of them are shown. */
  private someRanks(): HTMLElement | null {
    const { processes } = this.recording.index, n = processes.filter((info) => info.left_out === true).length;
    if (n === 0) return null;
    const text = `${units.count(processes.length - n)} of ${units.countOf(processes.length, "process")} are here: the slowest, the fastest, one in the middle, the first, those with the longest iterations. Tables and the map of ranks have all.`;
    return el("p", { class: "hint" }, text);
  }

  /** Called after each change: draws at most once per frame. */
  redraw(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paintNow();
    });
  }

  /** Called when events are decoded. Levels of detail must not be built earlier, because they would be empty and
   * cached. */
  start(): void {
    this.hasEvents = true;
    this.redraw();
  }

  paintNow(): void {
    if (!this.hasEvents || this.canvas.clientWidth === 0) return; // not loaded, or not visible
    this.canvas.style.maxHeight = `${AXIS + this.layout.height + 12}px`;
    // If there is nothing to scroll, vertical swipes scroll the page.
    this.canvas.style.touchAction = this.canScroll ? "none" : "pan-y";
    this.scene.gutter = this.painter.gutterFor(this.layout, this.canvas.clientWidth);
    this.view.width = Math.max(1, this.canvas.clientWidth - this.scene.gutter);
    const room = Math.max(0, this.layout.height - (this.canvas.clientHeight - AXIS));
    this.scene.scroll = Math.max(0, Math.min(this.scene.scroll, room));
    this.painter.paint(this.scene);
  }

  // ---- moving ----

  get gutter(): number {
    return this.scene.gutter;
  }

  get canScroll(): boolean {
    return this.layout.height > this.canvas.clientHeight - AXIS;
  }

  zoom(factor: number, x: number): void {
    this.view.zoom(factor, x);
    this.redraw();
  }

  pan(pixels: number): void {
    this.view.pan(pixels);
    this.redraw();
  }

  scroll(pixels: number): void {
    this.scene.scroll += pixels;
    this.redraw();
  }

  fit(): void {
    this.view.fit();
    this.redraw();
  }

  // ---- picking ----

  get picked(): Picked | null {
    return this.scene.selected;
  }

  lineAt(y: number): Line | null {
    const i = this.layout.at(y - AXIS + this.scene.scroll);
    const line = this.layout.lines[i];
    return line && y >= AXIS && y - AXIS + this.scene.scroll < line.y + line.height ? line : null;
  }

  /** The event at a position of the canvas, or the nearest one within a few pixels. */
  eventAt(x: number, y: number): Picked | null {
    const line = this.lineAt(y);
    if (line === null || x < this.scene.gutter || line.track === null) return null;
    const time = this.view.time(x - this.scene.gutter), near = 3 * this.view.nsPerPixel;
    if (line.row !== null) {
      const last = line.row.lowerBound(time + near);
      for (let i = last - 1; i >= Math.max(0, last - 3); i--) {
        const reach = line.kind === "counter" ? Infinity : line.row.end(i) + near;
        if (reach >= time) return { line, i };
      }
    }
    const open = line.track.unfinished.findIndex((u) => u.depth === line.depth && u.start <= time + near && u.last >= time - near);
    return line.kind === "row" && open >= 0 ? { line, i: -1 - open } : null;
  }

  pick(picked: Picked | null): void {
    this.scene.selected = picked;
    this.scene.range = null;
    this.scene.arrows = picked?.line.track && picked.line.kind === "row" ? arrowsOf(this.recording, picked.line.track, ...pickedSpan(picked)) : [];
    if (picked === null) this.details.showNothing();
    else {
      this.details.showEvent(picked);
      const [from, to] = pickedSpan(picked);
      announce(`${pickedName(this.recording, picked)}, ${units.duration(to - from)}, begins at ${units.duration(from)}`);
    }
    this.redraw();
  }

  reveal(picked: Picked): void {
    const [from, to] = pickedSpan(picked);
    this.view.reveal(from, to);
    const { line } = picked, bottom = this.scene.scroll + this.canvas.clientHeight - AXIS;
    if (line.y < this.scene.scroll || line.y + line.height > bottom) this.scene.scroll = line.y - 60;
    this.redraw();
  }

  /** Zoom so that the selected event fills most of the window. */
  zoomToPicked(): void {
    const span = this.scene.selected ? pickedSpan(this.scene.selected) : this.scene.range;
    if (span === null) return;
    const margin = Math.max((span[1] - span[0]) * 0.1, 5);
    this.view.show(span[0] - margin, span[1] + margin);
    this.redraw();
  }

  /** The neighbor in the row, or its parent or child. */
  step(across: number, down: number): void {
    const picked = this.scene.selected;
    if (picked === null || picked.i < 0 || picked.line.row === null) return;
    let next: Picked | null = null;
    if (across !== 0) {
      const i = picked.i + across;
      if (i >= 0 && i < picked.line.row.n) next = { line: picked.line, i };
    } else if (picked.line.track !== null && picked.line.kind === "row") {
      const line = this.layout.find(picked.line.track, picked.line.depth + down);
      const [from, to] = pickedSpan(picked);
      const i = line?.row?.firstReaching(from) ?? -1;
      if (line?.row && i >= 0 && i < line.row.n && line.row.start[i] < Math.max(to, from + 1)) next = { line, i };
    }
    if (next === null) return;
    this.pick(next);
    this.reveal(next);
  }

  /** Select the first visible range, from which keys navigate. */
  pickFirst(): void {
    const top = this.scene.scroll, bottom = top + this.canvas.clientHeight - AXIS;
    for (const line of this.layout.lines) {
      if (line.kind !== "row" || line.row === null || line.y < top || line.y > bottom) continue;
      const i = line.row.firstReaching(this.view.from);
      if (i >= line.row.n || line.row.start[i] > this.view.to) continue;
      this.pick({ line, i });
      return;
    }
  }

  /** Collapse or expand the process of the selected event, or all processes. */
  fold(): void {
    const { collapsed } = this.layout;
    const picked = this.scene.selected?.line.process;
    if (picked !== undefined) this.toggle(picked);
    else {
      const n = this.recording.index.processes.length, isFolded = collapsed.size > 0;
      for (let process = 0; process < n; process++) if (collapsed.has(process) === isFolded) this.layout.toggle(process);
      this.redraw();
    }
  }

  selectRange(from: number, to: number, isDone: boolean): void {
    this.scene.selected = null;
    this.scene.arrows = [];
    this.scene.range = from < to ? [from, to] : [to, from];
    if (isDone) announce(this.details.showRange(...this.scene.range));
    this.redraw();
  }

  /** Summarize all visible events as a table. */
  sumUpSight(): void {
    this.selectRange(Math.max(this.view.from, 0), Math.min(this.view.to, this.view.length), true);
  }

  toggle(process: number): void {
    this.layout.toggle(process);
    this.pick(null);
    this.redraw();
  }

  // ---- searching ----

  focusSearch(): void {
    this.search.focus();
    this.search.select();
  }

  /** Search for a name, from another view. */
  searchFor(name: string): void {
    this.search.value = name;
    this.find(name);
    this.goToMatch(true);
  }

  /** Show an iteration of a process, from another view, by its number or else by its index. */
  showIteration(process: number, iteration: number): void {
    const track = this.recording.tracks.find((one) => one.process === process && one.kind === "progress");
    if (track === undefined) return;
    if (this.layout.collapsed.has(process)) this.layout.toggle(process);
    const line = this.layout.find(track, 0), row = line?.row;
    if (line === undefined || !row) return;
    const byNumber = row.id.indexOf(iteration), i = row.id[iteration] === iteration || byNumber < 0 ? iteration : byNumber;
    if (i >= row.n) return;
    this.pick({ line, i });
    this.zoomToPicked();
    this.reveal({ line, i });
  }

  private find(word: string): void {
    this.match = null;
    this.misses = word.trim() === "" ? null : notMatching(this.recording, word.trim());
    this.scene.matches = this.misses;
    this.found.textContent = this.misses ? `${units.count(countMatches(this.recording, this.misses))} found` : "";
    this.redraw();
  }

  private goToMatch(forward: boolean): void {
    if (this.misses === null) return;
    this.match = nextMatch(this.recording, this.misses, this.match, forward) ?? nextMatch(this.recording, this.misses, null, forward);
    if (this.match === null) return;
    const { track, depth, i } = this.match;
    if (this.layout.collapsed.has(track.process)) this.layout.toggle(track.process);
    const line = depth >= 0 ? this.layout.find(track, depth) : this.layout.lines.find((l) => l.track === track && l.kind === "marks");
    if (line === undefined) return;
    this.pick({ line, i });
    this.reveal({ line, i });
  }
}
