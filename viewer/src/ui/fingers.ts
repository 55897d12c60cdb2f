// Pinch gestures with two fingers.

export type Point = [x: number, y: number];

const NEAREST = 20; // minimum distance of two fingers in pixels

/** One finger is at `still` while the other moves: the ratio of their distances, and their midpoints before and after.
 * */
export function pinched(still: Point, from: Point, to: Point): { factor: number; before: Point; after: Point } {
  const apart = (point: Point): number => Math.max(Math.hypot(point[0] - still[0], point[1] - still[1]), NEAREST);
  const middle = (point: Point): Point => [(point[0] + still[0]) / 2, (point[1] + still[1]) / 2];
  return { factor: apart(to) / apart(from), before: middle(from), after: middle(to) };
}

/** The zoom factor of a wheel event. Touchpads send a pinch as small wheel events with Ctrl. */
export function wheelFactor(event: WheelEvent): number {
  const unit = event.deltaMode === 1 ? 20 : 1, isTouchpad = event.ctrlKey && event.deltaMode === 0 && Math.abs(event.deltaY) < 50;
  return Math.exp(-event.deltaY * unit * (isTouchpad ? 0.01 : 0.003));
}
