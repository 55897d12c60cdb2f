"""Fingers on the timeline of a report page, by Chromium's own touch events: one moves, two zoom, a tap picks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import page_traces
import perfetto_page
import pytest
from page_in_browser import Axis, Fingers, PageInBrowser, has_viewer, make_page

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("touch")
    made = make_page(folder / "known.html", page_traces.known(folder / "known.json"))
    if not has_viewer(made):
        pytest.skip("this build has no viewer: Node is missing")
    return made


@pytest.fixture
def timeline(browser: Any, path: Path) -> Iterator[PageInBrowser]:
    page = PageInBrowser(browser, path, view="timeline", width=1000, has_touch=True, is_mobile=True)
    page.settle()
    yield page
    page.close()


def details(page: PageInBrowser) -> str:
    return str(page.view("Details").inner_text())


def test_two_fingers_zoom_and_what_is_between_them_stays(timeline):
    before = Axis(timeline)
    Fingers(timeline, "#view-timeline canvas").go(((550, 100), (450, 100)), ((650, 100), (750, 100)))
    after = Axis(timeline)
    assert after.ns_per_pixel == pytest.approx(before.ns_per_pixel / 3, rel=0.05)
    assert after.time(600) == pytest.approx(before.time(600), abs=4 * before.ns_per_pixel)
    Fingers(timeline, "#view-timeline canvas").go(((450, 100), (550, 100)), ((750, 100), (650, 100)))
    assert Axis(timeline).ns_per_pixel == pytest.approx(before.ns_per_pixel, rel=0.05)
    assert details(timeline).startswith("Click a range")  # two fingers are not a click


def test_one_finger_moves(timeline):
    Fingers(timeline, "#view-timeline canvas").go(((550, 100), (450, 100)), ((650, 100), (750, 100)))
    before = Axis(timeline)
    Fingers(timeline, "#view-timeline canvas").go(((700, 90), (500, 90)))
    after = Axis(timeline)
    assert after.ns_per_pixel == pytest.approx(before.ns_per_pixel, rel=0.02)
    assert after.time(500) == pytest.approx(before.time(700), abs=3 * before.ns_per_pixel)


def test_a_tap_picks(timeline):
    axis = Axis(timeline)
    _x, y = timeline.place_of("step")
    x = axis.x(325e3)
    Fingers(timeline, "#view-timeline canvas").go(((x, y + 18), (x + 5, y + 20)))  # no finger is steady
    assert details(timeline).startswith("forward")


def test_a_finger_along_the_axis_selects(timeline):
    axis = Axis(timeline)
    Fingers(timeline, "#view-timeline canvas").go(((axis.x(0), 12), (axis.x(500e3), 12)), steps=20)
    rows = timeline.view("Details").locator("tbody tr")
    counts = {row.locator("th").inner_text(): row.locator("td").first.inner_text() for row in rows.all()}
    assert (counts["forward"], counts["backward"]) == ("5", "5")


def test_where_nothing_is_to_scroll_a_finger_scrolls_the_page(timeline):
    assert timeline.page.locator("#view-timeline canvas").evaluate("(canvas) => canvas.style.touchAction") == "pan-y"
