// Calls: paths of functions as nested boxes, a table of functions, and details of the chosen function.

import { ChangeColors } from "../model/call_changes";
import { type CallTable, functionTable } from "../model/call_tables";
import { type CallTree, type Calls, OTHER, THIS, type TreeWish, growTree, isSampled, placeOf } from "../model/calls";
import { GREY, NameColors } from "../model/colors";
import { type Found, findBoxes } from "../model/flame";
import * as units from "../model/units";
import { announce, append, clear, el } from "../ui/dom";
import { keyHints } from "../ui/keys";
import { isDark, onTheme } from "../ui/theme";
import { CallDetails } from "./call_details";
import { FLAME_HINTS } from "./flame";
import { FlamePicture } from "./flame_picture";
import { TableView } from "./table_view";

const NONE = -1;
const PS_PER_NS = 1000;

/** A labelled select element: [value, text] each. */
function chooser(label: string, choices: [string, string][], onChange: (value: string) => void): HTMLSelectElement {
  const select = el("select", { "aria-label": label, onchange: () => onChange(select.value) }, ...choices.map(([value, text]) => el("option", { value }, text)));
  return select;
}

export class CallsView {
  readonly element = el("div", { class: "calls flame" });
  private readonly wish: TreeWish;
  private readonly trees = new Map<string, CallTree>();
  private readonly picture: FlamePicture;
  private readonly details: CallDetails;
  private readonly facts = el("p", { class: "facts" });
  private readonly noun: "call" | "sample";
  private readonly search = el("input", { type: "search", placeholder: "Search functions" });
  private readonly found = el("span", { class: "found", role: "status" });
  private readonly tablePlace = el("div");
  private readonly legend = el("p", { class: "hint legend" });
  private readonly boxesOf: HTMLSelectElement;
  private readonly colors: NameColors;
  private tree: CallTree;
  private functions: CallTable;
  private table: TableView;
  private changes: ChangeColors | null = null;
  private chosen = NONE; // a function
  private chosenSignature = NONE;

  constructor(private readonly calls: Calls) {
    this.noun = isSampled(calls) ? "sample" : "call";
    this.search.setAttribute("aria-label", `Search the ${this.noun}s`);
    onTheme(() => this.readChanges()); // before the chart uses them
    this.wish = { bySignature: false, thread: NONE, weight: "time", sides: calls.profiles.map((_, side) => side) };
    this.tree = this.grow(false);
    this.functions = functionTable(calls, this.tree);
    this.table = this.makeTable();
    this.colors = new NameColors(this.functions.table.cells[0].map(String));
    this.picture = new FlamePicture(this.tree.flame, {
      label: this.noun === "sample" ? "Samples" : "Calls",
      keys: `${this.noun}s-keys`,
      color: (node) => this.color(node),
      onPoint: (node) => this.describe(node >= 0 ? node : this.picture.picked),
      onPick: (node) => this.onPick(node),
      onSearch: () => this.search.focus(),
    });
    this.picture.isFramed = (node) => this.tree.func[node] === this.chosen && (this.chosenSignature === NONE || this.tree.signature[node] === this.chosenSignature);
    this.details = new CallDetails(calls, { onSignature: (signature) => this.chooseSignature(signature), onFunction: (func) => this.choose(func) });
    this.boxesOf = chooser("Boxes", [["function", "By function"], ["signature", "By signature"]], () => this.rebuild());
    this.build();
    this.readChanges();
    this.describe(0);
  }

  redraw(): void {
    this.picture.redraw();
  }

  // ---- the page ----

  private build(): void {
    const { calls, wish } = this;
    const shape = chooser("Shape", [["icicle", "Icicle"], ["flame", "Flame"]], (value) => this.picture.turn(value === "flame"));
    const threads = chooser("Threads", [["-1", "All threads"], ...calls.threads.map((name, i): [string, string] => [String(i), name])], (value) => {
      wish.thread = Number(value);
      this.rebuild();
    });
    const sides = chooser("Widths", [["0 1", "Widths: both"], ["0", "Widths: this profile"], ["1", "Widths: before"]], (value) => {
      wish.sides = value.split(" ").map(Number);
      this.rebuild();
    });
    const weight = chooser("Time", [["time", calls.profiles[THIS].is_cpu_time ? "CPU time" : "Time"], ["gpu", "GPU time"]], (value) => {
      wish.weight = value === "gpu" ? "gpu" : "time";
      this.rebuild();
    });
    this.search.addEventListener("input", () => this.find(this.search.value));
    append(
      this.element,
      el(
        "div",
        { class: "timeline-tools", role: "toolbar", "aria-label": this.noun === "sample" ? "Samples" : "Calls" },
        this.search,
        this.found,
        el("span", { class: "spring" }),
        shape,
        calls.signatures.length > 1 && this.boxesOf,
        calls.threads.length > 1 && threads,
        calls.profiles.length > 1 && sides,
        calls.sums.gpu.some((ns) => ns > 0) && weight,
        el("button", { type: "button", onclick: () => this.showAll() }, "Show all"),
      ),
      this.facts,
      this.picture.element,
      this.legend,
      el("p", { class: "hint" }, `Width is the time of ${this.noun === "sample" ? "the samples of a path" : "a path of calls"}; boxes below a box, or above it in a flame graph, are its callees. Boxes too narrow to draw are pale grey. Click a box to zoom to it; Ctrl and the wheel, or two fingers, zoom at the pointer; choose a row to highlight its function.`),
      keyHints(`${this.noun}s-keys`, FLAME_HINTS),
      this.notes(),
      el("div", { class: "calls-below" }, this.tablePlace, this.details.element),
    );
    append(this.tablePlace, this.table.element);
  }

  private notes(): HTMLElement | null {
    const list = el("ul", { class: "hint" });
    this.calls.profiles.forEach((profile) => {
      const say = (text: string): void =>
        append(list, el("li", {}, this.calls.profiles.length > 1 ? `${profile.title}: ${text}` : text.charAt(0).toUpperCase() + text.slice(1)));
      if (profile.other_paths > 0) say(`the paths of ${units.countOf(profile.other_paths, "call")} were not kept, because the profile's memory budget was used up; these calls are in "(other paths)".`);
      if (profile.widened > 0) say(`some functions were called with too many shapes; ${units.count(profile.widened)} shapes were merged.`);
      if (profile.cost_ps > 0) say(`these times include an overhead of about ${units.fineDuration(profile.cost_ps / PS_PER_NS)} per call.`);
    });
    return list.childElementCount > 0 ? list : null;
  }

  private makeTable(): TableView {
    return new TableView(this.functions.table, { caption: "Functions", onName: (_, row) => this.choose(this.functions.about[row]) });
  }

  // ---- trees ----

  private grow(bySignature: boolean): CallTree {
    const wish = { ...this.wish, bySignature }, key = JSON.stringify(wish);
    let tree = this.trees.get(key);
    if (tree === undefined) {
      tree = growTree(this.calls, wish);
      this.trees.set(key, tree);
    }
    return tree;
  }

  /** After a change of the selection. The chosen function stays chosen if it still exists. */
  private rebuild(): void {
    const bySignature = this.boxesOf.value === "signature", before = this.tree;
    this.tree = this.grow(bySignature);
    const plain = this.grow(false);
    if (!bySignature) this.chosenSignature = NONE;
    if (this.tree === before) return;
    this.functions = functionTable(this.calls, plain);
    this.table = this.makeTable();
    clear(this.tablePlace);
    append(this.tablePlace, this.table.element);
    this.readChanges();
    this.picture.matches = null;
    this.picture.show(this.tree.flame, 0);
    this.showChosen();
    this.describe(0);
    if (this.search.value.trim() !== "") this.find(this.search.value);
  }

  private readChanges(): void {
    const [now, before] = this.tree.sums;
    if (before === undefined) return;
    this.changes = new ChangeColors(now.self.map((self, node) => self - before.self[node]), isDark());
    clear(this.legend);
    append(this.legend, "Change of self time: ");
    for (const [css, from] of this.changes.legend()) {
      const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = css;
      append(this.legend, swatch, ` ${from === 0 ? "about the same" : units.change(from)} `);
    }
  }

  private color(node: number): string {
    const { func } = this.tree, [now, before] = this.tree.sums;
    if (this.changes !== null && before !== undefined) return this.changes.of(now.self[node] - before.self[node]);
    return func[node] === 0 ? GREY : this.colors.ofName(this.functionName(func[node]));
  }

  private functionName(func: number): string {
    const [name, qualified] = this.calls.functions[func];
    return qualified !== "" ? qualified : name;
  }

  // ---- selection ----

  private onPick(node: number): void {
    this.mark(null);
    this.chosen = node === 0 ? NONE : this.tree.func[node];
    this.chosenSignature = NONE;
    this.showChosen();
    this.describe(node);
    announce(this.facts.textContent ?? "");
  }

  /** Highlight all boxes of a function of the table. */
  private choose(func: number): void {
    this.chosen = func;
    this.chosenSignature = NONE;
    this.standOut((node) => this.tree.func[node] === func);
    this.showChosen();
    announce(`${this.functionName(func)}: ${this.found.textContent ?? ""}`);
  }

  /** A signature: the chart splits boxes by signature from now on. */
  private chooseSignature(signature: number): void {
    const func = this.chosen;
    this.boxesOf.value = "signature";
    this.rebuild();
    this.chosen = func;
    this.chosenSignature = signature;
    this.standOut((node) => this.tree.func[node] === func && this.tree.signature[node] === signature);
    announce(this.found.textContent ?? "");
  }

  private standOut(isWanted: (node: number) => boolean): void {
    const { picture } = this, result = findBoxes(this.tree.flame, isWanted);
    this.search.value = "";
    picture.picked = result.widest;
    picture.sightOn(0);
    this.mark(result);
    picture.reveal(picture.picked);
    this.describe(picture.picked);
  }

  private showChosen(): void {
    this.table.choose(this.functions.about.indexOf(this.chosen));
    if (this.chosen === NONE) this.details.showNone();
    else this.details.show(this.chosen, this.grow(false), this.grow(true));
    this.picture.redraw();
  }

  private showAll(): void {
    this.search.value = "";
    this.picture.picked = 0;
    this.picture.zoom(0);
  }

  // ---- words ----

  private mark(found: Found | null): void {
    const { flame } = this.tree;
    this.picture.matches = found === null ? null : found.matches;
    const part = found !== null && flame.total[0] > 0 ? found.total / flame.total[0] : 0;
    this.found.textContent = found === null ? "" : `${units.countOf(found.count, "box")} found, ${units.duration(found.total)}, ${units.share(part)}`;
    this.picture.redraw();
  }

  /** Names of functions, their files and arguments. */
  private find(word: string): void {
    const wanted = word.trim().toLowerCase(), { calls, tree } = this;
    if (wanted === "") {
      this.mark(null);
      return;
    }
    const has = (text: string): boolean => text.toLowerCase().includes(wanted);
    const byFunction = calls.functions.map(([name, qualified, file]) => has(name) || has(qualified) || has(file));
    const bySignature = calls.signatures.map(([, text]) => has(text));
    this.mark(findBoxes(tree.flame, (node) => byFunction[tree.func[node]] || bySignature[tree.signature[node]]));
  }

  private describe(node: number): void {
    const { flame, sums, func } = this.tree, [now, before] = sums;
    const part = flame.total[0] > 0 ? units.share(flame.total[node] / flame.total[0]) : "", where = placeOf(this.calls, func[node]);
    if (node === 0) {
      const whole = (side: number): string => units.duration(sums[side].self.reduce((sum, self) => sum + self, 0));
      this.facts.textContent = before === undefined ? `all: ${whole(THIS)} in ${this.noun}s` : `all: ${whole(THIS)} in ${this.noun}s of ${this.calls.titles[THIS]}, ${whole(OTHER)} in ${this.calls.titles[OTHER]}`;
      return;
    }
    const change = before === undefined ? "" : `; before ${units.duration(before.total[node])}, itself ${units.change(now.self[node] - before.self[node])}`;
    const gpu = now.gpu[node] > 0 ? `; GPU ${units.duration(now.gpu[node])}` : "";
    this.facts.textContent =
      `${flame.name[node]}${where !== "" ? ` (${where})` : ""}: ${units.duration(now.total[node])}, ${part}; ` +
      `itself ${units.duration(now.self[node])}; ${units.countOf(now.calls[node], this.noun)}${change}${gpu}`;
  }
}
