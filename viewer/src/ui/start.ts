// Start of a page: colours, data, and the message if it cannot be shown.

import { el } from "./dom";
import { startTheme } from "./theme";

/** Tests wait for this state. */
async function run(open: () => Promise<void>): Promise<void> {
  startTheme();
  try {
    await open();
    document.body.dataset["state"] = "ready";
  } catch (error) {
    const main = document.getElementById("main") as HTMLElement;
    const text = `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
    main.replaceChildren(el("p", { class: "empty", role: "alert" }, text));
    document.body.dataset["state"] = "failed";
    throw error;
  }
}

export function start(open: () => Promise<void>): void {
  void run(open);
}
