// Where a process lost events. Threads know of gaps between events that were kept; that the rest was lost, behind the
// last of them, only the process knows.

import type { ProcessInfo } from "../decode/format";
import * as units from "./units";

export interface Loss {
  from: number; // nanoseconds: of the first event that was lost
  to: number; // and of the last
  rest: number | null; // from here on nothing was kept; null where something was kept behind the loss
  text: string;
}

export function lossOf(process: ProcessInfo): Loss | null {
  const { lost_first_ns: from, lost_last_ns: to, lost_events: n, last_ns: last } = process;
  if (n === 0 || from === undefined || to === undefined) return null;
  const isRest = to >= last;
  return { from, to, rest: isRest ? Math.max(from, last) : null, text: `${units.countOf(n, "event")} lost${isRest ? " from here on" : ""}` };
}

/** The end of what a timeline shows: the last event, kept or lost. */
export function endOf(duration: number, processes: ProcessInfo[]): number {
  return processes.reduce((end, process) => Math.max(end, lossOf(process)?.to ?? 0), duration);
}
