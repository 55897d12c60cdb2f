// Samples: their quality, paths of functions as boxes, and the tables of `marey report --samples`.

import type { Profile } from "../decode/calls";
import type { TableData } from "../decode/format";
import { joinProfiles } from "../model/calls";
import { auditOf, notesOf, whatCounts } from "../model/samples";
import { append, el } from "../ui/dom";
import { CallsView } from "./calls";
import { Tables } from "./tables";

export class SamplesView {
  readonly element = el("div", { class: "samples" });
  private readonly calls: CallsView;

  constructor(profiles: Profile[], tables: TableData[]) {
    const find = (name: string): TableData | undefined => tables.find((table) => table.name === name);
    this.calls = new CallsView(joinProfiles(profiles));
    const audit = el("ul", { class: "audit" });
    for (const sentence of [...auditOf(find("audit")), ...notesOf(find("notes"))]) append(audit, el("li", {}, sentence));
    append(this.element, el("p", {}, whatCounts(find("totals"))), audit, this.calls.element, el("h3", {}, "Tables"), new Tables(tables, null, "samples").element);
  }

  redraw(): void {
    this.calls.redraw();
  }
}
