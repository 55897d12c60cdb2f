// Numbers as people read them; the same rules as the command's (core/table/text_units.c).

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

/** 1234567 is 1.23 ms. Minutes take over at ten of them, hours at two. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 7200e9) return `${threeDigits(ns / 3600e9)} h`;
  if (size >= 600e9) return `${threeDigits(ns / 60e9)} min`;
  return inUnits(ns, TIMES);
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

/** A whole number of nanoseconds with thin spaces between thousands, for details that must be exact. */
export function exactNs(ns: number): string {
  return `${Math.round(ns).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f")} ns`;
}

/** Nanoseconds since 1970, as text beyond 2^53. */
export function moment(unixNs: string | number): string {
  const ms = Number(BigInt(unixNs) / 1000000n);
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
