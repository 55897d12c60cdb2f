// What GPUs did, who launched it, where they wait for the host: the tables of `kymo report --gpu`, and their advice.

import type { TableData } from "../decode/format";
import { cellOf } from "../model/tables";
import * as units from "../model/units";
import { append, el } from "../ui/dom";
import { Tables } from "./tables";

export const ABOUT_GPUS: Record<string, string> = {
  launch_bound: "Where GPUs wait for the host. Launch wait: up to 100 \u00b5s, what launching takes. Host wait: longer, the host is at something else.",
  devices: "How long each was busy, and what it waited for.",
  kernels: "Work by name; the share is of the time in which GPUs were busy.",
  shapes: "Kernels by name, grid and block.",
  copies: "Copies and memory sets: bytes and bandwidth.",
  streams: "What each stream did.",
  ranges: "What was launched in each range and in those within it; the delay is from the call to the begin of the work.",
  iterations: "What was launched in each iteration.",
  gaps: "The longest times without work, and the ranges around the launch that ended them.",
};

const MAX_ADVICE = 3;

/** What to do about the ranges that lose most, each sentence once. */
export function adviceOf(bound: TableData | undefined): string[] {
  const said = new Map<string, string>();
  const rows = bound?.cells[0]?.length ?? 0;
  for (let row = 0; bound !== undefined && row < rows && said.size < MAX_ADVICE; row++) {
    const advice = cellOf(bound, row, "advice"), verdict = cellOf(bound, row, "verdict");
    if (typeof advice !== "string" || said.has(advice)) continue;
    const share = Number(cellOf(bound, row, verdict === "launch-bound" ? "launch_wait_share" : "host_wait_share"));
    said.set(advice, `${String(cellOf(bound, row, "name"))} is ${String(verdict)}: the GPU waits for ${units.share(share)} of its time. ${advice}`);
  }
  return [...said.values()];
}

export class GpusView {
  readonly element = el("div", { class: "gpus" });

  /** `onName` is told names of ranges and kernels that were clicked. */
  constructor(tables: TableData[], onName: (name: string) => void) {
    const advice = adviceOf(tables.find((table) => table.name === "launch_bound"));
    const list = el("ul");
    for (const sentence of advice) append(list, el("li", {}, sentence));
    if (advice.length > 0) append(this.element, list);
    append(this.element, new Tables(tables, onName, "gpus", ABOUT_GPUS).element);
  }
}
