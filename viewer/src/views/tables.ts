// All tables of the summary, one at a time.

import type { TableData } from "../decode/format";
import * as units from "../model/units";
import { append, clear, el } from "../ui/dom";
import { TableView } from "./table_view";

/** "copies and memsets" as "Copies and memsets." */
function sentence(help: string | undefined): string {
  return help ? `${help[0].toUpperCase()}${help.slice(1)}.` : "";
}

export class Tables {
  readonly element = el("div", { class: "tables" });
  private readonly place = el("div");
  private readonly views = new Map<string, HTMLElement>();
  private readonly select: HTMLSelectElement;
  private readonly tables: TableData[];

  /** `onName` receives the name of a clicked range; null: no timeline. */
  constructor(all: TableData[], private readonly onName: ((name: string) => void) | null, id = "summary") {
    const tables = (this.tables = all.filter((table) => table.rows > 0));
    this.select = el("select", { id: `table-of-${id}`, onchange: () => this.show(tables[this.select.selectedIndex]) });
    for (const table of tables) {
      append(this.select, el("option", {}, `${table.name} (${units.count(table.rows)})`));
    }
    append(this.element, el("div", { class: "chooser" }, el("label", { for: `table-of-${id}` }, "Table "), this.select), this.place);
    if (tables.length > 0) this.show(tables[0]);
    else append(this.place, el("p", { class: "empty" }, "There is nothing to show."));
  }

  /** Show the table of this name, if it exists. */
  choose(name: string): void {
    const i = this.tables.findIndex((table) => table.name === name);
    if (i < 0) return;
    this.select.selectedIndex = i;
    this.show(this.tables[i]);
  }

  private show(table: TableData): void {
    clear(this.place);
    let view = this.views.get(table.name);
    if (view === undefined) {
      const hasNames = table.columns.some((column) => column.name === "name");
      view = new TableView(table, {
        caption: table.name,
        ...(hasNames && this.onName ? { onName: this.onName } : {}),
      }).element;
      this.views.set(table.name, view);
    }
    append(this.place, el("p", { class: "faint" }, sentence(table.help)), view);
  }
}
