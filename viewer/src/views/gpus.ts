// GPU activity, its launches, and waits for the host: the tables of `marey report --gpu`.

import type { TableData } from "../decode/format";
import { append, el } from "../ui/dom";
import { Tables } from "./tables";

export const ABOUT_GPUS: Record<string, string> = {
  launch_bound: "Where GPUs wait for the host: waits of up to 100 \u00b5s are launch wait, longer ones host wait. The verdict names the larger one if it is at least a tenth of the span.",
  devices: "Busy time of each device, and its waits by cause.",
  kernels: "Work by name; the share is of the time in which GPUs were busy.",
  shapes: "Kernels by name, grid and block.",
  copies: "Copies and memsets: bytes and bandwidth.",
  streams: "What each stream did.",
  ranges: "GPU activity launched in each range and its children; the delay is from the call to the start of the work.",
  iterations: "GPU activity launched in each iteration.",
  gaps: "The longest times without work, and the ranges around the launch that ended them.",
};

export class GpusView {
  readonly element = el("div", { class: "gpus" });

  /** `onName` receives the name of a clicked range or kernel. */
  constructor(tables: TableData[], onName: (name: string) => void) {
    append(this.element, new Tables(tables, onName, "gpus", ABOUT_GPUS).element);
  }
}
