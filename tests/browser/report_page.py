"""A report page, open in the browser. Complaints and requests are kept; close() finds neither, or fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class ReportPage:
    """One page. Its policy lets no text be run as a script, so waiting is for selectors and never for expressions."""

    def __init__(
        self, browser: Any, path: Path, view: str = "", size: tuple[int, int] = (1280, 800), **more: Any
    ) -> None:
        """Open the file at `path` and wait until all of it is there."""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri() + (f"#{view}" if view else ""))
        self.page.wait_for_selector("body[data-state=ready]", timeout=30_000)

    def show(self, title: str) -> Any:
        """Click a view's name; gives the view."""
        self.page.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()
        return self.view(title)

    def view(self, title: str) -> Any:
        """Give the part of the page that is a view."""
        return self.page.get_by_role("region", name=title, exact=True)

    def rows(self, table: Any) -> list[dict[str, str]]:
        """Give a table's rows as they are shown."""
        titles = [cell.inner_text().rstrip(" \u25bc\u25b2") for cell in table.locator("thead th").all()]
        return [
            dict(zip(titles, (cell.inner_text() for cell in row.locator("th, td").all())))
            for row in table.locator("tbody tr").all()
        ]

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def pixel(self, canvas: Any, x: float, y: float) -> tuple[int, int, int]:
        """Give the colour of a canvas at a place, in the page's pixels."""
        self.settle()
        color = canvas.evaluate(
            """(canvas, [x, y]) => {
                const ratio = canvas.width / canvas.clientWidth;
                return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data];
            }""",
            [x, y],
        )
        return tuple(color[:3])

    def close(self) -> None:
        """Close it; nothing may have been complained of, and nothing asked of a network."""
        self.context.close()
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith(("file:", "blob:"))] == []
