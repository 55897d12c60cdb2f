// Time of devices: computation, exposed communication, exposed copies, idle.

import type { TableData } from "../decode/format";
import { columnOf } from "./tables";

export const PARTS = [
  { key: "compute_ns", title: "computation", color: "#4477aa" },
  { key: "exposed_comm_ns", title: "communication", color: "#ee6677" },
  { key: "exposed_mem_ns", title: "copies", color: "#ccbb44" },
  { key: "idle_ns", title: "idle", color: "#bbbbbb" },
] as const;

export const COMMUNICATION = PARTS.findIndex((part) => part.key === "exposed_comm_ns");
export const IDLE = PARTS.findIndex((part) => part.key === "idle_ns");

const WINDOWS: Record<string, string> = {
  gpu_span: "from the first work of a GPU to the last",
  process_span: "from the begin of a process to its end",
  steps: "in steps",
};

/** A window of the table, in words. */
export function windowTitle(window: string): string {
  return WINDOWS[window] ?? window;
}

/** The windows of the table; that of GPUs first, if only some processes have GPUs. */
export function windowsOf(devices: TableData | undefined): string[] {
  const found = [...new Set((devices === undefined ? [] : columnOf(devices, "window")).map(String))];
  return [...found.filter((window) => window === "gpu_span"), ...found.filter((window) => window !== "gpu_span")];
}

export interface Bar {
  label: string;
  span: number;
  parts: number[]; // in the order of PARTS; they add up to the span
  hidden: number; // communication hidden by computation
}

function label(table: TableData, row: number): string {
  const text = (name: string): string => {
    const cell = columnOf(table, name)[row];
    return cell === null || cell === undefined ? "" : String(cell);
  };
  const rank = text("rank") !== "" ? `rank ${text("rank")}` : `pid ${text("pid")}`;
  const number = text("device") === "" ? -1 : Number(text("device")); // -1: the process itself
  const device = number >= 0 ? `GPU ${number}` : "CPU";
  const step = text("step") !== "" ? `step ${text("step")}, ` : "";
  return `${step}${rank}, ${device}`;
}

/** A bar for each row of the window, if the table has several; none if computation is unknown. */
export function barsOf(table: TableData | undefined, window: string | null): Bar[] {
  if (table === undefined) return [];
  const windows = columnOf(table, "window"), spans = columnOf(table, "span_ns");
  const parts = PARTS.map((part) => columnOf(table, part.key));
  const hidden = columnOf(table, "hidden_comm_ns");
  return spans.flatMap((span, row) =>
    (window !== null && windows[row] !== window) || parts[0][row] === null
      ? []
      : [{ label: label(table, row), span: Number(span), parts: parts.map((cells) => Number(cells[row] ?? 0)), hidden: Number(hidden[row] ?? 0) }],
  );
}

/** All devices together. */
export function sumOf(bars: Bar[]): Bar {
  const sum: Bar = { label: "all", span: 0, parts: PARTS.map(() => 0), hidden: 0 };
  for (const bar of bars) {
    sum.span += bar.span;
    sum.hidden += bar.hidden;
    bar.parts.forEach((part, i) => (sum.parts[i] += part));
  }
  return sum;
}
