// Mouse, wheel, touchpad, touch and keys on the timeline's canvas.

import { AXIS } from "./plot";
import type { Timeline } from "./timeline";


const CLICK = 4; // pixels that a click may move

function position(timeline: Timeline, event: MouseEvent): [number, number] {
  const box = timeline.canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/** Dragging moves; with Shift or along the axis it selects time; without moving it is a click. */
function listenToPointer(timeline: Timeline): void {
  const { canvas } = timeline;
  let start: [number, number] | null = null, last: [number, number] = [0, 0];
  let isMoved = false, isSelecting = false;

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = last = position(timeline, event);
    isMoved = false;
    isSelecting = (event.shiftKey || start[1] < AXIS) && start[0] >= timeline.gutter;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = position(timeline, event);
    if (start === null) {
      hover(timeline, x, y);
      return;
    }
    if (Math.abs(x - start[0]) + Math.abs(y - start[1]) > CLICK) isMoved = true;
    if (!isMoved) return;
    if (isSelecting) timeline.selectRange(timeline.view.time(start[0] - timeline.gutter), timeline.view.time(x - timeline.gutter), false);
    else {
      timeline.pan(last[0] - x);
      timeline.scroll(last[1] - y);
    }
    last = [x, y];
  });
  canvas.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const [x, y] = position(timeline, event);
    if (isMoved && isSelecting) {
      timeline.selectRange(timeline.view.time(start[0] - timeline.gutter), timeline.view.time(x - timeline.gutter), true);
    } else if (!isMoved) {
      click(timeline, x, y);
    }
    start = null;
  });
  canvas.addEventListener("pointercancel", () => (start = null));
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

/** A pinch comes as a wheel with Ctrl. Without it the wheel scrolls where there is more to see, else it zooms. */
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
        timeline.zoom(Math.exp(-event.deltaY * unit * (event.deltaMode === 0 && Math.abs(event.deltaY) < 50 ? 0.01 : 0.003)), x - timeline.gutter);
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

/** With something picked the arrows go from event to event. */
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
  listenToPointer(timeline);
  listenToWheel(timeline);
  listenToKeys(timeline);
}
