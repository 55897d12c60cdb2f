// Samples: their quality, paths of functions as boxes, and the tables of `marey report --samples`.

import type { Profile } from "../decode/calls";
import type { TableData } from "../decode/format";
import { joinProfiles } from "../model/calls";
import { auditOf, notesOf, whatCounts } from "../model/samples";
import { append, el } from "../ui/dom";
import { CallsView } from "./calls";
import { Tables } from "./tables";

const ABOUT_SAMPLES: Record<string, string> = {
  lines: "Each line of the program: self time, total time including callees, and the most frequent wait of its waiting samples.",
  functions: "Each function. The error is half of the 95 % confidence interval of the share.",
  threads: "Each thread: share of its samples on a CPU core, and holding the GIL.",
  waits: "Waits of threads by cause and place.",
  processes: "Each process that was sampled.",
  ranks: "Each rank.",
  files: "Each file.",
  modules: "Each module or library.",
  stacks: "Each stack, the outermost frame first.",
  gil: "Threads that held the GIL, and threads that waited for it.",
  audit: "Quality of the sampling: completed and missed rounds, doubtful samples, overhead.",
  totals: "Totals that these figures are based on.",
  notes: "Notes on these figures.",
};

export class SamplesView {
  readonly element = el("div", { class: "samples" });
  private readonly calls: CallsView;

  constructor(profiles: Profile[], tables: TableData[]) {
    const find = (name: string): TableData | undefined => tables.find((table) => table.name === name);
    this.calls = new CallsView(joinProfiles(profiles));
    const audit = el("ul", { class: "audit" });
    for (const sentence of [...auditOf(find("audit")), ...notesOf(find("notes"))]) append(audit, el("li", {}, sentence));
    append(this.element, el("p", {}, whatCounts(find("totals"))), audit, this.calls.element, el("h3", {}, "Tables"), new Tables(tables, null, "samples", ABOUT_SAMPLES).element);
  }

  redraw(): void {
    this.calls.redraw();
  }
}
