"""The timeline of a report page in Chromium: a known layout, and control by mouse, wheel and keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import page_traces
import perfetto_page
import pytest
from page_in_browser import Axis, PageInBrowser, Run, has_viewer, make_page

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)
GUTTER = 160  # pixels for the names of tracks


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timeline")
    made = make_page(folder / "known.html", page_traces.known(folder / "known.json"))
    if not has_viewer(made):
        pytest.skip("this build has no viewer: Node is missing")
    return made


@pytest.fixture(scope="module")
def shared(browser: Any, path: Path) -> Iterator[PageInBrowser]:
    page = PageInBrowser(browser, path, width=1600)
    yield page
    page.close()


@pytest.fixture
def timeline(shared: PageInBrowser) -> Iterator[PageInBrowser]:
    """The page with its timeline in the initial state."""
    view = shared.open("Timeline")
    view.get_by_role("searchbox").fill("")
    canvas(shared).focus()
    for key in ("Escape", "0"):
        shared.page.keyboard.press(key)
    shared.settle()
    yield shared
    assert shared.faults() == []


def canvas(page: PageInBrowser) -> Any:
    return page.page.locator("#view-timeline canvas")


def details(page: PageInBrowser) -> str:
    return str(page.page.get_by_role("region", name="Details").inner_text())


def move_to(page: PageInBrowser, x: float, y: float) -> tuple[float, float]:
    """Move the mouse to a position of the canvas; returns the position in the window."""
    box = canvas(page).bounding_box()
    place = box["x"] + x, box["y"] + y
    page.page.mouse.move(*place)
    return place


def color_of(page: PageInBrowser, name: str) -> str:
    """The current value of a color of the style sheet."""
    script = "(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
    short = str(page.page.evaluate(script, name))
    return short if len(short) == 7 else "#" + "".join(2 * digit for digit in short[1:])


def boxes(page: PageInBrowser, text: str) -> list[Run]:
    """The boxes in the row with `text`, read above the letters."""
    _x, y = page.place_of(text)
    background = color_of(page, "--paper"), color_of(page, "--line")
    found = page.line(canvas(page), y - 8, GUTTER + 1)
    return [run for run in found if run.end - run.begin > 2 and run.color not in background]


# ---- drawing ----


def test_a_known_layout_is_found_again_by_pixels_and_labels(timeline):
    axis = Axis(timeline)
    found = boxes(timeline, "step")
    expected = page_traces.known_steps()
    assert len(found) == len(expected)
    for run, (_name, begin, end) in zip(found, expected):
        assert run.begin == pytest.approx(axis.x(begin * 1e3), abs=1.5)
        assert run.end == pytest.approx(axis.x(end * 1e3), abs=2)
    assert len({run.color for run in found[:-1]}) == 1
    assert found[-1].color != found[0].color


def test_inner_rows_stand_below_outer_ones(timeline):
    axis = Axis(timeline)
    step, forward = timeline.place_of("step"), timeline.place_of("forward")
    assert forward[1] - step[1] == 18
    assert forward[0] - 3 == pytest.approx(axis.x(10e3), abs=1)
    found = boxes(timeline, "forward")
    expected = [x for i in range(page_traces.STEPS) for x in (axis.x(100e3 * i + 10e3), axis.x(100e3 * i + 40e3))]
    assert [run.begin for run in found] == pytest.approx(expected, abs=1.5)


def test_tracks_processes_and_counters_have_their_names(timeline):
    places = {text: y for text, x, y in timeline.written() if x < GUTTER}
    assert {"\u25be trainer", "main", "loader", "loss"} <= set(places)
    assert places["\u25be trainer"] < places["main"] < places["loader"]


def test_a_counter_is_as_high_as_its_values(timeline):
    axis = Axis(timeline)
    _x, top = timeline.place_of("loss")

    def height(ns: float) -> int:
        """How many pixels of the row stand above nothing at this moment."""
        colors = [
            next(run.color for run in timeline.line(canvas(timeline), top - 9 + k) if run.end > axis.x(ns))
            for k in range(0, 40, 2)
        ]
        return sum(color != color_of(timeline, "--paper") for color in colors)

    first, middle, last = height(50e3), height(550e3), height(950e3)
    assert first > middle > last > 0
    assert middle == pytest.approx(first / 2, abs=2)


# ---- moving ----


def test_ctrl_and_the_wheel_zoom_where_the_mouse_is(timeline):
    before = Axis(timeline)
    move_to(timeline, 700, 100)
    timeline.page.keyboard.down("Control")
    timeline.page.mouse.wheel(0, -300)
    timeline.page.keyboard.up("Control")
    after = Axis(timeline)
    assert after.ns_per_pixel < before.ns_per_pixel / 2
    assert after.time(700) == pytest.approx(before.time(700), abs=3 * before.ns_per_pixel)
    timeline.page.keyboard.down("Control")
    timeline.page.mouse.wheel(0, 300)
    timeline.page.keyboard.up("Control")
    assert Axis(timeline).ns_per_pixel == pytest.approx(before.ns_per_pixel, rel=0.05)


def test_the_wheel_sideways_moves(timeline):
    canvas(timeline).focus()
    for _ in range(3):
        timeline.page.keyboard.press("w")
    before = Axis(timeline)
    move_to(timeline, 700, 100)
    timeline.page.mouse.wheel(120, 0)
    after = Axis(timeline)
    assert after.time(600) == pytest.approx(before.time(720), abs=2 * before.ns_per_pixel)
    assert after.ns_per_pixel == pytest.approx(before.ns_per_pixel, rel=0.02)


def test_dragging_moves(timeline):
    timeline.page.keyboard.press("w")
    before = Axis(timeline)
    move_to(timeline, 700, 100)
    timeline.page.mouse.down()
    move_to(timeline, 650, 100)
    move_to(timeline, 600, 100)
    timeline.page.mouse.up()
    after = Axis(timeline)
    assert after.time(600) == pytest.approx(before.time(700), abs=2 * before.ns_per_pixel)


def test_keys_zoom_move_and_fit(timeline):
    press = timeline.page.keyboard.press
    whole = Axis(timeline)
    press("w")
    near = Axis(timeline)
    assert near.ns_per_pixel == pytest.approx(whole.ns_per_pixel / 1.5, rel=0.02)
    press("d")
    assert Axis(timeline).time(500) > near.time(500)
    press("a")
    assert Axis(timeline).time(500) == pytest.approx(near.time(500), abs=2 * near.ns_per_pixel)
    press("s")
    assert Axis(timeline).ns_per_pixel == pytest.approx(whole.ns_per_pixel, rel=0.03)
    press("+")
    press("ArrowRight")
    press("0")
    again = Axis(timeline)
    assert (again.time(500), again.ns_per_pixel) == pytest.approx((whole.time(500), whole.ns_per_pixel))


def test_a_process_folds_and_unfolds(timeline):
    x, y = timeline.place_of("\u25be trainer")
    timeline.page.mouse.click(*move_to(timeline, x + 30, y))
    assert "main" not in {text for text, _x, _y in timeline.written()}
    x, y = timeline.place_of("\u25b8 trainer")
    timeline.page.mouse.click(*move_to(timeline, x + 30, y))
    assert "main" in {text for text, _x, _y in timeline.written()}


# ---- picking and searching ----


def test_a_click_tells_all_of_a_range(timeline):
    axis = Axis(timeline)
    _x, y = timeline.place_of("forward")
    timeline.page.mouse.click(*move_to(timeline, axis.x(325e3), y))
    text = details(timeline)
    assert text.startswith("forward")
    assert "310 \u00b5s (310\u202f000 ns)" in text
    assert "30.0 \u00b5s (30\u202f000 ns)" in text
    assert "main" in text and "trainer" in text
    timeline.page.keyboard.press("Escape")
    assert "Click a range" in details(timeline)


def test_search_goes_to_the_next_and_the_one_before(timeline):
    view = timeline.page.locator("#view-timeline")
    view.get_by_role("searchbox").fill("back")
    assert view.get_by_text("10 found", exact=True).is_visible()
    begins = []
    for name in ("Next match", "Next match", "Next match", "Previous match"):
        view.get_by_role("button", name=name).click()
        text = details(timeline)
        assert text.startswith("backward")
        begins.append(text[text.index("begins at") :].split("\n")[1])
    assert [begin.split(" (")[0] for begin in begins] == ["40.0 \u00b5s", "140 \u00b5s", "240 \u00b5s", "140 \u00b5s"]
    faint = color_of(timeline, "--band")
    assert {run.color for run in boxes(timeline, "step")} == {faint}
    view.get_by_role("searchbox").fill("")
    assert faint not in {run.color for run in boxes(timeline, "step")}


def test_a_selected_span_is_summed_up(timeline):
    axis = Axis(timeline)
    timeline.page.keyboard.down("Shift")
    move_to(timeline, axis.x(0), 100)
    timeline.page.mouse.down()
    move_to(timeline, axis.x(200e3), 110)
    move_to(timeline, axis.x(500e3), 110)
    timeline.page.mouse.up()
    timeline.page.keyboard.up("Shift")
    rows = timeline.page.get_by_role("region", name="Details").locator("tbody tr")
    cells = [row.locator("th, td").all_inner_texts() for row in rows.all()]
    found = {row[0]: row for row in cells}
    assert {name: row[1] for name, row in found.items() if name in ("forward", "backward")} == {
        "forward": "5",
        "backward": "5",
    }
    assert found["forward"][2] == "150 \u00b5s"
    assert found["backward"][2] == "200 \u00b5s"
    assert page_traces.HOSTILE not in found


def test_all_of_it_can_be_done_by_keys_alone(shared):
    page = shared.page
    page.evaluate("document.activeElement.blur()")
    shared.open("Overview")
    page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")

    def tab_to(what: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({what!r})"):
                return
        pytest.fail(f"{what} cannot be reached by Tab")

    tab_to("nav a[href='#timeline']")
    page.keyboard.press("Enter")
    shared.settle()
    assert page.get_by_role("region", name="Timeline", exact=True).is_visible()
    tab_to("#view-timeline input[type=search]")
    page.keyboard.type("step")
    page.keyboard.press("Enter")
    assert details(shared).startswith("step")
    tab_to("#view-timeline canvas")
    page.keyboard.press("ArrowRight")
    assert "100 \u00b5s (" in details(shared)
    page.keyboard.press("ArrowDown")
    assert details(shared).startswith("forward")
    page.keyboard.press("ArrowUp")
    assert details(shared).startswith("step")
    page.keyboard.press("Enter")
    axis = Axis(shared)
    assert axis.x(190e3) - axis.x(100e3) > 700
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.matches('#view-timeline input[type=search]')")
    page.keyboard.press("Escape")
    assert shared.faults() == []
