// Rows for tests.

import { Row } from "../src/model/row";

/** [begin, duration, id] each, in order of begins. */
export function rowOf(events: [number, number, number?][]): Row {
  const row = new Row(events.length, 0, false, true);
  events.forEach(([start, value, id], i) => {
    row.start[i] = start;
    row.value[i] = value;
    row.id[i] = id ?? 0;
  });
  return row;
}
