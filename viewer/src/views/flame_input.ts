// Mouse, wheel, touchpad, touch and keys on a flame chart.

import { type Point, pinched, wheelFactor } from "../ui/fingers";
import type { FlamePicture } from "./flame_picture";

const CLICK = 4; // pixels that a click may move
const TAP = 10; // and a finger, which is not as steady

/** Without moving it is a click. Dragging moves what is wider than its place, and two fingers make it wider. */
class Pointers {
  private readonly down = new Map<number, Point>(); // where each is, by its id
  private start: Point = [0, 0];
  private isMoved = false;

  constructor(private readonly picture: FlamePicture) {}

  press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.start = [event.offsetX, event.offsetY];
    this.isMoved = this.down.size > 0;
    this.down.set(event.pointerId, this.start);
  }

  move(event: PointerEvent): void {
    const at: Point = [event.offsetX, event.offsetY], before = this.down.get(event.pointerId);
    if (before === undefined || event.pointerType === "mouse") this.picture.pointAt(...at);
    if (before === undefined) return;
    const far = Math.abs(at[0] - this.start[0]) + Math.abs(at[1] - this.start[1]);
    if (far > (event.pointerType === "mouse" ? CLICK : TAP)) this.isMoved = true;
    if (!this.isMoved) return;
    if (this.down.size === 1 && event.pointerType === "mouse") this.picture.canvas.setPointerCapture(event.pointerId);
    const other = [...this.down].find(([id]) => id !== event.pointerId)?.[1];
    if (other === undefined) {
      this.picture.pan(before[0] - at[0]);
    } else {
      const { factor, before: from, after } = pinched(other, before, at);
      this.picture.pan(from[0] - after[0]);
      this.picture.magnify(factor, after[0]);
    }
    this.down.set(event.pointerId, at);
  }

  release(event: PointerEvent): void {
    if (!this.down.delete(event.pointerId) || this.down.size > 0 || this.isMoved) return;
    this.picture.clickAt(event.offsetX, event.offsetY);
  }

  cancel(event: PointerEvent): void {
    this.down.delete(event.pointerId);
  }
}

/** A pinch comes as a wheel with Ctrl. Without it the wheel scrolls, as everywhere on the page. */
function onWheel(picture: FlamePicture, event: WheelEvent): void {
  const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
  if (event.ctrlKey || event.metaKey || event.altKey) picture.magnify(wheelFactor(event), event.offsetX);
  else if (Math.abs(across) < Math.abs(event.deltaY) && !event.shiftKey) return;
  else if (!picture.pan(across * (event.deltaMode === 1 ? 20 : 1))) return;
  event.preventDefault();
}

export function listen(picture: FlamePicture): void {
  const { canvas } = picture, pointers = new Pointers(picture);
  canvas.addEventListener("pointerdown", (event) => pointers.press(event));
  canvas.addEventListener("pointermove", (event) => pointers.move(event));
  canvas.addEventListener("pointerup", (event) => pointers.release(event));
  canvas.addEventListener("pointercancel", (event) => pointers.cancel(event));
  canvas.addEventListener("pointerleave", () => picture.pointAway());
  canvas.addEventListener("wheel", (event) => onWheel(picture, event), { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !picture.press(event.key)) return;
    event.preventDefault();
  });
}
