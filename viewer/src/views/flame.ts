// The flame graph: width is time, callees are below callers.

import { type Colors, GREY } from "../model/colors";
import { type Flame, buildFlame, searchFlame } from "../model/flame";
import { type Recording, tableOf } from "../model/recording";
import { keptRows } from "../model/tables";
import * as units from "../model/units";
import { announce, append, el } from "../ui/dom";
import { type Hint, keyHints } from "../ui/keys";
import { FlamePicture } from "./flame_picture";

export const FLAME_HINTS: Hint[] = [
  [["\u2190", "\u2192", "\u2191", "\u2193"], "go from box to box"],
  [["Enter"], "zoom to it"],
  [["+", "-"], "wider, narrower"],
  [["Esc"], "back out"],
  [["/"], "search"],
];

export class FlameView {
  readonly element = el("div", { class: "flame" });
  private readonly flame: Flame;
  private readonly picture: FlamePicture;
  private readonly facts = el("p", { class: "facts" });
  private readonly search = el("input", { type: "search", placeholder: "Search names", "aria-label": "Search the flame graph" });
  private readonly found = el("span", { class: "found", role: "status" });
  private readonly finder = el("button", { type: "button", onclick: () => this.onName(this.flame.name[this.picture.picked]) }, "Find on the timeline");

  /** `onName` receives a name to find on the timeline; `onTable` opens the data as a table. */
  constructor(
    recording: Recording,
    colors: Colors,
    private readonly onName: (name: string) => void,
    private readonly onTable: () => void,
  ) {
    const tree = tableOf(recording, "tree") ?? { name: "tree", rows: 0, columns: [], cells: [] };
    const flame = (this.flame = buildFlame(tree));
    this.picture = new FlamePicture(flame, {
      label: "Flame graph",
      keys: "flame-keys",
      color: (node) => (flame.areOthers[node] ? GREY : colors.ofName(flame.name[node])),
      onPoint: (node) => this.describe(node >= 0 ? node : this.picture.picked),
      onPick: (node) => {
        this.describe(node);
        announce(this.facts.textContent ?? "");
      },
      onSearch: () => this.search.focus(),
    });
    this.build(tree.rows - keptRows(tree));
    this.describe(0);
  }

  redraw(): void {
    this.picture.redraw();
  }

  private build(nLeftOut: number): void {
    this.search.addEventListener("input", () => this.find(this.search.value));
    append(
      this.element,
      el(
        "div",
        { class: "timeline-tools", role: "toolbar", "aria-label": "Flame graph" },
        this.search,
        this.found,
        el("span", { class: "spring" }),
        this.finder,
        el("button", { type: "button", title: "The same as a table", onclick: () => this.onTable() }, "Table"),
        el("button", { type: "button", onclick: () => this.picture.zoom(0) }, "Show all"),
      ),
      this.facts,
      this.picture.element,
      el("p", { class: "hint" }, "Width is total time; the part of a box without boxes below it is self time. Boxes too narrow to draw are pale grey. Click a box to zoom to it; Ctrl and the wheel, or two fingers, zoom at the pointer."),
      keyHints("flame-keys", FLAME_HINTS),
      nLeftOut > 0 ? el("p", { class: "hint" }, `${units.countOf(nLeftOut, "path")} of little time ${nLeftOut === 1 ? "is" : "are"} not in this page; grey boxes, "(3 others)" for instance, are as wide as they were.`) : null,
    );
  }

  private describe(node: number): void {
    const { flame } = this, { picked } = this.picture;
    this.finder.disabled = picked === 0 || flame.areOthers[picked] === 1;
    const part = flame.total[0] > 0 ? units.share(flame.total[node] / flame.total[0]) : "";
    this.facts.textContent =
      node === 0
        ? `all: ${units.duration(flame.total[0])} in ranges`
        : `${flame.name[node]}: ${units.duration(flame.total[node])}, ${part}; itself ${units.duration(flame.self[node])}; ${units.countOf(flame.count[node], "call")}`;
  }

  private find(word: string): void {
    if (word.trim() === "") {
      this.picture.matches = null;
      this.found.textContent = "";
    } else {
      const result = searchFlame(this.flame, word);
      this.picture.matches = result.matches;
      const part = this.flame.total[0] > 0 ? result.total / this.flame.total[0] : 0;
      this.found.textContent = `${units.countOf(result.count, "box")} found, ${units.duration(result.total)}, ${units.share(part)}`;
    }
    this.picture.redraw();
  }
}
