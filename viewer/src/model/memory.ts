// Memory over time, from the blocks of a page written by core/present/memory/memory_page_out.c.

export const CATEGORIES = [
  { name: "parameter", title: "parameters", color: "#228833" },
  { name: "optimizer_state", title: "optimizer state", color: "#ccbb44" },
  { name: "input", title: "inputs", color: "#66ccee" },
  { name: "temporary", title: "temporaries", color: "#aa3377" },
  { name: "activation", title: "activations", color: "#ee6677" },
  { name: "gradient", title: "gradients", color: "#4477aa" },
  { name: "autograd_detail", title: "autograd details", color: "#99ddff" },
  { name: "unknown", title: "unknown", color: "#bbbbbb" },
] as const;

export interface DeviceData {
  name: string;
  is_main: number;
  peak: number; // the change with the largest total
  before: number; // changes for blocks that existed before
  reserved: number; // maximum of the allocator, 0 unknown
  gaps: number[]; // nanoseconds from change to change
  ends: number[]; // of each change: 0, the next block begins; else the block that ends, from 1 on
  bytes: number[]; // of each block, in the order in which they begin
  categories: number[];
  stacks: number[];
  names: [block: number, name: string][];
}

export interface MemoryIndex {
  format: number;
  kind: "memory";
  version: string;
  title: string;
  origin_unix_ns: string;
  duration_ns: number;
  lost: number;
  phases: [begin: number, end: number, name: string][];
  devices: DeviceData[];
  stacks: string[];
}

/** Blocks of one category with the same allocation site or name. */
export interface Group {
  category: number;
  stack: number;
  name: string;
  bytes: number;
  count: number;
}

const NEVER = 0xffffffff;

/** Memory of a device, change by change. */
export class Memory {
  readonly n: number; // changes
  readonly times: Float64Array;
  readonly sums: Float64Array[]; // by category, after each change
  private readonly begins: Uint32Array; // by block, the change
  private readonly ends: Uint32Array;
  private readonly names: Map<number, string>;

  constructor(readonly data: DeviceData) {
    this.n = data.ends.length;
    this.times = new Float64Array(this.n);
    this.sums = CATEGORIES.map(() => new Float64Array(this.n));
    this.begins = new Uint32Array(data.bytes.length);
    this.ends = new Uint32Array(data.bytes.length).fill(NEVER);
    this.names = new Map(data.names);
    this.addUp();
  }

  private addUp(): void {
    const { gaps, ends, bytes, categories } = this.data;
    const sums = CATEGORIES.map(() => 0);
    let time = 0, next = 0;
    for (let i = 0; i < this.n; i++) {
      time += gaps[i];
      this.times[i] = time;
      const block = ends[i] === 0 ? next++ : ends[i] - 1;
      (ends[i] === 0 ? this.begins : this.ends)[block] = i;
      sums[categories[block]] += ends[i] === 0 ? bytes[block] : -bytes[block];
      for (let c = 0; c < sums.length; c++) this.sums[c][i] = sums[c];
    }
  }

  /** The last change at or before a time, -1 before the first. */
  changeAt(time: number): number {
    let low = 0, high = this.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Bytes by category after a change; zero before the first. */
  at(change: number): number[] {
    return this.sums.map((sums) => (change < 0 ? 0 : sums[change]));
  }

  total(change: number): number {
    return this.at(change).reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Totals of the visible categories after each change. */
  totals(isShown: boolean[]): Float64Array {
    const totals = new Float64Array(this.n);
    this.sums.forEach((sums, c) => {
      if (isShown[c]) for (let i = 0; i < this.n; i++) totals[i] += sums[i];
    });
    return totals;
  }

  /** Live memory after a change, the largest first. */
  alive(change: number): Group[] {
    const groups = new Map<string, Group>();
    const { bytes, categories, stacks } = this.data;
    for (let block = 0; block < bytes.length; block++) {
      if (this.begins[block] > change || this.ends[block] <= change) continue;
      const name = this.names.get(block) ?? "";
      const key = `${categories[block]} ${stacks[block]} ${name}`;
      const group = groups.get(key);
      if (group) {
        group.bytes += bytes[block];
        group.count++;
      } else {
        groups.set(key, { category: categories[block], stack: stacks[block], name, bytes: bytes[block], count: 1 });
      }
    }
    return [...groups.values()].sort((a, b) => b.bytes - a.bytes || a.category - b.category || a.stack - b.stack);
  }
}

/** For each column of a chart the change with the largest total, including the last one before it; -1: none. */
export function columns(memory: Memory, totals: Float64Array, from: number, to: number, width: number): Int32Array {
  const result = new Int32Array(width);
  let change = memory.changeAt(from);
  for (let x = 0; x < width; x++) {
    const end = from + ((to - from) * (x + 1)) / width;
    let best = change;
    while (change + 1 < memory.n && memory.times[change + 1] < end) {
      change++;
      if (best < 0 || totals[change] > totals[best]) best = change;
    }
    result[x] = best;
  }
  return result;
}

/** Short allocation site: the module, else torch's line; then the innermost line outside torch. */
export function placeOf(stack: string): string {
  const frames = stack.split(";").filter((frame) => frame !== "");
  const lines = frames.filter((frame) => /\.py\(\d+\): /.test(frame));
  const own = lines.find((line) => !/^(.*\/)?torch\//.test(line));
  const module = frames.find((frame) => frame.startsWith("nn.Module: "))?.slice("nn.Module: ".length);
  const texts = [module ?? lines[0] ?? frames[0], own].filter((text) => text !== undefined);
  return [...new Set(texts)].join(" \u00b7 ");
}

const STEPS = [1, 2, 2.5, 5, 10];

/** At most `n` round sizes for an axis up to `most`. */
export function sizeTicks(most: number, n: number): number[] {
  if (!(most > 0)) return [0];
  const power = 10 ** Math.floor(Math.log10(most / n));
  const step = power * (STEPS.find((step) => most / (step * power) <= n) ?? 10);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}
