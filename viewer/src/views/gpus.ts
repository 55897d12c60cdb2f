// GPU activity, its launches, and waits for the host: the tables of `marey report --gpu`.

import type { TableData } from "../decode/format";
import { append, el } from "../ui/dom";
import { Tables } from "./tables";

export class GpusView {
  readonly element = el("div", { class: "gpus" });

  /** `onName` receives the name of a clicked range or kernel. */
  constructor(tables: TableData[], onName: (name: string) => void) {
    append(this.element, new Tables(tables, onName, "gpus").element);
  }
}
