// Printing: canvases must be redrawn for the width of a sheet.

const SHEET = 700; // pixels between the margins of A4, and of letter

/** Redraw an element for paper, and back. The browser waits for both, so `redraw` must draw synchronously. */
export function fitToPaper(element: HTMLElement, redraw: () => void): void {
  const drawAt = (width: string): void => {
    element.style.width = width;
    redraw();
  };
  window.addEventListener("beforeprint", () => drawAt(`${SHEET}px`));
  window.addEventListener("afterprint", () => drawAt(""));
}
