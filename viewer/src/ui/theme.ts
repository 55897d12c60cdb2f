// Light, dark, or the system's setting.

import { textOn } from "../model/colors";

export type Theme = "auto" | "light" | "dark";
const THEMES: Theme[] = ["auto", "light", "dark"];

let current: Theme = "auto";
const listeners: (() => void)[] = [];

function remembered(): Theme {
  try {
    const value = localStorage.getItem("marey-theme");
    return THEMES.find((theme) => theme === value) ?? "auto";
  } catch {
    return "auto"; // a page inside a notebook has no storage
  }
}

function apply(): void {
  show(current);
}

function show(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  for (const listener of listeners) listener();
}

export function startTheme(): void {
  current = remembered();
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  window.addEventListener("beforeprint", () => show("light")); // for paper
  window.addEventListener("afterprint", apply);
}

export function theme(): Theme {
  return current;
}

export function setTheme(value: Theme): void {
  current = value;
  try {
    localStorage.setItem("marey-theme", value);
  } catch {
    // not stored
  }
  apply();
}

/** Called after each change. */
export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

/** The current value of a color in the style sheet, such as "--ink". */
export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Whether the page is currently dark, by the user's or the system's choice. */
export function isDark(): boolean {
  return textOn(cssColor("--paper")) === "#ffffff";
}
