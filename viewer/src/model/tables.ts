// Filtering, sorting and formatting of tables.

import type { Cell, Column, TableData } from "../decode/format";
import * as units from "./units";

export function columnOf(table: TableData, name: string): Cell[] {
  return table.cells[table.columns.findIndex((column) => column.name === name)] ?? [];
}

/** The number of rows in the page. */
export function keptRows(table: TableData): number {
  return (table.cells[0]?.length ?? 0) - (table.others ?? 0);
}

/** One cell by its row and its column's name. */
export function cellOf(table: TableData | undefined, row: number, name: string): Cell {
  return table === undefined ? null : (columnOf(table, name)[row] ?? null);
}

function compare(a: Cell, b: Cell, isText: boolean): number {
  if (isText) return String(a).localeCompare(String(b), undefined, { numeric: true });
  return Number(a) - Number(b);
}

/** Rows sorted by a column, nulls last in both directions; stable. */
export function sortRows(table: TableData, rows: number[], column: number, descending: boolean): number[] {
  const cells = table.cells[column], isText = table.columns[column].type === "text";
  return [...rows].sort((i, k) => {
    const a = cells[i], b = cells[k];
    if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0) || i - k;
    return (descending ? compare(b, a, isText) : compare(a, b, isText)) || i - k;
  });
}

/** Rows with a string that contains the word. */
export function filterRows(table: TableData, word: string): number[] {
  const n = table.cells[0]?.length ?? 0;
  const all = Array.from({ length: n }, (_, i) => i);
  const wanted = word.trim().toLowerCase();
  if (wanted === "") return all;
  const texts = table.cells.filter((_, c) => table.columns[c].type === "text");
  return all.filter((row) => texts.some((cells) => String(cells[row] ?? "").toLowerCase().includes(wanted)));
}

/** A cell formatted for display. */
export function cellText(cell: Cell, column: Column): string {
  if (cell === null) return "";
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (column.type === "text") return String(cell);
  const value = Number(cell);
  switch (column.unit) {
    case "ns":
      return units.duration(value);
    case "change_ns":
      return units.change(value);
    case "ns_fine":
      return units.fineDuration(value);
    case "bytes":
      return units.bytes(value);
    case "share":
      return units.share(value);
    case "unix_ns":
      return units.moment(cell);
    case "count":
      return units.count(value);
    default:
      return column.type === "f64" ? String(Number(value.toPrecision(6))) : String(cell);
  }
}

/** One field by RFC 4180: quoted if necessary. */
function csvField(cell: Cell): string {
  const text = cell === null ? "" : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The rows as CSV with times in nanoseconds, like `marey report --csv`. */
export function toCsv(table: TableData, rows: number[]): string {
  const lines = [table.columns.map((column) => csvField(column.name)).join(",")];
  for (const row of rows) lines.push(table.cells.map((cells) => csvField(cells[row])).join(","));
  return `${lines.join("\n")}\n`;
}
