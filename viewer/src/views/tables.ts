// All tables of the summary, one at a time.

import type { TableData } from "../decode/format";
import * as units from "../model/units";
import { append, clear, el } from "../ui/dom";
import { TableView } from "./table_view";

const ABOUT: Record<string, string> = {
  ranges: "Each name: count, total, typical and worst times. Self excludes the ranges inside.",
  tree: "Ranges as a call tree, the heaviest first.",
  threads: "Each name on each thread.",
  ranks: "Each name in each rank.",
  processes: "Each process: command, start, overhead of the measurement, and how it ended.",
  async: "Ranges that may end on another thread.",
  counters: "Values that the program reported.",
  marks: "Marks of the program.",
  open: "Ranges that were not ended.",
  iterations: "The time of each name per iteration, without warm-up.",
  iteration_ranks: "The iterations of each process, and how often it was the slowest.",
  throughput: "Iterations and training samples per second.",
  epochs: "Each epoch.",
  phases: "Each phase. Where there are steps, shares are of the steady part.",
  steady: "Self time of each name in the steady part: from the end of the warm-up, or of the first step, to the end of the last step.",
  outliers: "Outlier iterations, and the range that was longer in them.",
  rank_spread: "Each name over ranks: median, spread, minimum and maximum.",
  rank_times: "Each rank, the slowest first: difference from the median, how often it is slow, and in which range.",
  rank_outliers: "Outlier ranks, and the ranges in which they differ.",
  rank_hosts: "Each machine compared with the ranks on others.",
  sites: "Source position of each name.",
  warnings: "Missing or doubtful data.",
  kernels: "GPU activity by name.",
  copies: "Copies and memsets on GPUs: bytes and bandwidth.",
  gpu_ranges: "GPU activity by the range that launched it.",
  iteration: "The change of the whole iteration.",
  only: "Ranges that only one side has.",
  runs: "What was compared.",
  "energy of runs": "Joules and watts of each run, of the devices that it used. A figure's uncertainty is in joules, too.",
  "energy of devices": "Each measured device; sums exclude unused ones.",
  "energy of epochs": "Energy per epoch.",
  "energy of iterations": "Groups of iterations that are long enough for a result.",
  "energy of phases": "Energy per phase.",
  "energy of ranges": "Energy by range name; host time, so synchronize with the GPU at the start and end of a range.",
  "energy of repeats": "The mean of runs, with its 95 % confidence interval.",
  "energy notes": "Notes on these figures.",
  "epoch times": "Each epoch: the time of its slowest rank, and the phase in which that rank was slower.",
  "epoch averages": "First the slowest rank of each epoch, then each rank; without the first epoch.",
  "phases of epochs": "Phases of an epoch on a rank.",
  "epochs by rank": "Each epoch on each rank; the phases and other add up to its time.",
  quantiles: "The times below which 0, 1/32, 2/32 ... of a range's times lie, in each run.",
};

export class Tables {
  readonly element = el("div", { class: "tables" });
  private readonly place = el("div");
  private readonly views = new Map<string, HTMLElement>();
  private readonly select: HTMLSelectElement;
  private readonly tables: TableData[];

  /** `onName` receives the name of a clicked range; null: no timeline. */
  constructor(all: TableData[], private readonly onName: ((name: string) => void) | null, id = "summary", private readonly about = ABOUT) {
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
      const hasEvents = ["ranges", "tree", "threads", "ranks", "iterations", "rank_spread", "rank_outliers", "marks", "async", "kernels", "shapes", "launch_bound"].includes(table.name);
      view = new TableView(table, {
        caption: table.name,
        ...(hasEvents && this.onName ? { onName: this.onName } : {}),
      }).element;
      this.views.set(table.name, view);
    }
    append(this.place, el("p", { class: "faint" }, this.about[table.name] ?? ""), view);
  }
}
