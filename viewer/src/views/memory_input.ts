// Mouse, wheel, touch and keys on a memory timeline, consistent with the report's timeline.

import { CATEGORIES } from "../model/memory";
import type { MemoryTimeline } from "./memory_timeline";
import { GUTTER } from "./memory_painter";

const CLICK = 4; // pixels that a click may move
const NEAREST = 20; // minimum distance of two fingers in pixels

/** Dragging moves, two fingers zoom, and without moving it is a click. */
class Pointers {
  private readonly down = new Map<number, number>(); // position of each pointer, by its id
  private start = 0;
  private isMoved = false;

  constructor(private readonly timeline: MemoryTimeline) {}

  private x(event: PointerEvent): number {
    return event.clientX - this.timeline.canvas.getBoundingClientRect().left;
  }

  press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.start = this.x(event);
    this.isMoved = this.down.size > 0;
    this.down.set(event.pointerId, this.start);
    this.timeline.canvas.setPointerCapture(event.pointerId);
  }

  move(event: PointerEvent): void {
    const x = this.x(event), before = this.down.get(event.pointerId);
    if (before === undefined || !this.isMoved) this.timeline.point(x);
    if (before === undefined) return;
    if (Math.abs(x - this.start) > CLICK) this.isMoved = true;
    if (!this.isMoved) return;
    const other = [...this.down].find(([id]) => id !== event.pointerId)?.[1];
    if (other === undefined) {
      this.timeline.pan(before - x);
    } else {
      const apart = (at: number): number => Math.max(Math.abs(at - other), NEAREST);
      this.timeline.zoom(apart(x) / apart(before), (x + other) / 2 - GUTTER);
    }
    this.down.set(event.pointerId, x);
  }

  release(event: PointerEvent): void {
    if (!this.down.delete(event.pointerId) || this.down.size > 0) return;
    if (!this.isMoved) this.timeline.pickAt(this.x(event));
  }

  cancel(event: PointerEvent): void {
    this.down.delete(event.pointerId);
  }
}

function listenToWheel(timeline: MemoryTimeline): void {
  const onWheel = (event: WheelEvent): void => {
    const unit = event.deltaMode === 1 ? 20 : 1;
    const x = event.clientX - timeline.canvas.getBoundingClientRect().left - GUTTER;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.pan((event.deltaX || event.deltaY) * unit);
    else timeline.zoom(Math.exp(-event.deltaY * unit * 0.003), x);
  };
  timeline.canvas.addEventListener("wheel", onWheel, { passive: false });
}

type Act = (timeline: MemoryTimeline) => void;

const zoomIn: Act = (t) => t.zoom(1.5, t.view.width / 2);
const zoomOut: Act = (t) => t.zoom(1 / 1.5, t.view.width / 2);

const KEYS: Record<string, Act> = {
  w: zoomIn, "+": zoomIn, "=": zoomIn,
  s: zoomOut, "-": zoomOut,
  a: (t) => t.pan(-t.view.width / 6),
  d: (t) => t.pan(t.view.width / 6),
  arrowleft: (t) => t.step(-1),
  arrowright: (t) => t.step(1),
  home: (t) => t.fit(),
  "0": (t) => t.fit(),
  p: (t) => t.pickPeak(),
};
CATEGORIES.forEach((_, c) => (KEYS[String(c + 1)] = (t) => t.toggle(c)));

export function listen(timeline: MemoryTimeline): void {
  const { canvas } = timeline, pointers = new Pointers(timeline);
  canvas.addEventListener("pointerdown", (event) => pointers.press(event));
  canvas.addEventListener("pointermove", (event) => pointers.move(event));
  canvas.addEventListener("pointerup", (event) => pointers.release(event));
  canvas.addEventListener("pointercancel", (event) => pointers.cancel(event));
  canvas.addEventListener("pointerleave", () => timeline.point(null));
  canvas.addEventListener("keydown", (event) => {
    const act = KEYS[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(timeline);
  });
  listenToWheel(timeline);
}
