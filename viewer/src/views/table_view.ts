// A table with sorting, filtering and copying. It is a <table> element; long tables are shown in pieces.

import type { Column, TableData } from "../decode/format";
import { cellText, filterRows, keptRows, sortRows, toCsv } from "../model/tables";
import * as units from "../model/units";
import { announce, append, clear, copyText, el } from "../ui/dom";

const PIECE = 200; // rows shown at first, and more with each click

const TITLES = ["name", "function"]; // columns that identify a row

export interface TableOptions {
  caption: string;
  onName?: (name: string, row: number) => void; // a click on the name of a row
  isBare?: boolean; // without toolbar
}

export class TableView {
  readonly element: HTMLElement;
  private readonly head = el("thead");
  private readonly body = el("tbody");
  private readonly foot = el("div", { class: "table-foot" });
  private rows: number[];
  private sorted = -1;
  private descending = true;
  private shown = PIECE;
  private word = "";
  private chosen = -1;

  constructor(private readonly table: TableData, private readonly options: TableOptions) {
    this.rows = filterRows(table, "");
    const filter = el("input", {
      type: "search",
      placeholder: "Filter",
      "aria-label": `Filter the table ${options.caption}`,
      oninput: () => this.filter(filter.value),
    });
    const tools = el(
      "div",
      { class: "table-tools" },
      filter,
      el("button", { type: "button", onclick: () => void this.copy() }, "Copy as CSV"),
    );
    const grid = el("table", {}, el("caption", { class: "offscreen" }, options.caption), this.head, this.body);
    this.element = el(
      "div",
      { class: "table-view" },
      options.isBare ? null : tools,
      el("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": options.caption }, grid),
      this.foot,
    );
    this.drawHead();
    this.draw();
  }

  /** Mark a row and scroll it into view, if it passes the filter; -1: none. */
  choose(row: number): void {
    this.chosen = row;
    const at = this.rows.indexOf(row);
    this.body.querySelector("[aria-current]")?.removeAttribute("aria-current");
    if (at >= this.shown) {
      this.shown = at + PIECE;
      this.draw();
    }
    const element = this.body.children[at], scroll = this.element.querySelector(".table-scroll");
    if (!(element instanceof HTMLElement) || scroll === null) return;
    element.setAttribute("aria-current", "true");
    // Scroll only the table, not the page.
    const top = element.offsetTop - (this.head.offsetHeight || 0);
    if (top < scroll.scrollTop || element.offsetTop + element.offsetHeight > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top;
  }

  private filter(word: string): void {
    this.word = word;
    this.shown = PIECE;
    this.arrange();
    announce(`${units.countOf(this.rows.length, "row")}`);
  }

  private arrange(): void {
    this.rows = filterRows(this.table, this.word);
    if (this.sorted >= 0) this.rows = sortRows(this.table, this.rows, this.sorted, this.descending);
    this.draw();
  }

  /** Numbers descending, strings ascending; a second click reverses the order. */
  private sortBy(column: number): void {
    if (this.sorted === column) this.descending = !this.descending;
    else this.descending = this.table.columns[column].type !== "text";
    this.sorted = column;
    this.arrange();
    this.drawHead();
    (this.head.querySelectorAll("button")[column] as HTMLElement | undefined)?.focus();
    announce(`sorted by ${this.table.columns[column].title}, ${this.descending ? "descending" : "ascending"}`);
  }

  private async copy(): Promise<void> {
    const done = await copyText(toCsv(this.table, this.rows));
    announce(done ? `${units.countOf(this.rows.length, "row")} copied` : "the browser did not allow copying");
  }

  private drawHead(): void {
    clear(this.head);
    const cells = this.table.columns.map((column, c) => {
      const isSorted = c === this.sorted;
      const mark = isSorted ? (this.descending ? " \u25bc" : " \u25b2") : "";
      return el(
        "th",
        {
          scope: "col",
          class: isNumber(column) ? "number" : "",
          "aria-sort": isSorted ? (this.descending ? "descending" : "ascending") : undefined,
        },
        el("button", { type: "button", title: column.name, onclick: () => this.sortBy(c) }, column.title + mark),
      );
    });
    this.head.append(el("tr", {}, ...cells));
  }

  private drawCell(column: Column, c: number, row: number): HTMLElement {
    const cell = this.table.cells[c][row];
    const text = cellText(cell, column);
    if (column.unit === "share" && typeof cell === "number") {
      const bar = el("span", { class: "bar", "aria-hidden": "true" });
      bar.style.width = `${Math.max(0, Math.min(100, cell * 100))}%`;
      return el("td", { class: "number share" }, bar, el("span", {}, text));
    }
    if (!TITLES.includes(column.name)) {
      return el("td", { class: isNumber(column) ? "number" : "", title: exact(cell, column) }, text);
    }
    const depth = this.depthOf(row);
    const { onName } = this.options;
    const inner = onName
      ? el("button", { type: "button", class: "link", title: text, onclick: () => onName(text, row) }, text)
      : el("span", { title: text }, text);
    inner.style.marginLeft = `${depth * 1.1}em`;
    return el("th", { scope: "row" }, inner);
  }

  /** For a tree in its original order. */
  private depthOf(row: number): number {
    const column = this.table.columns.findIndex((c) => c.name === "depth");
    return column < 0 || this.sorted >= 0 || this.word !== "" ? 0 : Math.min(40, Number(this.table.cells[column][row]));
  }

  private draw(): void {
    clear(this.body);
    const { columns } = this.table;
    for (const row of this.rows.slice(0, this.shown)) {
      this.body.append(el("tr", { "aria-current": row === this.chosen ? "true" : undefined }, ...columns.map((column, c) => this.drawCell(column, c, row))));
    }
    this.drawFoot();
  }

  private drawFoot(): void {
    clear(this.foot);
    const hidden = this.rows.length - this.shown, kept = keptRows(this.table);
    if (this.rows.length === 0) append(this.foot, el("p", {}, "No rows."));
    if (hidden > 0) {
      const more = (): void => {
        this.shown += PIECE * 5;
        this.draw();
      };
      append(this.foot, el("button", { type: "button", onclick: more }, `Show more (${units.count(hidden)} left)`));
    }
    if (kept < this.table.rows) {
      const text = `The page has ${units.count(kept)} of ${units.count(this.table.rows)} rows; marey report --csv has all.`;
      append(this.foot, el("p", {}, text));
    }
  }
}

function isNumber(column: Column): boolean {
  return column.type !== "text" && column.type !== "bool";
}

/** The exact value of a rounded number. */
function exact(cell: unknown, column: Column): string | undefined {
  return column.unit === "ns" && typeof cell === "number" ? units.exactNs(cell) : undefined;
}
