"""Calls on a page: chart and table, linked both ways; signatures, differences, keys, touch, 100,000 paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import calls_log
import perfetto_page
import pytest
from calls_log import HOSTILE, LARGE, SMALL, US
from page_in_browser import Fingers, PageInBrowser, block_of, has_viewer, make_page

import marey

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)
MANY = 100_000
ROW = 20  # pixels
LEN = "<built-in method builtins.len>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calls")
    known, slower = calls_log.known(path / "known.klog"), calls_log.known(path / "slower.klog", slower=3)
    marey.plot(known, path=path / "known.html", open_browser=False)
    if not has_viewer(path / "known.html"):
        pytest.skip("this build has no viewer: Node is missing")
    marey.plot(slower, known, path=path / "difference.html", open_browser=False)
    marey.plot(calls_log.deep(path / "deep.klog"), path=path / "deep.html", open_browser=False)
    marey.plot(calls_log.large(path / "large.klog", MANY), path=path / "large.html", open_browser=False)
    make_page(path / "report.html", known)
    profile = marey.Profile()
    profile.runcall(program)
    marey.plot(profile, path=path / "profile.html", open_browser=False)
    return path


def program() -> None:
    for one in ("a", "b", 3):
        take(one)
    again(50)


def take(one: object) -> int:
    return len(str(one))


def again(n: int) -> int:
    return take(n) if n == 0 else again(n - 1)


class CallsPage:
    """The view of calls."""

    def __init__(self, page: PageInBrowser) -> None:
        self.page = page
        self.view = page.open("Calls")
        self.canvas = self.view.locator("canvas")
        self.table = self.view.get_by_role("table", name="Functions")
        self.details = self.view.get_by_role("region", name="The chosen function")

    def facts(self) -> str:
        return str(self.view.locator(".facts").first.inner_text())

    def click_box(self, text: str) -> None:
        """Click where this is written on the canvas."""
        self.page.page.evaluate("window.written = []")
        self.view.get_by_role("combobox", name="Shape").dispatch_event("change")  # draws again
        x, y = self.page.place_of(text)
        self.canvas.click(position={"x": x + 3, "y": y})
        self.page.settle()

    def row(self, name: str) -> Any:
        return self.table.get_by_role("row").filter(has=self.page.page.get_by_role("button", name=name, exact=True))

    def choose_row(self, name: str) -> None:
        self.row(name).get_by_role("button").click()
        self.page.settle()

    def chosen_rows(self) -> list[str]:
        return [str(text) for text in self.table.locator("tr[aria-current] th").all_inner_texts()]

    def names(self) -> list[str]:
        return [str(text) for text in self.table.locator("tbody th").all_inner_texts()]

    def select(self, label: str, option: str) -> None:
        self.view.get_by_role("combobox", name=label, exact=True).select_option(label=option)
        self.page.settle()

    def widths(self, row: int) -> list[int]:
        """The widths of the boxes of a row, above their labels, without frames and boxes as narrow."""
        runs = self.page.line(self.canvas, row * ROW + 2)
        return [
            run.end - run.begin for run in runs if run.color not in ("#ffffff", "#000000") and run.end - run.begin > 4
        ]

    def counter(self, name: str) -> float:
        return float(self.canvas.get_attribute(f"data-{name}"))


@pytest.fixture
def known(opened):
    return CallsPage(opened("known.html"))


# ---- the chart ----


def test_boxes_are_as_wide_as_their_time(known):
    whole = known.canvas.bounding_box()["width"]
    everything = 1000 * US + 250 * US
    top = known.widths(1)
    assert top == pytest.approx([whole * part / everything for part in (1000 * US, 250 * US)], abs=2)
    second = known.widths(2)  # dot with both shapes is one, then fib, main's own time and the hostile one
    assert second[:2] == pytest.approx([whole * part / everything for part in (450 * US, 400 * US)], abs=2)
    assert known.facts() == "all: 1.25 ms in calls"


def test_a_click_zooms_and_chooses_the_row(known):
    known.click_box("fib")
    assert known.facts() == "fib (train.py:20): 400 \u00b5s, 32.0 %; itself 50.0 \u00b5s; 1 call"
    assert known.chosen_rows() == ["fib"]
    assert known.details.get_by_role("heading", name="fib", exact=True).is_visible()
    assert max(known.widths(2)) > 0.95 * known.canvas.bounding_box()["width"]
    known.view.get_by_role("button", name="Show all").click()
    assert known.chosen_rows() == []
    assert len(known.widths(1)) == 2


def test_a_row_shows_where_its_function_is(known):
    faint = "#eef1f4"  # as the whole is
    colors = [run.color for run in known.page.line(known.canvas, 2 * ROW + 2)]
    assert faint not in colors
    known.choose_row("dot")
    assert known.chosen_rows() == ["dot"]
    assert known.view.get_by_role("status").first.inner_text() == "2 boxes found, 500 \u00b5s, 40.0 %"
    marked = {run.color for run in known.page.line(known.canvas, 2 * ROW + 2) if run.end - run.begin > 30}
    assert faint in marked
    assert len(marked & set(colors) - {"#ffffff", "#000000"}) == 1  # dot alone keeps its colour
    assert known.facts().startswith("dot (train.py:7): 450 \u00b5s")
    known.click_box("load")
    assert known.chosen_rows() == ["load"]
    assert known.view.get_by_role("status").first.inner_text() == ""


def test_a_search_finds_functions_files_and_built_ins(known):
    search = known.view.get_by_role("searchbox", name="Search the calls")
    for word, found in {
        "FIB": "2 boxes found, 400 \u00b5s",
        "data.py": "1 box found, 250 \u00b5s",
        "len": "1 box found, 20.0 \u00b5s",
        "nothing like it": "0 boxes found, 0 ns",
    }.items():
        search.fill(word)
        assert known.view.get_by_role("status").first.inner_text().startswith(found), word
    search.fill("")
    assert known.view.get_by_role("status").first.inner_text() == ""


def test_the_wheel_zooms_to_what_is_below_it(known):
    """With Ctrl, like a touchpad's pinch, the point below the pointer stays. Without Ctrl, the page scrolls."""
    mouse, keyboard = known.page.page.mouse, known.page.page.keyboard
    box, whole = known.canvas.bounding_box(), known.counter("sight")
    assert whole == 1250 * US
    x = box["width"] * 500 / 1250  # 50 us from the start of fib
    mouse.move(box["x"] + x, box["y"] + 2.5 * ROW)
    assert known.facts().startswith("fib (train.py:20)")
    keyboard.down("Control")
    for _ in range(4):
        mouse.wheel(0, -120)
    known.page.settle()
    keyboard.up("Control")
    seen = known.counter("sight")
    assert seen < whole / 3
    begin = x - 50 * US * box["width"] / seen  # of fib, now
    mouse.move(box["x"] + begin + 3, box["y"] + 2.5 * ROW)
    assert known.facts().startswith("fib (train.py:20)")
    mouse.move(box["x"] + begin - 3, box["y"] + 2.5 * ROW)
    assert known.facts().startswith("dot (train.py:7)")

    known.canvas.evaluate("(canvas) => canvas.addEventListener('wheel', (event) => (window.wheel = event))")
    mouse.wheel(0, 300)
    known.page.settle()
    assert known.page.page.evaluate("window.wheel.defaultPrevented") is False  # it is the page's
    assert known.counter("sight") == seen
    mouse.move(box["x"] + 400, box["y"] + 2.5 * ROW)
    mouse.down()
    mouse.move(box["x"] + 600, box["y"] + 2.5 * ROW, steps=4)  # moves what is wider than its place
    mouse.up()
    mouse.move(box["x"] + begin + 197, box["y"] + 2.5 * ROW)
    assert known.facts().startswith("dot (train.py:7)")
    assert known.chosen_rows() == []  # neither is a click
    known.canvas.focus()
    for _ in range(9):
        keyboard.press("-")
    assert known.counter("sight") == whole


def test_a_flame_has_the_whole_at_the_bottom(known):
    def place(text: str) -> float:
        known.page.page.evaluate("window.written = []")
        known.view.get_by_role("combobox", name="Shape").dispatch_event("change")
        return float(known.page.place_of(text)[1])

    assert place("all") < place("main") < place("dot")
    known.select("Shape", "Flame")
    assert place("all") > place("main") > place("dot")
    known.canvas.focus()
    known.page.page.keyboard.press("ArrowUp")
    assert known.facts().startswith("main (train.py:3)")


def test_threads_are_shown_alone(known):
    known.select("Threads", "loader")
    assert known.facts() == "all: 250 \u00b5s in calls"
    assert set(known.names()) == {"load", "dot"}
    known.select("Threads", "All threads")
    assert len(known.names()) == 6


# ---- tables ----


def test_the_table_is_sorted_and_filtered(known):
    by_self = ["dot", "fib", "load", "main", HOSTILE, LEN]
    assert known.names() == by_self
    known.table.get_by_role("button", name="calls", exact=True).click()
    assert known.names()[:3] == ["dot", LEN, "load"]
    known.table.get_by_role("button", name="total", exact=True).click()
    assert known.names()[0] == "main"
    known.choose_row("fib")
    assert known.chosen_rows() == ["fib"]
    known.view.get_by_role("searchbox", name="Filter the table Functions").fill("data.py")
    assert known.names() == ["load"]


def test_figures_are_those_of_the_analysis(known, folder):
    """The page's own sums over the tree, against the table from C."""
    index = json.loads(block_of(folder / "known.html", "index"))
    (table,) = [one for one in index["tables"] if one["name"] == "functions"]
    keys = [column["name"] for column in table["columns"]]
    told = [dict(zip(keys, row)) for row in zip(*table["cells"])]
    page = dict(zip(known.names(), known.table.locator("tbody tr").all()))
    assert {row["function"] for row in told} == set(page)
    titles = [str(text) for text in known.table.locator("thead button").all_text_contents()]
    for row in told:
        cells = page[row["function"]].locator("td")
        assert cells.nth(titles.index("calls") - 1).inner_text() == str(row["calls"])
        for title, key in (("self", "self_ns"), ("total", "total_ns"), ("per call", "total_per_call_ns")):
            exact = str(cells.nth(titles.index(title) - 1).get_attribute("title"))
            assert int("".join(filter(str.isdigit, exact))) == round(row[key]), (row["function"], title)


def test_the_chosen_function_is_split_by_what_it_was_called_with(known):
    known.choose_row("dot")
    table = known.details.get_by_role("table", name="Called with")
    rows = [row.inner_text().split("\t") for row in table.locator("tbody tr").all()]
    assert [row[0].strip() for row in rows] == [LARGE, SMALL]
    assert [row[1].strip() for row in rows] == ["5", "11"]
    assert rows[0][-1].strip() == f"{300_000 / 5 / 4096:.1f} ns"
    table.get_by_role("button", name=LARGE).click()
    known.page.settle()
    assert known.view.get_by_role("combobox", name="Boxes").input_value() == "signature"
    assert known.facts().startswith(f"dot({LARGE}) (train.py:7): 300 \u00b5s")
    assert known.view.get_by_role("status").first.inner_text() == "1 box found, 300 \u00b5s, 24.0 %"
    callers = known.details.get_by_role("table", name="Called by")
    assert callers.locator("tbody th").all_inner_texts() == ["main", "load"]
    callers.get_by_role("button", name="load").click()
    assert known.chosen_rows() == ["load"]


def test_every_table_of_the_command_is_there(known):
    known.page.open("Tables")
    options = known.page.page.locator("#table-of-calls option").all_inner_texts()
    assert {str(option).split(" ")[0] for option in options} >= {
        "functions",
        "signatures",
        "callers",
        "callees",
        "paths",
    }


# ---- a difference ----


def test_a_difference_tells_what_is_slower(opened):
    page = CallsPage(opened("difference.html"))
    assert page.names()[0] == "dot"
    assert page.row("dot").locator("td").nth(2).inner_text() == "+600 \u00b5s"
    assert page.row("fib").locator("td").nth(2).inner_text() == "0 ns"
    page.click_box("dot")
    assert "itself +600 \u00b5s" in page.facts()
    assert "before 450 \u00b5s" in page.facts()
    assert "#e3705a" in page.page.colors(page.canvas)  # much slower
    wide = page.view.get_by_role("combobox", name="Widths")
    for value, found in (("0", "2 boxes found, 1.10 ms, 59.5 %"), ("1", "2 boxes found, 500 \u00b5s, 40.0 %")):
        wide.select_option(value)
        page.choose_row("dot")
        assert page.view.get_by_role("status").first.inner_text() == found


def test_pictures_are_kept_in_light_dark_and_narrow(opened):
    for name in ("known.html", "difference.html", "large.html"):
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 400)):
            page = CallsPage(opened(name, color_scheme=scheme, width=width))
            page.table.locator("tbody button").first.click()
            assert page.page.overflow() == 0
            page.page.screenshot(f"calls-{name.removesuffix('.html')}-{scheme}-{width}")


# ---- keyboard, touch, screen reader ----


def test_keys_alone_are_enough(known):
    keyboard = known.page.page.keyboard
    known.canvas.focus()
    for key, begin in (
        ("ArrowDown", "main"),
        ("ArrowDown", "dot"),
        ("ArrowRight", "fib"),
        ("ArrowLeft", "dot"),
        ("ArrowUp", "main"),
    ):
        keyboard.press(key)
        assert known.facts().startswith(f"{begin} ("), key
        assert known.page.page.locator("[aria-live=polite]").inner_text().startswith(begin)
        assert known.chosen_rows() == [begin]
    keyboard.press("Enter")
    assert len(known.widths(1)) == 1
    keyboard.press("Escape")
    assert len(known.widths(1)) == 2
    keyboard.press("/")
    assert known.page.page.evaluate("document.activeElement.type") == "search"


def test_a_finger_zooms(opened):
    page = CallsPage(opened("known.html", has_touch=True, is_mobile=True, width=800))
    page.page.page.evaluate("window.written = []")
    page.view.get_by_role("combobox", name="Shape").dispatch_event("change")
    x, y = page.page.place_of("fib")
    box = page.canvas.bounding_box()
    page.page.page.touchscreen.tap(box["x"] + x + 3, box["y"] + y)
    page.page.settle()
    assert page.facts().startswith("fib (train.py:20)")
    assert page.chosen_rows() == ["fib"]


def test_two_fingers_zoom_and_are_no_click(opened):
    page = CallsPage(opened("known.html", has_touch=True, is_mobile=True, width=800))
    whole, width = page.counter("sight"), page.canvas.bounding_box()["width"]
    middle, y = width * 650 / 1250, 2.5 * ROW  # in the middle of fib
    fingers = Fingers(page.page, "#view-calls canvas")
    fingers.go(((middle - 50, y), (middle - 100, y)), ((middle + 50, y), (middle + 100, y)))
    assert page.counter("sight") == pytest.approx(whole / 2, rel=0.05)
    assert page.facts().startswith("all:") and page.chosen_rows() == []
    page.page.page.touchscreen.tap(page.canvas.bounding_box()["x"] + middle, page.canvas.bounding_box()["y"] + y)
    page.page.settle()
    assert page.chosen_rows() == ["fib"]
    fingers.go(((middle - 200, y), (middle - 20, y)), ((middle + 200, y), (middle + 20, y)))
    assert page.counter("sight") == pytest.approx(whole, rel=0.05)  # past fib and past main


def test_everything_has_a_name(known):
    known.choose_row("dot")
    session = known.page.context.new_cdp_session(known.page.page)
    nodes = [node for node in session.send("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
    session.detach()
    named = {"button", "searchbox", "combobox", "application", "region", "table", "toolbar"}
    found = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes]
    assert [role for role, name in found if role in named and not name.strip()] == []
    assert ("application", "Calls") in found
    assert "go from box to box" in known.page.page.locator("#calls-keys").inner_text()


def test_a_name_that_is_html_is_a_text(known):
    known.choose_row(HOSTILE)
    assert known.details.get_by_role("heading", name=HOSTILE).is_visible()
    assert known.page.page.locator("img").count() == 0


# ---- much ----


def test_a_deep_recursion_is_scrolled(opened):
    page = CallsPage(opened("deep.html", device_scale_factor=2))
    height = page.canvas.bounding_box()["height"]
    assert height < 800
    assert page.canvas.evaluate("(canvas) => canvas.height") == pytest.approx(2 * height, abs=2)
    scroll = page.view.locator(".flame-scroll")
    assert scroll.evaluate("(one) => one.scrollHeight") > 900 * ROW
    scroll.evaluate("(one) => { one.scrollTop = 12000 }")
    page.page.settle()
    page.canvas.click(position={"x": 100, "y": 100})
    assert page.facts().startswith("fib (train.py:20): ")
    assert page.page.page.locator("tr[aria-current]").count() == 1


def test_a_hundred_thousand_paths(opened, folder):
    page = CallsPage(opened("large.html"))
    scroll, took = page.view.locator(".flame-scroll"), []
    assert 1000 < page.counter("boxes") < MANY / 4  # narrow boxes are not drawn individually
    for step in range(30):
        before = page.counter("frames")
        scroll.evaluate("(one, to) => { one.scrollTop = to }", 15 * (step + 1))
        page.page.settle()
        assert page.counter("frames") == before + 1  # one frame for what was asked of one
        took.append(page.counter("ms"))
    zooms = []
    page.canvas.focus()
    for _ in range(10):
        page.page.page.keyboard.press("ArrowDown")
        page.page.page.keyboard.press("Enter")
        page.page.settle()
        zooms.append(page.counter("ms"))
    took.sort()
    zooms.sort()
    size = (folder / "large.html").stat().st_size
    print(
        f"\n{MANY:,} paths, a page of {size / 1e6:.2f} MB: a frame while scrolling takes {took[15]:.1f} ms "
        f"(median of 30; longest {took[-1]:.1f} ms), after a zoom {zooms[5]:.1f} ms"
    )
    page.view.get_by_role("searchbox", name="Search the calls").fill("function_7")
    assert page.view.get_by_role("status").first.inner_text().split(" ")[0].replace(",", "").isdigit()
    assert size < 4_000_000


# ---- of a profiler ----


def test_a_profile_has_its_paths_and_signatures(opened):
    page = CallsPage(opened("profile.html"))
    assert {"program", "take", "again"} <= set(page.names())
    page.choose_row("take")
    table = page.details.get_by_role("table", name="Called with")
    rows = {
        row.locator("th").inner_text(): row.locator("td").first.inner_text() for row in table.locator("tbody tr").all()
    }
    assert rows == {"one:str": "2", "one:int": "2"}
    callers = page.details.get_by_role("table", name="Called by")
    assert sorted(callers.locator("tbody th").all_inner_texts()) == ["again", "program"]
    # again calls itself 50 times, one box within the other, and take in the innermost
    assert page.view.locator(".flame-scroll").evaluate("(one) => one.scrollHeight") >= 53 * ROW


# ---- in a report ----


def test_a_report_has_the_same_view(opened):
    page = opened("report.html")
    assert "Calls" in page.titles()
    calls = CallsPage(page)
    assert calls.names()[0] == "dot"
    calls.click_box("fib")
    assert calls.chosen_rows() == ["fib"]
