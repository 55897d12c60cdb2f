// Details of one function: source position, signatures, callers and callees.

import { type CallTable, calleeTable, callerTable, signatureTable, sumsOf } from "../model/call_tables";
import { type CallTree, type Calls, OTHER, THIS, isSampled, nameOf } from "../model/calls";
import * as units from "../model/units";
import { append, clear, el } from "../ui/dom";
import { TableView } from "./table_view";

const KINDS = ["", "built-in", "compiled"];

export interface DetailsOptions {
  onSignature: (signature: number) => void;
  onFunction: (func: number) => void;
}

export class CallDetails {
  readonly element = el("section", { class: "card call-details", "aria-label": "The chosen function" });

  constructor(private readonly calls: Calls, private readonly options: DetailsOptions) {
    this.showNone();
  }

  showNone(): void {
    clear(this.element);
    append(this.element, el("p", { class: "faint" }, `Choose a function in the chart or in the table to see its ${isSampled(this.calls) ? "" : "signatures, "}callers and callees.`));
  }

  /** `tree` has a box for each function, `split` one for each signature. */
  show(func: number, tree: CallTree, split: CallTree): void {
    const { calls } = this;
    clear(this.element);
    append(this.element, el("h3", {}, nameOf(calls, func, 0)), this.about(func), el("p", { class: "facts" }, this.sums(func, tree)));
    this.add("Called with", signatureTable(calls, split, func), this.options.onSignature);
    this.add("Called by", callerTable(calls, tree, func), this.options.onFunction);
    this.add("Calls", calleeTable(calls, tree, func), this.options.onFunction);
  }

  private about(func: number): HTMLElement {
    const [, , file, line, module, kind] = this.calls.functions[func];
    const where = file === "" || file === "~" ? "" : `${file}${line > 0 ? `:${line}` : ""}`;
    const words = [where, module !== "" ? `module ${module}` : "", KINDS[kind] ?? ""].filter((word) => word !== "");
    return el("p", { class: "faint where" }, words.join(", "));
  }

  private sums(func: number, tree: CallTree): string {
    const [now, before] = [sumsOf(tree, func)[THIS], sumsOf(tree, func)[OTHER]];
    const text = (sums: typeof now): string =>
      `${isSampled(this.calls) ? units.countOf(sums.outermost, "sample") : units.countOf(sums.calls, "call")}; itself ${units.duration(sums.self)}, with what it calls ${units.duration(sums.total)}`;
    return before === undefined ? text(now) : `${text(now)}. Before: ${text(before)}`;
  }

  private add(title: string, { table, about }: CallTable, onRow: (about: number) => void): void {
    // A function without signatures has nothing to split.
    if (table.rows === 0 || (table.name === "signatures" && about.every((signature) => signature === 0))) return;
    const view = new TableView(table, { caption: `${title} (${table.name})`, isBare: true, onName: (_, row) => about[row] >= 0 && onRow(about[row]) });
    append(this.element, el("h4", {}, title), view.element);
  }
}
