// Printing: what is drawn on a canvas has to be drawn again for the width of a sheet.

const SHEET = 700; // pixels between the margins of A4, and of letter

/** Draw an element anew for paper, and back. Both are called while the browser waits, so `redraw` must draw at once. */
export function fitToPaper(element: HTMLElement, redraw: () => void): void {
  const drawAt = (width: string): void => {
    element.style.width = width;
    redraw();
  };
  window.addEventListener("beforeprint", () => drawAt(`${SHEET}px`));
  window.addEventListener("afterprint", () => drawAt(""));
}
