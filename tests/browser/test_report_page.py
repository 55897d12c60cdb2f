"""The report page in Chromium: every view is opened, and the numbers in it are those of `marey report --json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from marey_command import run_marey
from page_in_browser import PageInBrowser, has_viewer, make_page
from stack_names import HOSTILE

import marey

pytestmark = [
    pytest.mark.skipif(
        bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
    ),
]
WORKLOAD = Path(__file__).parent / "page_workload.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page")
    run_marey("run", "--only", "ranges", "-q", "-o", path / "run.marey", "--", sys.executable, WORKLOAD)
    if not has_viewer(make_page(path / "run.html", path / "run.marey")):
        pytest.skip("this build has no viewer: Node is missing")
    return path


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    return dict(json.loads(run_marey("report", folder / "run.marey", "--json")))


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Any]:
    pages: list[PageInBrowser] = []

    def open_page(**more: Any) -> PageInBrowser:
        pages.append(PageInBrowser(browser, folder / "run.html", **more))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def test_every_view_opens(opened):
    page = opened()
    for title in ("Overview", "Timeline", "Iterations", "Flame graph", "Tables", "About"):
        assert page.open(title).is_visible()


def test_the_table_of_ranges_has_the_numbers_of_json(opened, report):
    page = opened()
    table = page.open("Tables").locator("table").first
    rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    titles = table.locator("thead button").all_inner_texts()
    assert [row[titles.index("name")] for row in rows] == [row["name"] for row in report["ranges"]]
    counts = [int(row[titles.index("count")].replace(",", "")) for row in rows]
    assert counts == [row["count"] for row in report["ranges"]]


def test_a_name_that_is_html_is_shown_and_not_run(opened):
    page = opened()
    assert page.view("Overview").get_by_text(HOSTILE, exact=True).is_visible()
    assert page.open("Tables").get_by_text(HOSTILE, exact=True).first.is_visible()
    assert page.page.title() == "run.marey"


def test_searching_goes_from_match_to_match(opened, report):
    page = opened(view="timeline")
    timeline = page.view("Timeline")
    timeline.get_by_role("searchbox").fill("backward")
    n = next(row["count"] for row in report["ranges"] if row["name"] == "backward")
    assert timeline.get_by_text(f"{n} found").is_visible()
    timeline.get_by_role("button", name="Next match").click()
    assert timeline.get_by_role("heading", name="backward").is_visible()
    first = timeline.locator("dd").first.inner_text()
    timeline.get_by_role("button", name="Next match").click()
    assert timeline.locator("dd").first.inner_text() != first


def test_the_notebook_frame_shows_the_same_page(browser, folder, tmp_path):
    shown = tmp_path / "notebook.html"
    shown.write_text(f"<!doctype html><body>{marey.load(folder / 'run.marey').page()._repr_html_()}</body>")
    context = browser.new_context()
    page = context.new_page()
    page.goto(shown.as_uri())
    frame = page.frames[1]
    frame.wait_for_selector("body[data-state=ready]")
    frame.get_by_role("link", name="Tables", exact=True).click()
    assert frame.get_by_role("region", name="Tables", exact=True).is_visible()
    context.close()
