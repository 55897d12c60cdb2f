"""The page and the charts of marey scale in Chromium: light and dark, no scripts or requests, no overlapping labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from marey_command import run_marey

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)

HOSTILE = "</text><script>document.title='owned'</script> & \"name\""
SERIES = {"ddp": (1, 2, 4, 8, 16), "deepspeed": (2, 4, 8, 16), HOSTILE: (1, 3, 6, 12)}
PICTURES = ("epoch-time", "speedup", "efficiency", "step-breakdown", "energy", "utilization", "throughput")


def measurements() -> Iterator[str]:
    """All that can be measured, of three series with different counts."""
    yield "strategy,workers,run,measure,step,value"
    for name, counts in SERIES.items():
        quoted = '"' + name.replace('"', '""') + '"'
        for workers in counts:
            facts = {"samples_per_epoch": 1e5, "gpu_utilization_percent": 95 - workers, "compute_s": 0.2 / workers}
            facts |= {"communication_s": 0.01 * workers**0.5, "memory_s": 0.002, "idle_s": 0.004}
            for run in "ab":
                start = f"{quoted},{workers},{run}"
                yield from (f"{start},{fact},,{value}" for fact, value in facts.items())
                yield from (f"{start},epoch_time_s,{epoch},{90 / workers + 10 + epoch}" for epoch in range(4))
                yield from (f"{start},energy_j,{epoch},{5e4 + 3e3 * workers}" for epoch in range(4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scaling")
    (path / "measured.csv").write_text("\n".join(measurements()) + "\n")
    run_marey("scale", path / "measured.csv", "--html", path / "page.html", "--pictures", path)
    return path


class Shown:
    """A file, open in the browser; its errors and requests are stored."""

    def __init__(self, browser: Any, path: Path, scheme: str, width: int) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def color(self, selector: str, which: str) -> str:
        return str(self.page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{which}"))


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Any]:
    shown: list[Shown] = []

    def open_file(name: str, scheme: str = "light", width: int = 1280) -> Shown:
        shown.append(Shown(browser, folder / name, scheme, width))
        return shown[-1]

    yield open_file
    for each in shown:
        each.context.close()
        assert each.complaints == []
        assert [url for url in each.requests if not url.startswith("file:")] == []


# Labels that overlap others by more than a pixel, and those outside of the image.
CROWDED = """
(svg) => {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    const wrong = [];
    texts.forEach(([name, box], i) => {
        const beside = box.left < frame.left - 1 || box.right > frame.right + 1;
        if (beside || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
            wrong.push(`${name} leaves the picture`);
        texts.slice(i + 1).forEach(([other, next]) => {
            const wide = Math.min(box.right, next.right) - Math.max(box.left, next.left);
            const high = Math.min(box.bottom, next.bottom) - Math.max(box.top, next.top);
            if (wide > 1 && high > 3) wrong.push(`${name} lies on ${other}`);
        });
    });
    return wrong;
}
"""


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_of_a_picture_is_cut_off_or_lies_on_another(opened, name):
    shown = opened(f"{name}.svg")
    assert shown.page.evaluate(f"({CROWDED})(document.documentElement)") == []


def test_names_stay_text(opened):
    for name in ("page.html", "speedup.svg"):
        shown = opened(name)
        assert shown.page.title() != "owned"
        assert shown.page.locator("script").count() == 0
        assert HOSTILE[:10] in str(shown.page.locator("text", has_text="script").first.text_content())


@pytest.mark.parametrize("name", ["page.html", "speedup.svg", "step-breakdown.svg"])
def test_it_follows_light_and_dark(opened, name):
    light, dark = opened(name, "light"), opened(name, "dark")
    assert light.color(".paper", "fill") == "rgb(255, 255, 255)"
    assert dark.color(".paper", "fill") == "rgb(24, 26, 27)"
    assert light.color("svg text", "fill") == "rgb(31, 35, 40)"
    assert dark.color("svg text", "fill") == "rgb(224, 227, 230)"


def test_marks_lie_where_their_values_are(opened):
    """Doubling the workers is the same distance everywhere, and the ideal is a straight line through the first mark."""
    page = opened("speedup.svg").page
    marks = page.evaluate(
        """() => [...document.querySelectorAll("path.mark")].filter((mark) => mark.querySelector("title"))
            .map((mark) => [mark.textContent, mark.getAttribute("d").match(/[\\d.]+/g).slice(0, 2).map(Number)])"""
    )
    ddp = [at for tip, at in marks if tip.startswith("ddp, ")]
    steps = [b[0] - a[0] for a, b in zip(ddp, ddp[1:])]
    assert len(ddp) == 5 and max(steps) - min(steps) < 0.3
    heights = [at[1] for at in ddp]
    assert heights == sorted(heights, reverse=True), "more workers are faster, and higher"


def test_pictures_have_names_for_those_who_cannot_see(opened):
    page = opened("page.html").page
    for name in PICTURES:
        picture = page.locator(f'svg[aria-labelledby="{name}-title {name}-about"]')
        assert picture.get_attribute("role") == "img"
        assert "against workers" in str(page.locator(f"#{name}-about").text_content())


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_its_window(opened, width):
    page = opened("page.html", width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("figure").count() == len(PICTURES)
    assert page.locator("h2").all_text_contents()[0] == "time, speedup, efficiency"
