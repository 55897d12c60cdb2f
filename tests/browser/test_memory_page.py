"""The page of a memory timeline: drawing, announcements and selection, by mouse and keys, without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from marey_command import run_marey
from page_in_browser import PageInBrowser, has_viewer

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)
ACTIVATION, PARAMETER = "#ee6677", "#228833"
MB = 1_000_000


def write_trace(path: Path) -> Path:
    """On the CPU a parameter of 2 MB, activations of 5 MB and of 3 MB, a gradient of 1 MB; a GPU besides."""
    where = "<built-in>;torch/nn/modules/linear.py(1): forward;nn.Module: Linear_0;train.py(7): <b>&step</b>;"

    def memory(ms: float, address: int, size: int, gpu: int = -1) -> dict[str, Any]:
        args = {"Addr": address, "Bytes": size, "Device Type": int(gpu >= 0), "Device Id": gpu, "Call stack": where}
        about = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1}
        return about | {"ts": ms * 1000, "args": args}

    def phase(name: str, ms: float, duration: float) -> dict[str, Any]:
        about = {"ph": "X", "cat": "user_annotation", "name": f"marey:{name}", "pid": 1, "tid": 1, "args": {}}
        return about | {"ts": ms * 1000, "dur": duration * 1000}

    events = [
        *(phase("forward", 0, 40), phase("backward", 40, 40), phase("optimizer", 80, 20)),
        *(memory(10, 0x100000000, 5 * MB), memory(30, 0x110000000, 3 * MB), memory(50, 0x100000000, -5 * MB)),
        *(memory(60, 0x120000000, MB), memory(70, 0x110000000, -3 * MB), memory(20, 0x700000000000, 512, 0)),
    ]
    roles = [["parameter", 0x200000000, 2 * MB, 0, -1, 5_000_000, "fc.weight"]]
    content = {
        "schemaVersion": 1,
        "baseTimeNanoseconds": 0,
        "traceEvents": events,
        "marey": {"rank": 3, "roles": roles},
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("memory")
    run_marey("artifacts", write_trace(made / "trace.json"), "-o", made, "--only", "timeline")
    if not has_viewer(made / "rank3_memory-timeline.html"):
        pytest.skip("this build has no viewer: Node is missing")
    return made


@pytest.fixture
def page(opened: Any) -> PageInBrowser:
    page = opened("rank3_memory-timeline.html", color_scheme="dark")
    page.page.get_by_role("combobox", name="Device").select_option("CPU")
    return page


def colors(page: PageInBrowser) -> set[str]:
    """The content of the lower half of the chart."""
    canvas = page.page.locator("canvas")
    height = canvas.bounding_box()["height"]
    return {run.color for part in (0.5, 0.6, 0.7) for run in page.line(canvas, height * part, left=80)}


def rows(page: PageInBrowser, name: str) -> list[list[str]]:
    table = page.page.get_by_role("region", name=name, exact=True).locator("tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in table.all()]


def test_the_peak_is_marked_and_taken_apart(page: PageInBrowser) -> None:
    assert page.page.locator("h1").inner_text() == "Memory of rank 3"
    assert "peak 10.0 MB" in [text for text, _x, _y in page.written()]
    assert ACTIVATION in colors(page)
    by_category = rows(page, "By category")
    assert by_category[0] == ["parameters", "2.00 MB", "20.0 %", "1"]
    assert by_category[1] == ["activations", "8.00 MB", "80.0 %", "2"]
    assert by_category[2][:2] == ["all", "10.0 MB"]
    by_stack = rows(page, "By stack")
    assert by_stack[0][:4] == ["8.00 MB", "80.0 %", "2", "activations"]
    assert by_stack[0][4] == "Linear_0 \u00b7 train.py(7): <b>&step</b>"
    assert by_stack[1][4] == "fc.weight"
    page.page.locator("details summary").first.click()
    assert "torch/nn/modules/linear.py(1): forward" in page.page.locator("details pre").first.inner_text()
    page.screenshot("memory")


def test_keys_zoom_pick_and_switch(page: PageInBrowser) -> None:
    canvas = page.page.locator("canvas")
    canvas.focus()
    forward = page.place_of("forward")
    page.page.keyboard.press("w")
    assert page.place_of("forward") != forward
    page.page.keyboard.press("0")
    assert page.place_of("forward") == forward
    page.page.keyboard.press("5")  # activations off
    assert ACTIVATION not in colors(page)
    assert PARAMETER in colors(page)
    pressed = page.page.locator(".legend button").nth(4)
    assert pressed.get_attribute("aria-pressed") == "false"
    pressed.click()
    assert ACTIVATION in colors(page)
    canvas.focus()
    page.page.keyboard.press("ArrowRight")  # the first activation goes at 50 ms
    assert "At 50.0 ms" in page.page.locator(".alive h2").first.inner_text()
    assert rows(page, "By category")[1][1] == "3.00 MB"
    page.page.keyboard.press("ArrowRight")
    assert rows(page, "By category")[2][:2] == ["gradients", "1.00 MB"]
    page.page.keyboard.press("p")
    assert "At the peak" in page.page.locator(".alive h2").first.inner_text()


def test_the_pointer_tells_numbers_and_a_click_picks(page: PageInBrowser) -> None:
    canvas = page.page.locator("canvas")
    box = canvas.bounding_box()
    (x0, _), (x1, _) = page.place_of("20 ms"), page.place_of("80 ms")
    canvas.hover(position={"x": x0 + (x1 - x0) * 2 / 3, "y": box["height"] / 2})  # 60 ms, a little more or less
    page.settle()
    told = page.page.locator(".memory .facts").inner_text()
    assert 58 < float(told.split(" at ")[1].split(" ms")[0]) < 62
    canvas.click(position={"x": x0, "y": box["height"] / 2})
    assert rows(page, "By category")[1][:2] == ["activations", "5.00 MB"]
    page.page.mouse.move(0, 0)
    page.settle()
    assert page.page.locator(".memory .facts").inner_text().startswith("7.00 MB at 10.0 ms")


def test_the_gpu_is_another_device(opened: Any) -> None:
    page = opened("rank3_memory-timeline.html", width=400)
    assert page.page.get_by_role("combobox", name="Device").locator("option").all_inner_texts() == ["CPU", "GPU 0"]
    assert page.page.locator(".memory .facts").inner_text().startswith("512 B")  # the GPU first
    assert page.overflow() <= 0
