// Version of marey, and the licences of the bundled packages.

import { append, el } from "../ui/dom";

interface Licence {
  name: string;
  version: string;
  license: string;
  text: string;
}
/** The bundled packages; replaced by build.mjs. */
declare const LICENCES: Licence[];

export function about(version: string): HTMLElement {
  const element = el(
    "div",
    { class: "about" },
    el("p", {}, `Made by marey ${version}. Everything is in this file; it works offline.`),
    el("p", {}, "marey is under the Apache License 2.0. The page carries these besides:"),
  );
  for (const { name, version, license, text } of LICENCES) {
    append(
      element,
      el("details", {}, el("summary", {}, `${name} ${version}, ${license}`), el("pre", {}, text)),
    );
  }
  return element;
}
