// uPlot in the page's colors, as wide as its container.

import uPlot from "uplot";
import * as units from "../model/units";
import { el } from "./dom";
import { fitToPaper } from "./paper";
import { cssColor, onTheme } from "./theme";

export interface Line {
  label: string;
  color: string;
  values: (number | null)[];
  kind?: "line" | "bars" | "steps" | "points";
  width?: number; // of the line
}

export interface ChartData {
  x: number[];
  lines: Line[];
  xLabel: string;
  yLabel: string;
  xText: (value: number) => string;
  yText: (value: number) => string;
  height?: number;
  isWhole?: { x?: boolean; y?: boolean }; // only integers on the axis
  room?: number; // space for the last bar, after its x
  isFromZero?: boolean; // the axis of values begins at zero
  shaded?: [number, number][]; // intervals of x
}

const NONE = "\u2013"; // while the pointer is elsewhere
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

function axis(label: string, texts: (ticks: number[]) => string[], isWhole = false): uPlot.Axis {
  return {
    label,
    labelSize: 20,
    ...(isWhole ? { incrs: WHOLE } : {}),
    stroke: () => cssColor("--faint"),
    grid: { stroke: () => cssColor("--line"), width: 1 },
    ticks: { stroke: () => cssColor("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    values: (_, ticks) => texts(ticks),
  };
}

function series(line: Line, text: (value: number) => string): uPlot.Series {
  const { kind = "line" } = line;
  const paths = uPlot.paths;
  return {
    label: line.label,
    stroke: line.color,
    width: line.width ?? (kind === "points" ? 0 : 1),
    points: { show: kind === "points", size: 4 },
    spanGaps: false,
    value: (_, value) => (value === null ? NONE : text(value)),
    ...(kind === "bars" ? { fill: `${line.color}99`, paths: paths.bars?.({ size: [0.95, 100], align: 1 }) as uPlot.Series.PathBuilder } : {}),
    ...(kind === "steps" ? { fill: `${line.color}33`, paths: paths.stepped?.({ align: 1 }) as uPlot.Series.PathBuilder } : {}),
  };
}

/** Times on an axis have as many digits as needed to distinguish them. */
function ticksBy(text: (value: number) => string): (ticks: number[]) => string[] {
  return text === timeText ? units.durationTicks : (ticks) => ticks.map(text);
}

function shade(plot: uPlot, stretches: [number, number][]): void {
  const { left, top, width, height } = plot.bbox;
  plot.ctx.fillStyle = cssColor("--band");
  for (const [from, to] of stretches) {
    const x0 = Math.max(plot.valToPos(from, "x", true), left), x1 = Math.min(plot.valToPos(to, "x", true), left + width);
    if (x1 > x0) plot.ctx.fillRect(x0, top, x1 - x0, height);
  }
}

/** A chart that is redrawn with new data; the text describes it to screen readers. */
export class Chart {
  readonly element = el("div", { class: "chart", role: "img" });
  private plot: uPlot | null = null;
  private data: ChartData | null = null;

  constructor() {
    onTheme(() => this.plot?.redraw(true, true));
    new ResizeObserver(() => this.fit()).observe(this.element);
    fitToPaper(this.element, () => this.fit());
  }

  show(data: ChartData, description: string): void {
    this.data = data;
    this.element.setAttribute("aria-label", description);
    this.plot?.destroy();
    this.plot = null;
    this.fit();
  }

  private fit(): void {
    const width = this.element.clientWidth;
    if (this.data === null || width === 0) return;
    const height = this.data.height ?? 260;
    if (this.plot === null) this.plot = this.make(this.data, width, height);
    else if (this.plot.width !== width) this.plot.setSize({ width, height });
  }

  private make(data: ChartData, width: number, height: number): uPlot {
    const options: uPlot.Options = {
      width,
      height,
      scales: {
        x: { time: false, range: (_, from, to) => [from, to + (data.room ?? 0)] },
        ...(data.isFromZero ? { y: { range: (_, __, to) => [0, to > 0 ? to * 1.05 : 1] } } : {}),
      },
      cursor: { drag: { x: true, y: false } },
      legend: { live: true },
      hooks: { drawClear: [(plot) => shade(plot, data.shaded ?? [])] },
      padding: [8, 28, 0, 0],
      axes: [
        { ...axis(data.xLabel, ticksBy(data.xText), data.isWhole?.x), size: 34, space: 80 },
        { ...axis(data.yLabel, ticksBy(data.yText), data.isWhole?.y), size: 70 },
      ],
      series: [{ label: data.xLabel, value: (_, v) => (v === null ? NONE : data.xText(v)) }, ...data.lines.map((line) => series(line, data.yText))],
    };
    const plot = new uPlot(options, [data.x, ...data.lines.map((line) => line.values)], this.element);
    plot.root.setAttribute("aria-hidden", "true"); // the description replaces it
    return plot;
  }
}

export const timeText = (ns: number): string => units.duration(ns);
