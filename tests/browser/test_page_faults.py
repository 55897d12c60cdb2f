"""Report pages of empty, huge and incomplete recordings: each opens with the right messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import page_traces
import perfetto_page
import pytest
from damage import damage_events
from long_run import IS_LONG
from marey_command import run_marey
from page_in_browser import PageInBrowser, has_viewer, make_page
from page_traces import begin, whole

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)
N_NAMES = 1_000_000 if IS_LONG else 20_000
HOURS = 3 * 3600e6  # in microseconds
# More than a small pool and a small disk hold.
MANY = """
import marey
for i in range(600000):
    with marey.range("raise_priority"): pass
"""

Open = Callable[..., PageInBrowser]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    pages: list[PageInBrowser] = []

    def open_page(*inputs: object, **more: Any) -> PageInBrowser:
        path = make_page(tmp_path / "page.html", *inputs, **more)
        if not has_viewer(path):
            pytest.skip("this build has no viewer: Node is missing")
        pages.append(PageInBrowser(browser, path))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


@pytest.fixture
def of_events(opened: Open, tmp_path: Path) -> Open:
    """The page of a trace with these events."""

    def open_page(events: list[dict[str, Any]]) -> PageInBrowser:
        return opened(page_traces.write(tmp_path / "trace.json", events))

    return open_page


def click_through(page: PageInBrowser) -> dict[str, str]:
    """The text of each view."""
    return {title: str(page.open(title).inner_text()) for title in page.titles()}


def labels(page: PageInBrowser) -> set[str]:
    page.open("Timeline")
    return {text for text, _x, _y in page.written()}


def test_without_any_event(opened, tmp_path):
    (tmp_path / "none.marey").mkdir()
    (tmp_path / "none.marey" / "meta.json").write_text('{\n  "format": "marey recording"\n}\n')
    said = click_through(opened(tmp_path / "none.marey"))
    assert "No events were recorded." in said["Overview"]
    assert "No ranges were recorded." in said["Overview"]


@pytest.mark.parametrize("length_us", [0, 5])
def test_one_event(of_events, length_us):
    page = of_events([whole("alone", 1000, length_us)])
    said = click_through(page)
    assert "alone" in said["Overview"]
    view = page.open("Timeline")
    view.get_by_role("searchbox").fill("alone")
    view.get_by_role("button", name="Next match").click()
    assert view.get_by_role("heading", name="alone").is_visible()
    assert f"({length_us * 1000 or 0}" in view.inner_text().replace("\u202f", "")


def test_many_names(of_events):
    page = of_events([whole(f"name {i}", 2 * i, 1.5 if i == 7777 else 1) for i in range(N_NAMES)])
    said = click_through(page)
    assert f"and {N_NAMES - 12:,} more names" in said["Overview"]
    view = page.open("Timeline")
    view.get_by_role("searchbox").fill(f"name {N_NAMES - 1}")
    view.get_by_role("button", name="Next match").click()
    assert view.get_by_role("heading", name=f"name {N_NAMES - 1}", exact=True).is_visible()
    tables = page.open("Tables")
    tables.get_by_role("searchbox").fill("name 7777")
    assert tables.get_by_role("button", name="name 7777", exact=True).is_visible()
    cut = f"The page has 20,000 of {N_NAMES:,} rows" in tables.inner_text()
    assert cut == (N_NAMES > 20_000)  # the longest ones are always included


def test_a_long_tree_is_folded_by_weight(of_events):
    """The first of two trees is longer than a page's table; heavy entries of the second are still included."""
    n_light = 30_000
    first = [whole("wide", 0, 3 * n_light), *(whole(f"light {i}", 3 * i, 2) for i in range(n_light))]
    page = of_events([*first, whole("second", 100_000, 40_000), whole("heavy", 100_000, 39_000)])
    view = page.open("Flame graph")
    written = {text for text, _x, _y in page.written()}
    n_others = n_light + 3 - 20_000
    assert {"wide", "second", "heavy", f"({n_others} others)"} <= written
    _x, row = page.place_of("heavy")
    longest = max(page.line(view.locator("canvas"), row - 7), key=lambda run: run.end - run.begin)
    assert longest.color == "#dfe3e7"  # boxes narrower than a pixel are pale, not absent
    assert f"{n_others:,} paths of little time" in view.inner_text()
    x, y = page.place_of(f"({n_others} others)")
    box = view.locator("canvas").bounding_box()
    page.page.mouse.click(box["x"] + x, box["y"] + y)
    assert f": {2 * n_others / 1000:.1f} ms," in view.locator(".facts").inner_text()
    assert view.get_by_role("button", name="Find on the timeline").is_disabled()
    tables = page.open("Tables")
    tables.get_by_role("combobox").select_option(index=1)
    assert f"The page has 20,000 of {n_light + 3:,} rows" in tables.inner_text()


def test_no_time_and_hours_side_by_side(of_events):
    page = of_events([whole("hours", 0, HOURS), whole("nothing", HOURS / 2, 0), whole("blink", HOURS - 1, 0.001)])
    assert "3.00 h" in click_through(page)["Overview"]
    view = page.open("Timeline")
    for name, takes in (("nothing", "0 ns"), ("blink", "1 ns"), ("hours", "3.00 h")):
        view.get_by_role("searchbox").fill(name)
        view.get_by_role("button", name="Next match").click()
        assert view.get_by_role("heading", name=name, exact=True).is_visible()
        assert f"{takes} (" in view.inner_text()
        page.page.locator("#view-timeline canvas").focus()
        page.page.keyboard.press("Enter")
        page.settle()
        page.page.keyboard.press("0")


def test_a_thousand_threads(of_events):
    page = of_events([whole("work", 10 * i, 5000, tid=i + 1) for i in range(1000)])
    assert "1,000 threads" in click_through(page)["Overview"]
    assert "thread 1" in labels(page)
    canvas = page.page.locator("#view-timeline canvas")
    canvas.focus()
    for _ in range(80):
        page.page.keyboard.press("PageDown")
    assert "thread 1000" in labels(page)
    assert "thread 1" not in labels(page)


def test_ranges_without_an_end_are_marked(of_events):
    page = of_events([begin("never ends", 100), whole("inside", 200, 300), whole("elsewhere", 0, 1000, tid=2)])
    assert "1 range had begun and not ended." in click_through(page)["Overview"]
    assert "never ends (no end)" in labels(page)
    x, y = page.place_of("never ends (no end)")
    box = page.page.locator("#view-timeline canvas").bounding_box()
    page.page.mouse.click(box["x"] + x + 20, box["y"] + y)
    assert "open at the end" in page.page.get_by_role("region", name="Details").inner_text()


@pytest.mark.parametrize("policy", ["keep-oldest", "keep-newest"])
def test_lost_events_are_reported_and_marked(opened, tmp_path, policy):
    program = tmp_path / "lossy.py"
    program.write_text(MANY)
    options = f"pool=2M,disk=64K,policy={policy}"
    run_marey(
        "run",
        "--only",
        "ranges",
        "-q",
        "-o",
        tmp_path / "lossy.marey",
        "--",
        sys.executable,
        program,
        MAREY_OPTIONS=options,
    )
    lost = json.loads(run_marey("report", tmp_path / "lossy.marey", "--json"))["lost_events"]
    assert lost > 0
    page = opened(tmp_path / "lossy.marey")
    assert f"{lost:,} events lost" in page.open("Overview").inner_text()
    assert is_lost_drawn(page)
    said = {text for text, _x, _y in page.written()}
    assert (f"{lost:,} events lost from here on" in said) == (policy == "keep-oldest")
    # The time after the last kept event is marked in every row of the process, up to its end; if the newest events are
    # kept, the end is a kept event.
    canvas = page.page.locator("#view-timeline canvas")
    _x, y = page.place_of("python")
    tint = mixed(page, 0.12)
    lost_runs = [run for run in page.line(canvas, y - 8, 160) if distance(run.color, tint) < 12]
    if policy == "keep-oldest":
        assert sum(run.end - run.begin for run in lost_runs) > 100


def mixed(page: PageInBrowser, part: float) -> str:
    """The color of losses, mixed with the background."""
    both = (
        "['--lost', '--paper'].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim())"
    )
    lost, paper = ([int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in page.page.evaluate(both))
    return "#" + "".join(f"{round(a * part + b * (1 - part)):02x}" for a, b in zip(lost, paper))


def is_lost_drawn(page: PageInBrowser) -> bool:
    """Whether the colour of loss, or nearly that where a hatch is thin, is on the timeline."""
    page.open("Timeline")
    css = "getComputedStyle(document.documentElement).getPropertyValue('--lost').trim()"
    wanted = page.page.evaluate(css)
    colors = page.colors(page.page.locator("#view-timeline canvas"))
    return any(distance(color, wanted) < 120 for color in colors)


def distance(one: str, other: str) -> int:
    return sum(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (1, 3, 5))


def test_a_damaged_log_is_reported_and_the_hole_is_marked(opened, tmp_path):
    program = tmp_path / "many.py"
    program.write_text(MANY)
    run_marey("run", "--only", "ranges", "-q", "-o", tmp_path / "run.marey", "--", sys.executable, program)
    damage_events(tmp_path / "run.marey")
    page = opened(tmp_path / "run.marey", damaged=True)
    assert "The recording is damaged" in page.open("Overview").inner_text()
    assert is_lost_drawn(page)
