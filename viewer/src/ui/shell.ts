// The frame around the views: title, navigation, colors; and the current view.

import { append, clear, el } from "./dom";
import { type Theme, setTheme, theme } from "./theme";

export interface View {
  id: string;
  title: string;
  element: HTMLElement;
  onShow?: () => void;
}

/** A page in a frame's srcdoc has no URL. */
function isFramed(): boolean {
  return location.protocol === "about:";
}

export class Shell {
  private views: View[] = [];
  private wanted = "";
  private readonly nav = el("nav", { "aria-label": "Views" });
  private readonly main = document.getElementById("main") as HTMLElement;

  constructor(private readonly title: string) {}

  build(views: View[]): void {
    this.views = views;
    const header = document.getElementById("top") as HTMLElement;
    for (const view of views) append(this.nav, el("a", { href: `#${view.id}` }, view.title));
    document.addEventListener("click", (event) => this.follow(event));
    append(header, el("h1", { title: this.title }, this.title), this.nav, themeSwitch());
    clear(this.main);
    for (const view of views) {
      append(this.main, el("section", { id: `view-${view.id}`, class: "view", "aria-label": view.title, hidden: true }, view.element));
    }
    append(document.body, el("div", { id: "announcer", class: "offscreen", "aria-live": "polite" }));
    window.addEventListener("hashchange", () => this.show());
    this.show();
  }

  open(id: string): void {
    if (isFramed()) this.wanted = id;
    else if (location.hash !== `#${id}`) location.hash = id;
    this.show();
  }

  /** Links to views. In a frame of a notebook such a link would lead to the notebook. */
  private follow(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    const id = link?.getAttribute("href")?.slice(1) ?? "";
    if (!isFramed() || link === null) return;
    event.preventDefault();
    if (this.views.some((view) => view.id === id)) this.open(id);
    else this.main.focus();
  }

  private show(): void {
    const wanted = isFramed() ? this.wanted : location.hash.slice(1);
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
