// Where a process lost events. Threads have the gaps between recorded events; only the process records a loss after the last
// of them.

import type { ProcessInfo } from "../decode/format";
import * as units from "./units";

export interface Loss {
  from: number; // nanoseconds: of the first event that was lost
  to: number; // and of the last
  rest: number | null; // nothing was recorded from here on; null: events follow the loss
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
