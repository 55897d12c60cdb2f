"""marey.scale(): the tables, texts and pictures of runs with different numbers of workers, and the example."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import marey

EXAMPLE = Path(__file__).parents[2] / "examples" / "scaling.py"


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """An epoch has 8 s that are shared and 2 s that are not, behind a slow first one."""
    path = tmp_path / "measured.csv"
    lines = ["workers,run,measure,step,value"]
    for workers in (1, 2, 4, 8):
        for run in ("a", "b"):
            lines += [f"{workers},{run},samples_per_epoch,,1000"]
            lines += [f"{workers},{run},epoch_time_s,{epoch},{8 / workers + 2 + (epoch == 0)}" for epoch in range(4)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_tables_have_what_was_measured(measured: Path) -> None:
    scaling = marey.scale(measured)
    assert scaling.points["workers"] == [1, 2, 4, 8]
    assert scaling.points["time_s"] == pytest.approx([10, 6, 4, 3])
    assert scaling.points["speedup"] == pytest.approx([1, 10 / 6, 2.5, 10 / 3])
    assert scaling.points.row(workers=4)["throughput"] == pytest.approx(250)
    assert scaling.fits.row(model="amdahl")["serial"] == pytest.approx(0.2, abs=0.01)
    assert scaling.best.row(**{"for": "time", "measured": True})["workers"] == 8
    assert len(scaling.runs) == 8
    assert all(isinstance(note, str) for note in scaling.notes)


def test_it_prints_as_the_command_does_and_gives_its_texts(measured: Path) -> None:
    scaling = marey.scale(measured)
    assert repr(scaling).startswith(scaling.summary[0])
    assert "8 workers are 3.33 times as fast as 1" in scaling.summary[0]
    assert json.loads(scaling.to_json())["summary"] == scaling.summary
    assert scaling.to_markdown().startswith("**It ")


def test_a_pair_names_the_series(measured: Path) -> None:
    scaling = marey.scale(("ddp", measured), ("fsdp", str(measured)), experiment="tried")
    assert sorted(set(scaling.points["strategy"])) == ["ddp", "fsdp"]
    assert set(scaling.points["experiment"]) == {"tried"}


def test_options_are_those_of_the_command(measured: Path) -> None:
    assert set(marey.scale(measured, forecast=[16, 32]).forecast["workers"]) == {16, 32}
    assert marey.scale(measured, with_first=True).points["epochs"] == [8] * 4
    assert marey.scale(measured, kind="weak").points["efficiency"][1] == pytest.approx(10 / 6)


def test_pictures_and_the_page_are_texts_and_files(measured: Path, tmp_path: Path) -> None:
    scaling = marey.scale(measured)
    assert scaling.picture("speedup").startswith("<svg ")
    assert scaling.picture("relative_epoch_time_speedup").startswith("<svg ")
    scaling.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == scaling.page().html
    assert page.count("<svg ") == 4  # time, speedup, efficiency, throughput


def test_mistakes_are_reported(measured: Path, tmp_path: Path) -> None:
    scaling = marey.scale(measured)
    with pytest.raises(ValueError, match="no chart 'nothing'; there are epoch-time, "):
        scaling.picture("nothing")
    with pytest.raises(marey.MareyError, match="have no data for the chart 'energy'"):
        scaling.picture("energy")
    with pytest.raises(marey.MareyError):
        marey.scale()
    with pytest.raises(marey.MareyError):
        marey.scale(tmp_path / "missing.marey")
    with pytest.raises(ValueError, match="measure"):
        marey.scale(measured, measure="day")
    with pytest.raises(ValueError, match="numbers of workers such as 64,128, not '0'"):
        marey.scale(measured, forecast=[0])


def test_the_tables_outlive_the_answer(measured: Path) -> None:
    points = marey.scale(measured).points
    assert points["workers"] == [1, 2, 4, 8]


def test_the_example_measures_one_rank_and_two(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="not installed; tools/setup test installs it where an index is at hand")
    done = subprocess.run(
        [sys.executable, EXAMPLE, tmp_path / "runs"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.match(r"ddp (scales|does not scale|may scale or not)", done.stdout)
    assert "measured: [(1, 2, 'strong'), (2, 2, 'strong')]" in done.stdout
    assert "exposed communication" in done.stdout
    assert (tmp_path / "runs" / "scaling.html").stat().st_size > 10_000
