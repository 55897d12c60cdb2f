// Two fingers that go apart or together.

export type Point = [x: number, y: number];

const NEAREST = 20; // pixels between two fingers, below which they are one

/** One finger rests at `still` while the other goes: how much wider they are apart, and where their middle was and is. */
export function pinched(still: Point, from: Point, to: Point): { factor: number; before: Point; after: Point } {
  const apart = (point: Point): number => Math.max(Math.hypot(point[0] - still[0], point[1] - still[1]), NEAREST);
  const middle = (point: Point): Point => [(point[0] + still[0]) / 2, (point[1] + still[1]) / 2];
  return { factor: apart(to) / apart(from), before: middle(from), after: middle(to) };
}

/** By how much a turn of the wheel zooms. Touchpads send a pinch as a wheel with Ctrl, in small pieces. */
export function wheelFactor(event: WheelEvent): number {
  const unit = event.deltaMode === 1 ? 20 : 1, isTouchpad = event.ctrlKey && event.deltaMode === 0 && Math.abs(event.deltaY) < 50;
  return Math.exp(-event.deltaY * unit * (isTouchpad ? 0.01 : 0.003));
}
