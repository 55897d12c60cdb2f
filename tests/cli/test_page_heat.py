"""The map of ranks and iterations in a report page, read from docs/formats/page.md alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import pytest
import rank_logs
from page_decoder import Page, needs_viewer
from rank_logs import Times

pytestmark = needs_viewer


class Cell(NamedTuple):
    ns: float
    process: int
    iteration: int
    longer: str
    extra: float  # of all of it


class Heat:
    """The map of a page."""

    def __init__(self, path: Path) -> None:
        """Read the page at `path`."""
        page = Page(path)
        self.page = page
        self.index = page.index["heat"]
        self.block = page.blocks["heat"]
        self.n = self.index["rows"] * self.index["columns"]
        planes = 4 + self.index["rank_width"] + self.index["iteration_width"]
        assert len(self.block) == planes * self.n

    def number(self, plane: int, width: int, at: int) -> int:
        return sum(self.block[(plane + k) * self.n + at] << (8 * k) for k in range(width))

    def cell(self, row: int, column: int) -> Cell | None:
        about, at = self.index, row * self.index["columns"] + column
        code = self.number(0, 2, at)
        if code == 0:
            return None
        member = self.number(4, about["rank_width"], at)
        place = self.number(4 + about["rank_width"], about["iteration_width"], at)
        return Cell(
            math.exp((code - 32768) / 100) * about["medians"][column],
            about["processes"][row * about["ranks"] + member],
            column * about["iterations"] + place,
            about["names"][self.number(2, 1, at)],
            self.number(3, 1, at) / 255,
        )


@pytest.fixture
def heat_of(marey, tmp_path):
    def make(ranks, times) -> Heat:
        rank_logs.write(tmp_path / "job.marey", ranks, times)
        done = marey("report", "job.marey", "--html", "page.html")
        assert done.returncode == 0, done.stderr
        return Heat(tmp_path / "page.html")

    return make


def planted(rank: int, i: int) -> Times:
    usual = rank_logs.even(rank, i)
    return usual._replace(data=usual.data + 100_000) if (rank, i) == (5, 7) else usual


def test_cells_are_iterations(heat_of):
    heat = heat_of(rank_logs.job(8), planted)
    assert (heat.index["rows"], heat.index["columns"]) == (8, 20)
    assert (heat.index["ranks"], heat.index["iterations"]) == (1, 1)
    for rank in range(8):
        assert heat.cell(rank, 0) is None  # warm-up
        for i in range(1, 20):
            cell = heat.cell(rank, i)
            assert cell is not None
            assert cell.ns == pytest.approx(sum(planted(rank, i)), rel=0.006)
            assert (cell.process, cell.iteration) == (rank, i)
            assert cell.longer == ("data" if (rank, i) == (5, 7) else "")
    slow = heat.cell(5, 7)
    assert slow is not None
    assert slow.extra * slow.ns == pytest.approx(100_000, rel=0.02)


def test_one_process_has_no_map(marey, tmp_path):
    rank_logs.write(tmp_path / "job.marey", rank_logs.job(1))
    assert marey("report", "job.marey", "--html", "page.html").returncode == 0
    assert "heat" not in Page(tmp_path / "page.html").index


def test_many_iterations_are_thinned_and_the_longest_kept(heat_of):
    long = [(1, 5000), (0, 8191), (1, 17)]

    def times(rank: int, i: int) -> Times:
        return Times(10, 300 if (rank, i) in long else 90)

    heat = heat_of(rank_logs.job(2, n_iterations=8200), times)
    assert (heat.index["columns"], heat.index["iterations"]) == (2050, 4)
    for rank, i in long:
        cell = heat.cell(rank, i // 4)
        assert cell is not None
        assert (cell.process, cell.iteration, cell.longer) == (rank, i, "forward")
        assert cell.ns == pytest.approx(310, rel=0.006)


def test_many_ranks_are_thinned_and_the_slowest_kept(heat_of):
    def times(rank: int, i: int) -> Times:
        return Times(2000, 24000 if (rank, i) == (3333, 2) else 8000)

    n = 4100
    heat = heat_of(rank_logs.job(n, n_iterations=3), times)
    assert (heat.index["rows"], heat.index["ranks"]) == (n // 2, 2)
    cell = heat.cell(3333 // 2, 2)
    assert cell is not None
    assert (cell.process, cell.iteration) == (3333, 2)
    assert cell.ns == pytest.approx(26000, rel=0.006)
    assert heat.index["medians"][2] == 10000
    # The slow rank is on the timeline, and few others are.
    shown = [i for i, process in enumerate(heat.page.index["processes"]) if not process.get("left_out")]
    assert 3333 in shown and 0 in shown and len(shown) <= 16
    assert {track["process"] for track in heat.page.index["tracks"]} == set(shown)
    assert len(heat.page.html) < 3_000_000
