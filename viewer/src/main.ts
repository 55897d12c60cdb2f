// The page: opens its data, then shows one view at a time.

import { openRecording } from "./decode/recording";
import { Colors } from "./model/colors";
import type { Recording } from "./model/recording";
import { append, clear, el } from "./ui/dom";
import { type Theme, setTheme, startTheme, theme } from "./ui/theme";
import { about } from "./views/about";
import { overview } from "./views/overview";
import { Tables } from "./views/tables";
import { Timeline } from "./views/timeline";

interface View {
  id: string;
  title: string;
  element: HTMLElement;
  onShow?: () => void;
}

class Page {
  private views: View[] = [];
  private readonly nav = el("nav", { "aria-label": "Views" });
  private readonly main = document.getElementById("main") as HTMLElement;

  constructor(private readonly recording: Recording) {
    const colors = new Colors(recording);
    const timeline = new Timeline(recording, colors);
    const find = (name: string): void => {
      this.open("timeline");
      timeline.searchFor(name);
    };
    this.views = [
      { id: "overview", title: "Overview", element: overview(recording, colors, find) },
      { id: "timeline", title: "Timeline", element: timeline.element, onShow: () => timeline.redraw() },
      { id: "tables", title: "Tables", element: new Tables(recording, find).element },
      { id: "about", title: "About", element: about(recording) },
    ];
    void recording.events.then(() => timeline.redraw());
    this.build();
  }

  private build(): void {
    const header = document.getElementById("top") as HTMLElement;
    for (const view of this.views) append(this.nav, el("a", { href: `#${view.id}` }, view.title));
    append(header, el("h1", {}, this.recording.index.title), this.nav, themeSwitch());
    clear(this.main);
    for (const view of this.views) {
      append(this.main, el("section", { id: `view-${view.id}`, class: "view", "aria-label": view.title, hidden: true }, view.element));
    }
    append(document.body, el("div", { id: "announcer", class: "offscreen", "aria-live": "polite" }));
    window.addEventListener("hashchange", () => this.show());
    this.show();
  }

  open(id: string): void {
    if (location.hash === `#${id}`) this.show();
    else location.hash = id;
    this.show();
  }

  private show(): void {
    const wanted = location.hash.slice(1);
    const current = this.views.find((view) => view.id === wanted) ?? this.views[0];
    this.views.forEach((view, i) => {
      const section = document.getElementById(`view-${view.id}`) as HTMLElement;
      section.hidden = view !== current;
      const link = this.nav.children[i];
      if (view === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    document.body.dataset["view"] = current.id;
    current.onShow?.();
  }
}

function themeSwitch(): HTMLElement {
  const select = el(
    "select",
    { "aria-label": "Colours", class: "theme", onchange: () => setTheme(select.value as Theme) },
    el("option", { value: "auto" }, "auto"),
    el("option", { value: "light" }, "light"),
    el("option", { value: "dark" }, "dark"),
  );
  select.value = theme();
  return select;
}

async function start(): Promise<void> {
  const loading = document.getElementById("loading") as HTMLElement;
  startTheme();
  try {
    const recording = await openRecording((share) => {
      document.body.dataset["loaded"] = share.toFixed(3);
    });
    new Page(recording);
    await recording.events;
    document.body.dataset["state"] = "ready";
  } catch (error) {
    loading.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
    document.body.dataset["state"] = "failed";
    throw error;
  }
}

void start();
