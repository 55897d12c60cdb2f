"""The flame graph in Chromium: drawing, zoom, search, keyboard, and names that must remain text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from marey_command import run_marey
from stack_names import HOSTILE

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)

WORKLOAD = Path(__file__).parent / "stack_workload.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flame")
    run_marey("run", "--only", "ranges", "-q", "-o", path / "old.marey", "--", sys.executable, WORKLOAD)
    run_marey("run", "--only", "ranges", "-q", "-o", path / "new.marey", "--", sys.executable, WORKLOAD, "slow")
    run_marey("export", path / "new.marey", "-o", path / "new.svg")
    run_marey("export", path / "new.marey", "--baseline", path / "old.marey", "-o", path / "diff.svg")
    return path


class Picture:
    """An SVG, open in the browser; errors of the page are stored."""

    def __init__(self, browser: Any, path: Path, scripts: bool = True) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(viewport={"width": 1280, "height": 700}, java_script_enabled=scripts)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def boxes(self) -> dict[str, Any]:
        """The visible boxes: position and label by the first line of the title; of equal names the last."""
        shown: dict[str, Any] = self.page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll("g.b")]
                .filter((g) => g.style.display !== "none")
                .map((g) => [g.querySelector("title").textContent.split("\\n")[0], {
                    x: +g.querySelector("rect").getAttribute("x"),
                    width: +g.querySelector("rect").getAttribute("width"),
                    fill: getComputedStyle(g.querySelector("rect")).fill,
                    hit: g.classList.contains("hit"),
                    label: g.querySelector("text").textContent,
                }]))"""
        )
        return shown

    def click(self, name: str) -> None:
        self.page.locator("g.b", has=self.page.locator("title", has_text=name)).last.locator("rect").click()

    def details(self) -> str:
        return str(self.page.locator("#details").text_content())


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Any]:
    pictures: list[Picture] = []

    def open_picture(name: str, **more: Any) -> Picture:
        pictures.append(Picture(browser, folder / name, **more))
        return pictures[-1]

    yield open_picture
    for picture in pictures:
        picture.context.close()
        assert picture.complaints == []
        assert [url for url in picture.requests if not url.startswith("file:")] == []


def test_widths_are_shares_of_the_whole(opened, folder):
    shown = opened("new.svg").boxes()
    tree = json.loads(run_marey("report", folder / "new.marey", "--json", "--tree"))["tree"]
    whole = sum(row["total_ns"] for row in tree if row["depth"] == 0)
    assert shown["all"]["width"] == 1280 - 20
    for row in tree:
        if row["name"] in ("step", "forward", "backward", "layer 12"):
            assert shown[row["name"]]["width"] == pytest.approx(row["total_ns"] / whole * 1260, abs=0.02)
    assert shown["step"]["label"].startswith("step  ")
    assert shown["step"]["label"].endswith("ms")


def test_a_click_zooms_and_reset_comes_back(opened):
    picture = opened("new.svg")
    before = picture.boxes()
    picture.click("forward")
    shown = picture.boxes()
    assert shown["forward"]["width"] == shown["step"]["width"] == 1260
    assert "backward" not in shown
    share = before["layer 12"]["width"] / before["forward"]["width"]
    assert shown["layer 12"]["width"] == pytest.approx(share * 1260, abs=1)
    picture.page.get_by_role("button", name="Reset zoom").click()
    assert picture.boxes() == before


def test_search_marks_names_and_adds_up_their_time(opened):
    picture = opened("new.svg")
    picture.page.keyboard.press("Control+f")
    picture.page.keyboard.type("LAYER")
    shown = picture.boxes()
    assert {name for name, box in shown.items() if box["hit"]} == {"layer 11", "layer 12"}
    share = (shown["layer 11"]["width"] + shown["layer 12"]["width"]) / 1260 * 100
    assert picture.page.get_by_role("status").inner_text() == f"2 boxes, {share:.1f} % of what is shown"
    picture.page.keyboard.press("Escape")
    assert not any(box["hit"] for box in picture.boxes().values())


def test_hovering_and_the_keyboard_tell_the_details(opened):
    picture = opened("new.svg")
    picture.page.locator("g.b", has=picture.page.locator("title", has_text="backward")).hover()
    assert picture.details().startswith("backward, total ")
    assert "10 calls, mean " in picture.details()
    picture.page.mouse.move(1, 1)
    for _ in range(3):  # the boxes, the search, the button when it is on; only one box is among them
        picture.page.keyboard.press("Tab")
        if picture.page.evaluate("document.activeElement === document.querySelector('g.b')"):
            break
    else:
        pytest.fail("the boxes cannot be reached by tab")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        picture.page.keyboard.press(key)
    assert picture.details().startswith(("backward, ", "forward, ", "new loss, "))  # the order is that of their times
    picture.page.keyboard.press("Enter")
    name = picture.details().split(",")[0]
    assert picture.boxes()[name]["width"] == 1260
    picture.page.keyboard.press("Escape")
    assert picture.boxes()["step"]["width"] < 1260


def test_a_hostile_name_is_shown_and_not_run(opened):
    picture = opened("new.svg")
    assert HOSTILE in picture.boxes()
    picture.click("<img src=x")
    assert picture.details().startswith(HOSTILE)
    assert picture.boxes()[HOSTILE]["label"].startswith("</title></text>")
    assert picture.page.evaluate("document.title").startswith("Where the time went")
    assert picture.page.locator("script").count() == 1
    assert picture.page.locator("img").count() == 0


def test_without_scripts_the_picture_is_whole(opened):
    picture = opened("new.svg", scripts=False)
    page = picture.page
    assert page.locator("g.b").count() > 8
    assert (
        page.locator("g.b", has=page.locator("title", has_text="backward")).locator("rect").bounding_box()["width"] > 50
    )
    assert page.locator("foreignObject").count() == 0


def test_a_difference_is_red_where_it_is_slower(opened):
    picture = opened("diff.svg")

    def color(name: str) -> tuple[int, ...]:
        fills = picture.page.evaluate(
            """(name) => [...document.querySelectorAll("g.b")]
                .filter((g) => g.querySelector("title").textContent.startsWith(name + "\\n"))
                .map((g) => getComputedStyle(g.querySelector("rect")).fill)""",
            name,
        )
        return max((tuple(map(int, fill[4:-1].split(","))) for fill in fills), key=lambda rgb: max(rgb) - min(rgb))

    red, green, blue = color("attention")
    assert red > green and red > blue
    assert len(set(color("all"))) == 1
    texts = picture.page.locator("text").all_text_contents()
    assert any("old loss, 10 calls" in text for text in texts)
    assert any(text.startswith("Only in old.marey") for text in texts)
    picture.click("new loss")
    assert "not there before" in picture.details()
