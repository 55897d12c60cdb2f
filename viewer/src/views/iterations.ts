// Iterations: times over iterations and their distribution, for the whole iteration and for each name in it.

import { LINE_COLORS } from "../model/colors";
import { type Recording, tableOf } from "../model/recording";
import { type Series, WARMUP, counted, histogram, seriesNames, seriesOf, thin, warmups } from "../model/series";
import { columnOf } from "../model/tables";
import type { TableData } from "../decode/format";
import * as units from "../model/units";
import { Chart, type Line, timeText } from "../ui/chart";
import { append, clear, el } from "../ui/dom";
import { TableView } from "./table_view";

const POINTS = 4000; // of a line
const LINES = 8; // processes with a separate line
const BINS = 60;

export class Iterations {
  readonly element = el("div", { class: "iterations" });
  private readonly names: string[];
  private readonly which = el("select", { id: "which-range" });
  private readonly who = el("select", { id: "which-process" });
  private readonly line = new Chart();
  private readonly bars = new Chart();
  private readonly facts = el("div");
  private readonly shade = el("p", { class: "hint" });

  constructor(private readonly recording: Recording) {
    this.names = seriesNames(recording);
    for (const name of this.names) append(this.which, el("option", {}, name));
    append(this.who, el("option", { value: -1 }, "all processes"));
    for (const series of seriesOf(recording, this.names[0] ?? "")) {
      append(this.who, el("option", { value: series.process }, this.processName(series.process)));
    }
    for (const select of [this.which, this.who]) select.addEventListener("change", () => this.draw());
    append(
      this.element,
      el(
        "div",
        { class: "chooser" },
        el("label", { for: "which-range" }, "Time of "), this.which,
        el("label", { for: "which-process" }, " in "), this.who,
      ),
      this.facts,
      el("h3", {}, "Iteration by iteration"), this.line.element, this.shade,
      el("h3", {}, "Distribution"), this.bars.element,
    );
    this.draw();
  }

  private processName(process: number): string {
    const info = this.recording.index.processes[process];
    return info.rank >= 0 ? `rank ${info.rank}` : `pid ${info.pid}`;
  }

  private draw(): void {
    const name = this.names[this.which.selectedIndex] ?? "";
    const wanted = Number(this.who.value);
    const series = seriesOf(this.recording, name).filter((s) => wanted < 0 || s.process === wanted);
    this.drawFacts(name);
    this.drawLine(series, name);
    this.drawBars(series, name);
  }

  /** The row of the table, so that numbers match the report. */
  private drawFacts(name: string): void {
    clear(this.facts);
    const table = tableOf(this.recording, "iterations");
    const row = table ? columnOf(table, "name").indexOf(name) : -1;
    if (table === undefined || row < 0) return;
    const one: TableData = { ...table, name, rows: 1, cells: table.cells.map((cells) => [cells[row]]) };
    append(this.facts, new TableView(one, { caption: `${name} in an iteration, all processes`, isBare: true }).element);
  }

  private drawLine(series: Series[], name: string): void {
    const shown = series.slice(0, LINES);
    const lines: { x: number[]; y: number[]; label: string }[] = shown.map((s) => {
      const [x, y] = thin(s.place, s.ns, POINTS);
      return { x, y, label: this.processName(s.process) };
    });
    const x = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    const result: Line[] = lines.map((line, i) => {
      const values = new Map(line.x.map((place, k) => [place, line.y[k]]));
      return { label: line.label, color: LINE_COLORS[i], values: x.map((place) => values.get(place) ?? null), width: 1.5 };
    });
    const warm = series.reduce((n, s) => n + s.flags.filter((flag) => (flag & WARMUP) !== 0).length, 0);
    const shaded = warmups(series).map(([from, to]): [number, number] => [from - 0.5, to + 0.5]);
    const more = series.length - shown.length;
    const text = `${name} in ${units.countOf(x.length, "iteration")}${more > 0 ? `, the first ${LINES} processes` : ""}${warm > 0 ? `; ${warm} of warm-up` : ""}`;
    this.shade.textContent = warm > 0 ? "Shaded: warm-up, which the numbers above leave out." : "";
    this.line.show(
      { x, lines: result, xLabel: "iteration", yLabel: "time", xText: (v) => String(v), yText: timeText, isWhole: { x: true }, shaded },
      text,
    );
  }

  private drawBars(series: Series[], name: string): void {
    const times = counted(series);
    const bins = histogram(times, BINS);
    const x = bins.counts.map((_, i) => bins.from + i * bins.width);
    const above = bins.above > 0 ? `; ${bins.above === 1 ? "1 longer one is" : `${units.count(bins.above)} longer ones are`} not shown` : "";
    this.bars.show(
      {
        x,
        lines: [{ label: "iterations", color: LINE_COLORS[0], values: bins.counts, kind: "bars" }],
        xLabel: `time${above}`,
        yLabel: "how many",
        xText: timeText,
        yText: (v) => String(v),
        isWhole: { y: true },
        room: bins.width,
      },
      `Distribution of ${name} over ${units.countOf(times.length, "iteration")} without warm-up${above}`,
    );
  }
}
