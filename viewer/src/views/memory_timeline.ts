// A memory timeline: the chart, its legend, and the live memory at the selected time.

import { CATEGORIES, Memory, type MemoryIndex } from "../model/memory";
import * as units from "../model/units";
import { Viewport } from "../model/viewport";
import { announce, append, el } from "../ui/dom";
import { type Hint, keyHints } from "../ui/keys";
import { fitToPaper } from "../ui/paper";
import { onTheme } from "../ui/theme";
import { Alive } from "./memory_alive";
import { listen } from "./memory_input";
import { GUTTER, MemoryPainter, type Scene } from "./memory_painter";

const HINTS: Hint[] = [
  [["W", "S"], "zoom"],
  [["A", "D"], "move"],
  [["0"], "show all"],
  [["\u2190", "\u2192"], "pick the change before, the next"],
  [["P"], "pick the peak"],
  [["1", "\u2026", "8"], "a category on or off"],
];

export class MemoryTimeline {
  readonly element = el("div", { class: "timeline memory" });
  readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Memory over time", "aria-describedby": "memory-keys" });
  readonly view: Viewport;
  private readonly legend = el("ul", { class: "legend", "aria-label": "Categories" });
  private readonly instant = el("p", { class: "facts" });
  private readonly alive: Alive;
  private readonly painter = new MemoryPainter(this.canvas);
  private readonly memories: (Memory | undefined)[];
  private scene: Scene;
  private frame = 0;

  constructor(private readonly index: MemoryIndex) {
    const first = Math.max(index.devices.findIndex((device) => device.is_main === 1), 0);
    this.memories = index.devices.map(() => undefined);
    this.view = new Viewport(Math.max(index.duration_ns, 1));
    this.alive = new Alive(index.stacks);
    this.scene = this.sceneOf(first, CATEGORIES.map(() => true));
    this.build(first);
    listen(this);
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    fitToPaper(this.canvas, () => this.painter.paint(this.scene));
    onTheme(() => this.redraw());
    this.pickPeak();
  }

  /** Blocks are summed when a device is first shown. */
  private memoryOf(device: number): Memory {
    return (this.memories[device] ??= new Memory(this.index.devices[device]));
  }

  private sceneOf(device: number, isShown: boolean[]): Scene {
    const memory = this.memoryOf(device);
    return {
      memory, isShown, totals: memory.totals(isShown), view: this.view, phases: this.index.phases,
      peak: memory.data.peak, picked: -1, pointed: null,
    };
  }

  private build(first: number): void {
    const button = (text: string, label: string, act: () => void): HTMLElement =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const choice = el(
      "select",
      { "aria-label": "Device", onchange: () => this.choose(Number(choice.value)) },
      ...this.index.devices.map((device, i) => el("option", { value: i }, device.name)),
    );
    choice.value = String(first);
    append(
      this.element,
      el(
        "div",
        { class: "timeline-tools", role: "toolbar", "aria-label": "Memory over time" },
        choice,
        this.instant,
        el("span", { class: "spring" }),
        button("Peak", "Pick the peak", () => this.pickPeak()),
        button("+", "Zoom in", () => this.zoom(2, this.view.width / 2)),
        button("\u2212", "Zoom out", () => this.zoom(0.5, this.view.width / 2)),
        button("Fit", "Show all", () => this.fit()),
      ),
      this.legend,
      this.canvas,
      keyHints("memory-keys", HINTS),
      this.alive.element,
    );
  }

  // ---- input ----

  choose(device: number): void {
    this.scene = this.sceneOf(device, this.scene.isShown);
    this.pickPeak();
  }

  toggle(category: number): void {
    const { isShown } = this.scene;
    isShown[category] = !isShown[category];
    this.scene.totals = this.scene.memory.totals(isShown);
    announce(`${CATEGORIES[category].title} ${isShown[category] ? "on" : "off"}`);
    this.tell();
  }

  zoom(factor: number, x: number): void {
    this.view.zoom(factor, x);
    this.redraw();
  }

  pan(pixels: number): void {
    this.view.pan(pixels);
    this.redraw();
  }

  fit(): void {
    this.view.fit();
    this.redraw();
  }

  /** The time under the pointer, or null. */
  point(x: number | null): void {
    this.scene.pointed = x === null ? null : this.view.time(x - GUTTER);
    this.tell();
  }

  pick(change: number): void {
    const { memory } = this.scene;
    this.scene.picked = Math.max(Math.min(change, memory.n - 1), -1);
    if (this.scene.picked >= 0) {
      const time = memory.times[this.scene.picked];
      this.view.reveal(time, time);
    }
    const title = this.scene.picked === this.scene.peak ? "At the peak" : `At ${this.when(this.scene.picked)}`;
    this.alive.show(title, memory, this.scene.picked);
    announce(`${title}: ${units.bytes(memory.total(this.scene.picked))}`);
    this.tell();
  }

  pickAt(x: number): void {
    this.pick(this.scene.memory.changeAt(this.view.time(x - GUTTER)));
  }

  pickPeak(): void {
    this.pick(this.scene.peak);
  }

  step(by: number): void {
    this.pick(Math.max(this.scene.picked + by, 0));
  }

  // ---- display ----

  private when(change: number): string {
    const { memory } = this.scene;
    return change < memory.data.before ? "the begin" : units.duration(memory.times[change]);
  }

  /** Numbers at the pointer's time, else at the selected time. */
  private tell(): void {
    const { memory, pointed, picked, isShown } = this.scene;
    const change = pointed === null ? picked : memory.changeAt(pointed);
    const bytes = memory.at(change);
    const when = pointed === null ? this.when(change) : units.duration(pointed);
    const reserved = memory.data.reserved > 0 ? `; at most ${units.bytes(memory.data.reserved)} reserved` : "";
    this.instant.textContent = `${units.bytes(memory.total(change))} at ${when}${reserved}`;
    if (this.legend.children.length === 0) this.buildLegend();
    [...this.legend.children].forEach((item, c) => {
      (item.querySelector("button") as HTMLElement).setAttribute("aria-pressed", String(isShown[c]));
      (item.querySelector(".number") as HTMLElement).textContent = units.bytes(bytes[c]);
    });
    this.redraw();
  }

  private buildLegend(): void {
    CATEGORIES.forEach(({ title, color }, c) => {
      const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = color;
      append(this.legend, el("li", {}, el("button", { type: "button", onclick: () => this.toggle(c) }, swatch, title, " ", el("span", { class: "number" }))));
    });
  }

  /** Called after each change: draws at most once per frame. */
  redraw(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.painter.paint(this.scene);
    });
  }
}
