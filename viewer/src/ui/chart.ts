// uPlot in the colours of the page, as wide as its place.

import uPlot from "uplot";
import * as units from "../model/units";
import { el } from "./dom";
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
}

function axis(label: string, text: (value: number) => string): uPlot.Axis {
  return {
    label,
    stroke: () => cssColor("--faint"),
    grid: { stroke: () => cssColor("--line"), width: 1 },
    ticks: { stroke: () => cssColor("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : text(tick))),
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
    value: (_, value) => (value === null ? "" : text(value)),
    ...(kind === "bars" ? { fill: `${line.color}99`, paths: paths.bars?.({ size: [0.95, 100], align: 1 }) as uPlot.Series.PathBuilder } : {}),
    ...(kind === "steps" ? { fill: `${line.color}33`, paths: paths.stepped?.({ align: 1 }) as uPlot.Series.PathBuilder } : {}),
  };
}

/** A chart that is drawn anew with new data; the text says what it shows to those who do not see it. */
export class Chart {
  readonly element = el("div", { class: "chart", role: "img" });
  private plot: uPlot | null = null;
  private data: ChartData | null = null;

  constructor() {
    onTheme(() => this.plot?.redraw(true, true));
    new ResizeObserver(() => this.fit()).observe(this.element);
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
      scales: { x: { time: false } },
      cursor: { drag: { x: true, y: false } },
      legend: { live: true },
      axes: [axis(data.xLabel, data.xText), { ...axis(data.yLabel, data.yText), size: 76 }],
      series: [{ label: data.xLabel, value: (_, v) => (v === null ? "" : data.xText(v)) }, ...data.lines.map((line) => series(line, data.yText))],
    };
    return new uPlot(options, [data.x, ...data.lines.map((line) => line.values)], this.element);
  }
}

export const timeText = (ns: number): string => units.duration(ns);
