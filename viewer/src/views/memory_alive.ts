// Live memory at one time, by category and by stack.

import { CATEGORIES, type Group, type Memory, placeOf } from "../model/memory";
import * as units from "../model/units";
import { append, clear, el } from "../ui/dom";

const MOST = 200; // rows

function head(...titles: [string, boolean][]): HTMLElement {
  return el("thead", { class: "plain" }, el("tr", {}, ...titles.map(([title, isNumber]) => el("th", { scope: "col", class: isNumber ? "number" : "" }, title))));
}

function swatch(category: number): HTMLElement {
  const box = el("span", { class: "swatch", "aria-hidden": "true" });
  box.style.background = CATEGORIES[category].color;
  return box;
}

function number(text: string): HTMLElement {
  return el("td", { class: "number" }, text);
}

export class Alive {
  readonly element = el("div", { class: "alive" });

  constructor(private readonly stacks: string[]) {}

  show(title: string, memory: Memory, change: number): void {
    const groups = memory.alive(change);
    const total = memory.total(change);
    clear(this.element);
    append(
      this.element,
      el("section", { class: "card", "aria-label": "By category" }, el("h2", {}, `${title}, by category`), this.byCategory(groups, total)),
      el("section", { class: "card", "aria-label": "By stack" }, el("h2", {}, `${title}, by allocation site`), this.byStack(groups, total)),
    );
  }

  private byCategory(groups: Group[], total: number): HTMLElement {
    const body = el("tbody");
    CATEGORIES.forEach(({ title }, c) => {
      const own = groups.filter((group) => group.category === c);
      if (own.length === 0) return;
      const bytes = own.reduce((sum, group) => sum + group.bytes, 0), count = own.reduce((sum, group) => sum + group.count, 0);
      append(body, el("tr", {}, el("th", { scope: "row" }, swatch(c), title), number(units.bytes(bytes)), number(units.share(total > 0 ? bytes / total : 0)), number(units.count(count))));
    });
    append(body, el("tr", { class: "sum" }, el("th", { scope: "row" }, "all"), number(units.bytes(total)), number(""), number(units.count(groups.reduce((sum, group) => sum + group.count, 0)))));
    return el("table", {}, head(["category", false], ["size", true], ["share", true], ["blocks", true]), body);
  }

  /** A name from a role, else the allocation site; the whole stack can be expanded. */
  private place(group: Group): HTMLElement {
    const stack = this.stacks[group.stack] ?? "";
    const text = [group.name, placeOf(stack)].filter((part) => part !== "").join(" \u00b7 ");
    if (stack === "") return el("span", {}, text !== "" ? text : "made before the window");
    const frames = stack.split(";").filter((frame) => frame !== "").join("\n");
    return el("details", {}, el("summary", { title: text }, text), el("pre", {}, frames));
  }

  private byStack(groups: Group[], total: number): HTMLElement {
    const body = el("tbody");
    for (const group of groups.slice(0, MOST)) {
      append(
        body,
        el("tr", {}, number(units.bytes(group.bytes)), number(units.share(total > 0 ? group.bytes / total : 0)), number(units.count(group.count)), el("td", {}, swatch(group.category), CATEGORIES[group.category].title), el("td", { class: "place" }, this.place(group))),
      );
    }
    const table = el("table", {}, head(["size", true], ["share", true], ["blocks", true], ["category", false], ["where", false]), body);
    const rest = groups.slice(MOST);
    if (rest.length === 0) return el("div", { class: "table-scroll" }, table);
    const bytes = rest.reduce((sum, group) => sum + group.bytes, 0);
    return el("div", { class: "table-scroll" }, table, el("p", { class: "faint" }, `and ${units.countOf(rest.length, "more place")} with ${units.bytes(bytes)}`));
  }
}
