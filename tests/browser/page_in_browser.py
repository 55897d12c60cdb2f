"""A report page in Chromium, checked by what is drawn and written in it."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from marey_command import run_marey

# Strings on a canvas cannot be read from its pixels, so they are stored when they are drawn. The timeline begins each
# drawing by painting its whole canvas, which clears them.
NOTE_TEXTS = """
(() => {
    window.written = [];
    const { fillText, fillRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const at = this.getTransform();
        if (text !== "" && this.canvas.isConnected) window.written.push([text, x + at.e, y + at.f]);
        return fillText.apply(this, arguments);
    };
    CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
        if (x === 0 && y === 0 && width === this.canvas.width && height === this.canvas.height) window.written = [];
        return fillRect.apply(this, arguments);
    };
})();
"""

# One line of a canvas, copied first: reading a canvas again and again makes Chromium complain about the page.
LINE = """
(canvas, [y, from]) => {
    const copy = document.createElement("canvas"), ratio = canvas.width / canvas.clientWidth;
    copy.width = canvas.width, copy.height = 1;
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, -Math.round(y * ratio));
    const { data } = context.getImageData(0, 0, copy.width, 1), runs = [];
    for (let x = from; x < copy.width; x++) {
        const color = "#" + [0, 1, 2].map((i) => data[4 * x + i].toString(16).padStart(2, "0")).join("");
        const last = runs[runs.length - 1];
        if (last && last[2] === color) last[1] = x + 1;
        else runs.push([x, x + 1, color]);
    }
    return runs;
}
"""

ALL_COLORS = """
(canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colors = new Set(new Uint32Array(data.buffer));
    const channel = (color, shift) => ((color >> shift) & 255).toString(16).padStart(2, "0");
    return [...colors].map((color) => "#" + [0, 8, 16].map((shift) => channel(color, shift)).join(""));
}
"""

UNITS = {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}


class Run(NamedTuple):
    """Adjacent pixels of one color."""

    begin: int
    end: int
    color: str


def make_page(path: Path, *inputs: object, damaged: bool = False) -> Path:
    """Write the page of recordings or traces; status 2 with all that could be read is for damaged ones."""
    try:
        run_marey("report", *inputs, "--html", path)
    except subprocess.CalledProcessError as error:
        if not damaged or error.returncode != 2:
            raise
    return path


def has_viewer(path: Path) -> bool:
    """Whether the build that made this page had Node; else it is plain tables."""
    return 'id="index"' in path.read_text(encoding="utf-8")


def block_of(path: Path, name: str) -> bytes:
    found = re.search(rf'id="{name}">([^<]*)<', path.read_text(encoding="utf-8"))
    assert found is not None
    return zlib.decompress(base64.b64decode(found.group(1)), -15)


class PageInBrowser:
    """An open page. `faults()` returns its errors and network requests, which should be empty."""

    def __init__(
        self, browser: Any, path: Path, view: str = "", width: int = 1280, height: int = 900, **more: Any
    ) -> None:
        """Open the page, optionally at a view, and wait until it is complete."""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(viewport={"width": width, "height": height}, **more)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20000)
        self.page.add_init_script(NOTE_TEXTS)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri() + (f"#{view}" if view else ""))
        self.page.wait_for_selector("body[data-state=ready]", timeout=60000)

    def faults(self) -> list[str]:
        asked = [url for url in self.requests if not url.startswith(("file:", "blob:"))]
        return self.complaints + asked

    def close(self) -> None:
        self.context.close()
        assert self.faults() == []

    def settle(self) -> None:
        """Wait until the last request is drawn."""
        self.page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    # ---- views ----

    def titles(self) -> list[str]:
        links = self.page.get_by_role("navigation", name="Views").get_by_role("link")
        return [str(text) for text in links.all_inner_texts()]

    def open(self, title: str) -> Any:
        """Click a view's link; returns the view when it is drawn."""
        self.page.get_by_role("navigation", name="Views").get_by_role("link", name=title, exact=True).click()
        view = self.view(title)
        view.wait_for(state="visible")
        self.settle()
        return view

    def view(self, title: str) -> Any:
        return self.page.get_by_role("region", name=title, exact=True)

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def screenshot(self, name: str) -> None:
        """Store a screenshot in MAREY_SCREENSHOTS; they are reviewed before a release."""
        folder = os.environ.get("MAREY_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))

    # ---- canvases ----

    def written(self) -> list[tuple[str, float, float]]:
        """Strings on canvases with their positions, since the last drawing of the timeline."""
        self.settle()
        return [(text, x, y) for text, x, y in self.page.evaluate("window.written")]

    def place_of(self, text: str) -> tuple[float, float]:
        """The position of the first such string, possibly truncated."""
        starts = [(found.rstrip("\u2026"), x, y) for found, x, y in self.written()]
        return next((x, y) for start, x, y in starts if len(start) > 1 and text.startswith(start))

    def line(self, canvas: Any, y: float, left: int = 0) -> list[Run]:
        """The content of a line of a canvas, from `left` on."""
        self.settle()
        return [Run(*run) for run in canvas.evaluate(LINE, [y, left])]

    def colors(self, canvas: Any) -> set[str]:
        """Every colour that a canvas shows."""
        self.settle()
        return set(canvas.evaluate(ALL_COLORS))


class Axis:
    """Times and positions of the timeline's axis."""

    def __init__(self, page: PageInBrowser) -> None:
        """Read the labels, which are four pixels to the right of their times."""
        marks: list[tuple[float, float]] = []
        for text, x, y in page.written():
            found = re.fullmatch(r"(-?[\d.]+) (ns|\u00b5s|ms|s)", text)
            if found and y < 24:
                marks.append((float(found.group(1)) * UNITS[found.group(2)], x - 4))
        assert len(marks) >= 2, marks
        (time, self.x0), (later, x1) = marks[0], marks[-1]
        self.time0 = time
        self.ns_per_pixel = (later - time) / (x1 - self.x0)

    def x(self, ns: float) -> float:
        return self.x0 + (ns - self.time0) / self.ns_per_pixel

    def time(self, x: float) -> float:
        return self.time0 + (x - self.x0) * self.ns_per_pixel


class Fingers:
    """Fingers on a canvas; places are the canvas's."""

    def __init__(self, page: PageInBrowser, canvas: str) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page.page)
        self.canvas = page.page.locator(canvas)

    def send(self, kind: str, *places: tuple[float, float]) -> None:
        box = self.canvas.bounding_box()
        points = [{"x": box["x"] + x, "y": box["y"] + y, "id": i} for i, (x, y) in enumerate(places)]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def go(self, *ways: tuple[tuple[float, float], tuple[float, float]], steps: int = 8) -> None:
        """Put down a finger for each path, move all from start to end, and lift them."""
        self.send("touchStart", *(start for start, _end in ways))
        for k in range(1, steps + 1):
            part = k / steps
            self.send("touchMove", *((a + (c - a) * part, b + (d - b) * part) for (a, b), (c, d) in ways))
        self.send("touchEnd")
        self.page.settle()
