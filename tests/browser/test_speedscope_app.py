"""Exported speedscope files and collapsed stacks in the real application: it shows what was recorded."""

from __future__ import annotations

import collections
import http.server
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import calls_log
import perfetto_page
import pytest
from marey_command import run_marey

APP = Path(__file__).parents[2] / "build" / "setup" / "speedscope" / "dist" / "release"
WORKLOAD = Path(__file__).parent / "stack_workload.py"
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def what_is_missing() -> str:
    if not (APP / "index.html").exists():
        return "speedscope is not there; tools/speedscope fetches it where there is npm"
    return perfetto_page.what_is_missing(needs_ui=False)


pytestmark = pytest.mark.skipif(bool(what_is_missing()), reason=what_is_missing())


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("speedscope") / "run.marey"
    run_marey("run", "--only", "ranges", "-q", "-o", path, "--", sys.executable, WORKLOAD)
    for name in ("run.speedscope.json", "run.collapsedstack.txt"):
        run_marey("export", path, "-o", path.with_name(name))
    calls = calls_log.known(path.with_name("calls.klog"))
    run_marey("export", calls, "--calls", "-o", path.with_name("calls.speedscope.json"))
    empty = path.with_name("empty.marey")
    empty.mkdir()
    (empty / "meta.json").write_text('{"format": "marey recording"}')
    run_marey("export", empty, "-o", path.with_name("empty.speedscope.json"))
    return path


@pytest.fixture(scope="module")
def address(recording: Path) -> Iterator[str]:
    """The application, and the exported files."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            is_ours = path.startswith(("/run.", "/empty.", "/calls."))
            self.directory = str(recording.parent if is_ours else APP)
            return super().translate_path(path)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def opened(browser: Any, address: str, name: str) -> Any:
    page = browser.new_page(viewport={"width": 1300, "height": 2000})
    page.goto(f"{address}/index.html#profileURL={address}/{name}&view=sandwich")
    page.wait_for_selector("text=Symbol Name", timeout=20000)
    return page


def nanoseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.,]+)(\D*) \(.*%\)", text.strip()).groups()  # type: ignore[union-attr]
    return float(number.replace(",", "")) * UNITS.get(unit, 1)


def rows(page: Any) -> dict[str, tuple[float, float]]:
    """Total and self time by name, of the table of the sandwich view."""
    cells = [row.query_selector_all("td") for row in page.query_selector_all("tr")]
    texts = [[cell.inner_text() for cell in row] for row in cells if len(row) == 3]
    return {name.strip(): (nanoseconds(total), nanoseconds(own)) for total, own, name in texts if "(" in total}


@pytest.mark.parametrize("name, tolerance", [("run.speedscope.json", 0.006), ("run.collapsedstack.txt", 1e-9)])
def test_the_application_shows_the_reports_times(browser, address, recording, name, tolerance):
    page = opened(browser, address, name)
    shown = rows(page)
    page.close()
    table = json.loads(run_marey("report", recording, "--json"))["ranges"]
    # Digits at the end of a collapsed name must not look like a number of the line.
    expected = {re.sub(r" (\d+)$", r"_\1", row["name"]) if "txt" in name else row["name"]: row for row in table}
    assert len(expected) > 5
    assert shown.keys() == expected.keys()
    for name_, row in expected.items():
        assert shown[name_][0] == pytest.approx(row["total_ns"], rel=tolerance), name_
        assert shown[name_][1] == pytest.approx(row["self_ns"], rel=tolerance), name_


def test_calls_are_shown_with_the_times_of_their_functions(browser, address, recording):
    """Each thread is a separate profile; that of the first one is opened."""
    page = opened(browser, address, "calls.speedscope.json")
    shown = rows(page)
    page.close()
    paths = json.loads(run_marey("report", recording.with_name("calls.klog"), "--calls", "--json"))["paths"]
    own = collections.Counter()
    for row in paths:
        if row["thread"] == paths[0]["thread"]:
            own[row["function"] + (f"({row['signature']})" if row["signature"] else "")] += row["self_ns"]
    assert len(own) > 3
    assert {name: self_ns for name, (_, self_ns) in shown.items()} == pytest.approx(own, rel=0.006)


def test_an_empty_recording_opens(browser, address):
    page = opened(browser, address, "empty.speedscope.json")
    assert "Something went wrong" not in page.inner_text("body")
    page.close()
