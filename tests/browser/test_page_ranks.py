"""The map of ranks and iterations in Chromium: colors, texts, sort orders, keys, touch, link to the timeline."""

from __future__ import annotations

from pathlib import Path

import perfetto_page
import pytest
import rank_logs
from page_in_browser import Fingers, PageInBrowser, has_viewer, make_page
from rank_logs import Times

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)
MAP = "#view-ranks .heat > canvas"
GUTTER = 78
N_ITERATIONS = 20


def planted(rank: int, i: int) -> Times:
    """Iteration 12 of rank 21 waits long for its data, rank 13 is slow in `forward` in three of four."""
    usual = rank_logs.even(rank, i)
    if (rank, i) == (21, 12):
        return usual._replace(data=usual.data + 200_000)
    return usual._replace(forward=usual.forward + 30_000) if rank == 13 and i % 4 != 0 else usual


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranks")
    for name, n in (("two", 2), ("many", 96), ("some", 32)):
        rank_logs.write(path / f"{name}.marey", rank_logs.job(n), planted)
        make_page(path / f"{name}.html", path / f"{name}.marey")
    if not has_viewer(path / "some.html"):
        pytest.skip("this build has no viewer: Node is missing")
    return path


def place(page: PageInBrowser, n: int, rank: int, iteration: int) -> tuple[float, float]:
    """The position of a cell on the canvas, with the whole map visible."""
    box = page.page.locator(MAP).bounding_box()
    x = GUTTER + (iteration + 0.5) * (box["width"] - GUTTER) / N_ITERATIONS
    return x, (rank + 0.5) * (box["height"] - 22) / n


def facts(page: PageInBrowser) -> str:
    return str(page.page.locator(".heat .facts").inner_text())


def point(page: PageInBrowser, n: int, rank: int, iteration: int) -> str:
    page.page.locator(MAP).hover(position=dict(zip("xy", place(page, n, rank, iteration))))
    return facts(page)


def color_at(page: PageInBrowser, rank: int, iteration: int) -> str:
    x, y = place(page, 32, rank, iteration)
    return next(run.color for run in page.line(page.page.locator(MAP), y) if run.begin <= x < run.end)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_slow_is_seen_and_said(opened, scheme):
    page = opened("some.html", view="ranks", color_scheme=scheme)
    assert "32 ranks from top to bottom, 20 iterations from left to right." in page.view("Ranks").inner_text()
    said = point(page, 32, 21, 12)
    assert said.startswith("rank 21 on node2, iteration 12: 30")
    assert "data was longer by 200 \u00b5s than in iterations before" in said
    assert "on average forward is longer by " in point(page, 32, 13, 1)
    assert point(page, 32, 5, 5).endswith("as the median rank")
    assert point(page, 32, 5, 0).endswith("iteration 0: warm-up, or not recorded")
    # A column of the map: the slow cell differs from those above it.
    assert color_at(page, 21, 12) != color_at(page, 5, 12)
    page.screenshot(f"ranks-{scheme}")
    assert page.overflow() <= 0


def test_a_click_leads_to_the_iteration_on_the_timeline(opened):
    page = opened("some.html", view="ranks")
    page.page.locator(MAP).click(position=dict(zip("xy", place(page, 32, 21, 12))))
    page.view("Timeline").wait_for(state="visible")
    details = page.view("Details").inner_text()
    assert "12" in details.splitlines()[0] and "300" in details


def test_rows_can_be_ordered_and_keys_go_everywhere(opened):
    page = opened("some.html", view="ranks")
    page.page.locator("#heat-order").select_option("mean")
    assert point(page, 32, 0, 1).startswith("rank 13 ")
    page.page.locator("#heat-order").select_option("host")
    assert point(page, 32, 31, 1).startswith("rank 31 on node3")
    page.page.locator("#heat-colour").select_option("absolute")
    page.page.locator(MAP).focus()
    page.page.mouse.move(5, 5)
    page.page.keyboard.press(" ")
    assert facts(page).startswith("rank 21 on node2, iteration 12: ")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowRight")
    assert facts(page).startswith("rank 22 on node2, iteration 13: ")
    page.page.keyboard.press("w")
    page.page.keyboard.press("0")
    page.page.keyboard.press("t")
    assert page.page.get_by_role("table", name="rank_times").is_visible()


def test_a_finger_tells_first_and_then_goes(opened):
    page = opened("some.html", view="ranks", has_touch=True, is_mobile=True)
    spot = place(page, 32, 21, 12)
    Fingers(page, MAP).go((spot, spot))
    assert facts(page).startswith("rank 21 on node2, iteration 12: ")
    assert page.view("Ranks").is_visible()
    Fingers(page, MAP).go((spot, spot))
    page.view("Timeline").wait_for(state="visible")


def test_of_many_ranks_the_timeline_has_some(opened):
    page = opened("many.html", view="ranks")
    assert point(page, 96, 21, 12).startswith("rank 21 on node2, iteration 12: ")
    page.page.locator(MAP).click(position=dict(zip("xy", place(page, 96, 50, 5))))
    assert facts(page).startswith("rank 50 ")  # usual in all, so it is not on the timeline
    assert page.page.get_by_role("button", name="Show on the timeline").is_disabled()
    page.page.locator(MAP).click(position=dict(zip("xy", place(page, 96, 21, 12))))
    page.view("Timeline").wait_for(state="visible")
    assert " of 96 processes are here: the slowest, " in page.view("Timeline").inner_text()


def test_two_ranks_have_a_map_too(opened):
    page = opened("two.html", view="ranks")
    assert point(page, 2, 1, 5).startswith("rank 1 on node0, iteration 5: 100 \u00b5s")
