// Mouse, wheel, touchpad, touch and keys on the timeline's canvas.

import { type Point, pinched, wheelFactor } from "../ui/fingers";
import { AXIS } from "./plot";
import type { Timeline } from "./timeline";

const CLICK = 4; // pixels that a click may move
const TAP = 10; // and a finger, which is not as steady

function position(timeline: Timeline, event: MouseEvent): Point {
  const box = timeline.canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/**
 * Dragging moves; with Shift or along the axis it selects time; without movement it is a click. Fingers do the same,
 * and two of them zoom around their midpoint.
 */
class Pointers {
  private readonly down = new Map<number, Point>(); // position of each pointer, by its id
  private start: Point = [0, 0];
  private isMoved = false;
  private isSelecting = false;

  constructor(private readonly timeline: Timeline) {}

  press(event: PointerEvent): void {
    if (event.button !== 0) return;
    const at = position(this.timeline, event);
    this.down.set(event.pointerId, at);
    this.isMoved = this.down.size > 1;
    this.isSelecting = !this.isMoved && (event.shiftKey || at[1] < AXIS) && at[0] >= this.timeline.gutter;
    this.start = at;
    this.timeline.canvas.setPointerCapture(event.pointerId);
  }

  move(event: PointerEvent): void {
    const at = position(this.timeline, event), before = this.down.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType === "mouse") hover(this.timeline, ...at);
      return;
    }
    const far = Math.abs(at[0] - this.start[0]) + Math.abs(at[1] - this.start[1]);
    if (far > (event.pointerType === "mouse" ? CLICK : TAP)) this.isMoved = true;
    if (!this.isMoved) return;
    const other = [...this.down].find(([id]) => id !== event.pointerId)?.[1];
    if (other !== undefined) this.pinch(other, before, at);
    else if (this.isSelecting) this.select(at, false);
    else this.drag(before, at);
    this.down.set(event.pointerId, at);
  }

  release(event: PointerEvent): void {
    if (!this.down.delete(event.pointerId) || this.down.size > 0) return;
    const at = position(this.timeline, event);
    if (!this.isMoved) click(this.timeline, ...at);
    else if (this.isSelecting) this.select(at, true);
  }

  cancel(event: PointerEvent): void {
    this.down.delete(event.pointerId);
  }

  private drag(from: Point, to: Point): void {
    this.timeline.pan(from[0] - to[0]);
    this.timeline.scroll(from[1] - to[1]);
  }

  /** One finger is at `still` while the other moves. */
  private pinch(still: Point, from: Point, to: Point): void {
    const { factor, before, after } = pinched(still, from, to);
    this.drag(before, after);
    this.timeline.zoom(factor, after[0] - this.timeline.gutter);
  }

  private select(to: Point, isDone: boolean): void {
    const { view, gutter } = this.timeline;
    this.timeline.selectRange(view.time(this.start[0] - gutter), view.time(to[0] - gutter), isDone);
  }
}

function listenToPointers(timeline: Timeline): void {
  const { canvas } = timeline, pointers = new Pointers(timeline);
  canvas.addEventListener("pointerdown", (event) => pointers.press(event));
  canvas.addEventListener("pointermove", (event) => pointers.move(event));
  canvas.addEventListener("pointerup", (event) => pointers.release(event));
  canvas.addEventListener("pointercancel", (event) => pointers.cancel(event));
  canvas.addEventListener("dblclick", () => timeline.zoomToPicked());
}

function click(timeline: Timeline, x: number, y: number): void {
  const line = timeline.lineAt(y);
  if (line?.kind === "process") timeline.toggle(line.process);
  else timeline.pick(timeline.eventAt(x, y));
}

function hover(timeline: Timeline, x: number, y: number): void {
  const isOver = timeline.lineAt(y)?.kind === "process" || timeline.eventAt(x, y) !== null;
  timeline.canvas.style.cursor = isOver ? "pointer" : "default";
}

/** A pinch comes as a wheel with Ctrl. Without Ctrl the wheel scrolls if possible, else it zooms. */
function listenToWheel(timeline: Timeline): void {
  timeline.canvas.addEventListener(
    "wheel",
    (event) => {
      const [x] = position(timeline, event);
      const unit = event.deltaMode === 1 ? 20 : 1;
      const across = (event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX) * unit;
      const down = event.shiftKey ? 0 : event.deltaY * unit;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || event.altKey) {
        timeline.zoom(wheelFactor(event), x - timeline.gutter);
      } else if (Math.abs(across) > Math.abs(down)) {
        timeline.pan(across);
      } else if (timeline.canScroll) {
        timeline.scroll(down);
      } else {
        timeline.zoom(Math.exp(-down * 0.003), x - timeline.gutter);
      }
    },
    { passive: false },
  );
}

type Act = (timeline: Timeline) => void;

const zoomIn: Act = (t) => t.zoom(1.5, t.view.width / 2);
const zoomOut: Act = (t) => t.zoom(1 / 1.5, t.view.width / 2);
const left: Act = (t) => t.pan(-t.view.width / 6);
const right: Act = (t) => t.pan(t.view.width / 6);

/** With a selected event, arrow keys go from event to event. */
const arrow = (across: number, down: number, otherwise: Act): Act => (t) => (t.picked ? t.step(across, down) : otherwise(t));

const KEYS: Record<string, Act> = {
  w: zoomIn, W: zoomIn, "+": zoomIn, "=": zoomIn,
  s: zoomOut, S: zoomOut, "-": zoomOut,
  a: left, A: left, d: right, D: right,
  ArrowLeft: arrow(-1, 0, left),
  ArrowRight: arrow(1, 0, right),
  ArrowUp: arrow(0, -1, (t) => t.scroll(-60)),
  ArrowDown: arrow(0, 1, (t) => t.scroll(60)),
  PageUp: (t) => t.scroll(-t.canvas.clientHeight * 0.8),
  PageDown: (t) => t.scroll(t.canvas.clientHeight * 0.8),
  Home: (t) => t.fit(),
  "0": (t) => t.fit(),
  "/": (t) => t.focusSearch(),
  " ": (t) => t.pickFirst(),
  c: (t) => t.fold(),
  C: (t) => t.fold(),
  t: (t) => t.sumUpSight(),
  T: (t) => t.sumUpSight(),
  Enter: (t) => t.zoomToPicked(),
  Escape: (t) => t.pick(null),
};

function listenToKeys(timeline: Timeline): void {
  timeline.canvas.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(timeline);
  });
}

export function listen(timeline: Timeline): void {
  listenToPointers(timeline);
  listenToWheel(timeline);
  listenToKeys(timeline);
}
