// Mouse, wheel, touch and keys on the heat map, consistent with the other charts.

import { type Point, pinched, wheelFactor } from "../ui/fingers";
import type { HeatView } from "./heat";

const CLICK = 4; // pixels that a click may move
const TAP = 10; // and a finger, which is not as steady

/** Dragging moves, two fingers zoom, and without movement it is a click. A finger's first tap selects, like pointing.
 * */
class Pointers {
  private readonly down = new Map<number, Point>();
  private start: Point = [0, 0];
  private isMoved = false;

  constructor(private readonly view: HeatView) {}

  press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.start = [event.offsetX, event.offsetY];
    this.isMoved = this.down.size > 0;
    this.down.set(event.pointerId, this.start);
    this.view.canvas.setPointerCapture(event.pointerId);
  }

  move(event: PointerEvent): void {
    const at: Point = [event.offsetX, event.offsetY], before = this.down.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType === "mouse") this.view.pointAt(...at);
      return;
    }
    const far = Math.abs(at[0] - this.start[0]) + Math.abs(at[1] - this.start[1]);
    if (far > (event.pointerType === "mouse" ? CLICK : TAP)) this.isMoved = true;
    if (!this.isMoved) return;
    const other = [...this.down].find(([id]) => id !== event.pointerId)?.[1];
    if (other === undefined) {
      this.view.pan(before[0] - at[0], before[1] - at[1]);
    } else {
      const { factor, before: from, after } = pinched(other, before, at);
      this.view.pan(from[0] - after[0], from[1] - after[1]);
      this.view.zoom(factor, ...after);
    }
    this.down.set(event.pointerId, at);
  }

  release(event: PointerEvent): void {
    if (!this.down.delete(event.pointerId) || this.down.size > 0 || this.isMoved) return;
    this.view.clickAt(event.offsetX, event.offsetY, event.pointerType === "mouse");
  }

  cancel(event: PointerEvent): void {
    this.down.delete(event.pointerId);
  }
}

type Act = (view: HeatView) => void;

const KEYS: Record<string, Act> = {
  w: (v) => v.zoomMiddle(1.5), "+": (v) => v.zoomMiddle(1.5), "=": (v) => v.zoomMiddle(1.5),
  s: (v) => v.zoomMiddle(1 / 1.5), "-": (v) => v.zoomMiddle(1 / 1.5),
  a: (v) => v.pan(-80, 0),
  d: (v) => v.pan(80, 0),
  arrowleft: (v) => v.step(0, -1),
  arrowright: (v) => v.step(0, 1),
  arrowup: (v) => v.step(-1, 0),
  arrowdown: (v) => v.step(1, 0),
  " ": (v) => v.pickSlowest(),
  enter: (v) => v.openPicked(),
  escape: (v) => v.pick(null),
  "0": (v) => v.fit(),
  home: (v) => v.fit(),
  t: (v) => v.onTable(),
};

export function listen(view: HeatView): void {
  const { canvas } = view, pointers = new Pointers(view);
  canvas.addEventListener("pointerdown", (event) => pointers.press(event));
  canvas.addEventListener("pointermove", (event) => pointers.move(event));
  canvas.addEventListener("pointerup", (event) => pointers.release(event));
  canvas.addEventListener("pointercancel", (event) => pointers.cancel(event));
  canvas.addEventListener("pointerleave", () => view.pointAway());
  canvas.addEventListener("keydown", (event) => {
    const act = KEYS[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(view);
  });
  canvas.addEventListener("wheel", (event) => {
    if (!(event.ctrlKey || event.metaKey || event.altKey)) return; // the page scrolls, as everywhere
    event.preventDefault();
    view.zoom(wheelFactor(event), event.offsetX, event.offsetY);
  }, { passive: false });
}
