// List of keys, below the canvas that handles them.

import { el } from "./dom";

/** The keys of an action, and its description. */
export type Hint = [keys: string[], act: string];

export function keyHints(id: string, hints: Hint[]): HTMLElement {
  const one = ([keys, act]: Hint): HTMLElement => el("span", {}, ...keys.flatMap((key) => [el("kbd", {}, key), " "]), act);
  return el("p", { class: "keys", id }, ...hints.flatMap((hint) => [one(hint), " "]));
}
