// Formatting of numbers, by the same rules as the command line (core/base/text_units.c).

function threeDigits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

function inUnits(value: number, units: [string, number][]): string {
  let u = 0;
  while (u + 1 < units.length && Math.abs(value) >= units[u + 1][1] * 0.9995) u++;
  return u === 0 ? `${value.toFixed(0)} ${units[0][0]}` : `${threeDigits(value / units[u][1])} ${units[u][0]}`;
}

const TIMES: [string, number][] = [["ns", 1], ["\u00b5s", 1e3], ["ms", 1e6], ["s", 1e9]];
const BYTES: [string, number][] = [["B", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]];

/** 1234567 is 1.23 ms. Minutes are used from ten on, hours from two on. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 7200e9) return `${threeDigits(ns / 3600e9)} h`;
  if (size >= 600e9) return `${threeDigits(ns / 60e9)} min`;
  return inUnits(ns, TIMES);
}

/** A difference of times, with its sign. */
export function change(ns: number): string {
  return `${ns > 0 ? "+" : ns < 0 ? "\u2212" : ""}${duration(Math.abs(ns))}`;
}

/** Also below a nanosecond, for the time per element. */
export function fineDuration(ns: number): string {
  return ns < 1 ? `${threeDigits(ns * 1000)} ps` : ns < 999.5 ? `${threeDigits(ns)} ns` : duration(ns);
}

/** Labels of an axis, in one unit, with as many digits as the step requires. */
export function durationTicks(times: number[]): string[] {
  const largest = Math.max(...times.map(Math.abs), 1), step = times.length > 1 ? Math.abs(times[1] - times[0]) : largest;
  const [unit, size] = [...TIMES].reverse().find(([, size]) => largest >= size) ?? TIMES[0];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / step) - 1e-9)));
  return times.map((time) => `${(time / size).toFixed(digits)} ${unit}`);
}

export function bytes(n: number): string {
  return inUnits(n, BYTES);
}

export function share(part: number): string {
  const percent = 100 * part;
  return `${percent.toFixed(percent < 0.995 && percent > 0 ? 2 : percent < 99.95 ? 1 : 0)} %`;
}

/** 1234567 as 1,234,567. */
export function count(n: number): string {
  return n.toLocaleString("en-US");
}

export function countOf(n: number, thing: string): string {
  const plural = /(s|x|ch)$/.test(thing) ? `${thing}es` : `${thing}s`;
  return `${count(n)} ${n === 1 ? thing : plural}`;
}

/** Four significant digits: 0.25, 3e9. */
export function scientific(value: number): string {
  const size = Math.abs(value);
  const isPlain = !Number.isFinite(value) || value === 0 || (size >= 1e-3 && size < 1e6);
  return isPlain ? String(Number(value.toPrecision(4))) : value.toExponential(3).replace(/\.?0*e\+?/, "e");
}

/** A whole number of nanoseconds with thin spaces between thousands, for details that must be exact. */
export function exactNs(ns: number): string {
  return `${Math.round(ns).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f")} ns`;
}

/** Nanoseconds since 1970; a string beyond 2^53. */
export function moment(unixNs: string | number): string {
  const ms = Number(BigInt(unixNs) / 1000000n);
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
