"""Samples on the report page: sentences, boxes, tables; and marey.plot of two sampled runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import perfetto_page
import pytest
from marey_command import run_marey
from page_in_browser import has_viewer, make_page

import marey

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)
PROGRAM = """
import time
import marey
marey.mark("start")
def spin(n):
    while n > 0:
        n -= 1
def step():
    spin(50000)
end = time.monotonic() + 1
while time.monotonic() < end:
    step()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("samples")
    (path / "train.py").write_text(PROGRAM)
    run_marey("run", "--sample=200", "-o", path / "run.marey", "--", sys.executable, path / "train.py")
    make_page(path / "report.html", path / "run.marey")
    if not has_viewer(path / "report.html"):
        pytest.skip("this build has no viewer: Node is missing")
    marey.plot(path / "run.marey", path / "run.marey", path=path / "difference.html", open_browser=False)
    return path


def test_the_report_page_has_a_view_of_samples(opened):
    page = opened("report.html")
    page.open("Samples")
    view = page.page.locator(".samples")
    assert "in 1 process: main thread: wall clock" in view.locator("p").first.inner_text()
    assert "of 200 rounds a second" in view.locator(".audit").inner_text()
    assert view.locator(".facts").first.inner_text().endswith("in samples")
    first = view.locator("table").first.locator("tbody tr").first
    assert "spin" in first.inner_text()


def test_notes_of_the_report_are_above_the_samples(opened, folder):
    notes = json.loads(run_marey("report", folder / "run.marey", "--samples", "--json"))["notes"]
    assert any("imports at start-up" in note for note in notes)
    page = opened("report.html")
    page.open("Samples")
    shown = page.page.locator(".samples .audit li").all_inner_texts()
    assert shown[1:] == notes


def test_a_tiny_cost_has_one_bound(opened):
    page = opened("report.html")
    assert "less than 0.01 % of the program" in page.page.inner_text("body")
    assert "at least less" not in page.page.inner_text("body")


def test_every_table_of_samples_can_be_chosen(opened):
    page = opened("report.html")
    page.open("Samples")
    options = page.page.locator("#table-of-samples option").all_inner_texts()
    names = [option.split(" ")[0] for option in options]
    assert names[0] == "lines" and {"functions", "threads", "stacks", "audit", "totals"} <= set(names)
    page.page.locator("#table-of-samples").select_option(index=names.index("audit"))
    assert "achieved_hz" in page.page.locator(".samples").inner_text()


def test_two_sampled_runs_are_held_against_each_other(opened):
    page = opened("difference.html")
    text = page.page.locator(".calls").inner_text()
    assert "in samples of" in text and "Change of self time" in text
