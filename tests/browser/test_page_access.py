"""Accessibility of a report page: its accessibility tree in Chromium, and keyboard-only use."""

from __future__ import annotations

import sys
from pathlib import Path

import page_traces
import perfetto_page
import pytest
from marey_command import run_marey
from page_in_browser import PageInBrowser, has_viewer, make_page

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)
WORKLOAD = Path(__file__).parent / "page_workload.py"
KINETO = Path(__file__).parent.parent / "data" / "kineto"
# All controls and all drawings must have a name.
NAMED = {"button", "link", "searchbox", "combobox", "application", "img", "image", "region", "table", "navigation"}
TEXTS = ["--ink", "--faint", "--accent", "--lost"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("access")
    if not has_viewer(make_page(path / "known.html", page_traces.known(path / "known.json"))):
        pytest.skip("this build has no viewer: Node is missing")
    run_marey("run", "--only", "ranges", "-q", "-o", path / "run.marey", "--", sys.executable, WORKLOAD)
    make_page(path / "run.html", path / "run.marey")
    make_page(path / "ranks.html", *(KINETO / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)))
    run_marey("compare", path / "run.marey", path / "run.marey", "--html", path / "compare.html")
    return path


def nodes(page: PageInBrowser) -> list[tuple[str, str]]:
    """The accessibility tree that Chromium exposes to screen readers: roles and names."""
    session = page.context.new_cdp_session(page.page)
    found = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    shown = [node for node in found if not node["ignored"] and "role" in node]
    return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in shown]


def said(page: PageInBrowser) -> str:
    """The last announcement."""
    place = page.page.locator("[aria-live=polite]")
    return str(place.inner_text())


@pytest.mark.parametrize("name", ["run.html", "ranks.html", "compare.html"])
def test_everything_has_a_name(opened, name):
    page = opened(name)
    for title in page.titles():
        page.open(title)
        tree = nodes(page)
        assert [role for role, text in tree if role in NAMED and not text.strip()] == [], title
        assert {"banner", "main", "navigation"} <= {role for role, _text in tree}
        assert ("region", title) in tree
        assert len([role for role, _text in tree if role == "heading"]) >= 1


def test_the_tree_of_the_timeline(opened):
    page = opened("known.html")
    page.open("Timeline")
    tree = nodes(page)
    assert ("application", "Timeline") in tree
    assert ("toolbar", "Timeline") in tree
    assert ("searchbox", "Search the timeline") in tree
    for name in ("Previous match", "Next match", "A table of what is in sight", "Zoom in", "Zoom out", "Show all"):
        assert ("button", name) in tree
    described = page.page.locator("#view-timeline canvas").get_attribute("aria-describedby")
    assert "W S zoom" in page.page.locator(f"#{described}").inner_text()


def test_a_table_stands_for_the_timeline(opened):
    page = opened("known.html")
    page.open("Timeline")
    page.page.locator("#view-timeline canvas").focus()
    page.page.keyboard.press("t")
    table = page.page.get_by_role("table", name="Ranges in the selected time")
    rows = {row.get_by_role("rowheader").inner_text(): row for row in table.get_by_role("row").all()[1:]}
    assert set(rows) == {"step", "forward", "backward", "load", page_traces.HOSTILE}
    assert rows["forward"].get_by_role("cell").first.inner_text() == str(page_traces.STEPS)
    assert said(page).startswith("1.10 ms from 0 ns on: 5 names; most of it step, 900 \u00b5s")


def test_what_is_picked_is_said(opened):
    page = opened("known.html")
    page.open("Timeline")
    page.page.locator("#view-timeline canvas").focus()
    page.page.keyboard.press(" ")
    assert said(page) == "step, 90.0 \u00b5s, begins at 0 ns"
    page.page.keyboard.press("ArrowDown")
    assert said(page) == "forward, 30.0 \u00b5s, begins at 10.0 \u00b5s"
    page.open("Flame graph")
    page.page.locator("#view-flame canvas").focus()
    page.page.keyboard.press("ArrowDown")
    assert said(page).startswith("step: 900 \u00b5s, ")


def test_a_table_stands_for_the_flame_graph(opened):
    page = opened("known.html")
    page.open("Flame graph").get_by_role("button", name="Table").click()
    assert page.view("Tables").is_visible()
    assert page.page.get_by_role("table", name="tree").is_visible()


@pytest.mark.parametrize("name", ["ranks.html", "compare.html"])
def test_all_views_can_be_walked_through_by_keys(opened, name):
    """Every view is opened by Tab and Enter, and everything in it that can be operated is reached by Tab."""
    page = opened(name)
    for title in page.titles():
        page.page.locator(".skip").focus()
        assert tab_to_link(page, title)
        page.page.keyboard.press("Enter")
        page.settle()
        assert page.view(title).is_visible()
        wanted = page.view(title).evaluate(
            "(view) => [...view.querySelectorAll('a[href], button:enabled, select, input, canvas[tabindex]')]"
            ".filter((one) => one.checkVisibility()).length"
        )
        reached = 0
        for _ in range(min(wanted, 15)):
            page.page.keyboard.press("Tab")
            while is_in(page, "nav, header"):
                page.page.keyboard.press("Tab")
            reached += is_in(page, "main")
            outline = page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", (title, focused(page))
        assert reached == min(wanted, 15), title


def focused(page: PageInBrowser) -> str:
    return str(page.page.evaluate("document.activeElement.textContent"))


def is_in(page: PageInBrowser, what: str) -> bool:
    return bool(page.page.evaluate("(what) => document.activeElement.closest(what) !== null", what))


def tab_to_link(page: PageInBrowser, title: str) -> bool:
    for _ in range(10):
        page.page.keyboard.press("Tab")
        if is_in(page, "nav") and focused(page) == title:
            return True
    return False


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(opened, scheme):
    """Contrast as WCAG 2 counts it, 4.5 at least."""
    page = opened("known.html", color_scheme=scheme)
    get = "(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
    for text in TEXTS:
        for behind in ("--paper", "--card", "--band"):
            light, dark = sorted((luminance(page.page.evaluate(get, name)) for name in (text, behind)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, behind)


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722)))
