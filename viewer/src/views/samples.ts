// What samplers saw: how sure that is, paths of functions as boxes, and the tables of `marey report --samples`.

import type { Profile } from "../decode/calls";
import type { TableData } from "../decode/format";
import { joinProfiles } from "../model/calls";
import { auditOf, notesOf, whatCounts } from "../model/samples";
import { append, el } from "../ui/dom";
import { CallsView } from "./calls";
import { Tables } from "./tables";

const ABOUT_SAMPLES: Record<string, string> = {
  lines: "Each line of the program: time in which it was innermost, and with what it calls. What most of its waiting samples wait for is beside it.",
  functions: "Each function. The error is half of the interval in which the share lies in 95 of 100 such recordings.",
  threads: "Each thread: how much of its samples were on a processor, and held the interpreter lock.",
  waits: "What threads waited for, and where.",
  processes: "Each process that was sampled.",
  ranks: "Each rank.",
  files: "Each file.",
  modules: "Each module or library.",
  stacks: "Each stack, the outermost frame first.",
  gil: "Who held the interpreter lock, and who waited for it.",
  audit: "What sampling itself was like: rounds that came and did not, samples that are doubtful, what it cost the program.",
  totals: "What these figures are made of.",
  notes: "What there is to know about these figures.",
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
