// Lost events of a process. Threads have the gaps between recorded events; a loss after the last event is only known
// per process.

import type { ProcessInfo } from "../decode/format";
import * as units from "./units";

export interface Loss {
  from: number; // time of the first lost event, in nanoseconds
  to: number; // and of the last one
  rest: number | null; // no events from here on; null: events follow the loss
  text: string;
}

export function lossOf(process: ProcessInfo): Loss | null {
  const { lost_first_ns: from, lost_last_ns: to, lost_events: n, last_ns: last } = process;
  if (n === 0 || from === undefined || to === undefined) return null;
  const isRest = to >= last;
  return { from, to, rest: isRest ? Math.max(from, last) : null, text: `${units.countOf(n, "event")} lost${isRest ? " from here on" : ""}` };
}

/** The end of the timeline: the last event, recorded or lost. */
export function endOf(duration: number, processes: ProcessInfo[]): number {
  return processes.reduce((end, process) => Math.max(end, lossOf(process)?.to ?? 0), duration);
}
