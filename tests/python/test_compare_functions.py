"""marey.compare and marey.compare_functions."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest

import marey


def write_stats(path: Path, level: float, seed: int) -> Path:
    make = random.Random(seed)
    series = {"step": [level * (1 + 0.01 * make.gauss(0, 1)) for _ in range(100)]}
    path.write_text(json.dumps({"series": {**series, "(iteration)": series["step"]}}))
    return path


@pytest.fixture
def sides(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    a = [write_stats(tmp_path / f"a{i}.json", 1e6, i) for i in range(5)]
    b = [write_stats(tmp_path / f"b{i}.json", 1.05e6, 10 + i) for i in range(5)]
    return a, b


def test_a_comparison_is_a_table_of_ranges(sides):
    found = marey.compare(*sides)
    row = found.row(name="step")
    assert row["verdict"] == "slower"
    assert row["low_percent"] < 5 < row["high_percent"]
    assert found.iteration is not None and found.iteration["verdict"] == "slower"
    assert len(found.runs) == 10
    assert len(found.only) == 0
    assert "slower" in repr(found)
    assert found.to_markdown().startswith("**B is ")
    assert json.loads(found.to_json())["ranges"][0]["name"] == "step"


def test_paths_may_be_single_and_ranges_filtered(sides):
    (a, *_), (b, *_) = sides
    assert marey.compare(a, str(b)).row(name="step")["verdict"] == "slower"
    assert any("one run on each side" in text for text in marey.compare(a, b).warnings)
    assert len(marey.compare(a, b, filter="other")) == 0


def test_wrong_input_raises(sides, tmp_path):
    (a, *_), _ = sides
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"series": {"step": [NaN]}}')
    with pytest.raises(ValueError, match="range 'step' is NaN"):
        marey.compare(a, wrong)
    with pytest.raises(marey.MareyError, match="missing"):
        marey.compare(a, tmp_path / "missing.marey")
    with pytest.raises(marey.MareyError, match="side B has nothing"):
        marey.compare(a, [])
    with pytest.raises(ValueError, match="smallest_percent"):
        marey.compare(a, a, smallest_percent=0)


def test_recordings_are_compared_by_calls(record):
    for name in ("a.marey", "b.marey"):
        with record(name) as path:
            for _ in range(20):
                with marey.range("work"):
                    pass
    found = marey.compare(path.parent / "a.marey", path.parent / "b.marey")
    assert found.row(name="work")["n_a"] == 20
    assert found.iteration is None


def test_a_function_that_does_half_more_is_slower():
    found = marey.compare_functions(lambda: sum(range(2000)), lambda: sum(range(3000)), seconds=2)
    assert found.verdict == "slower"
    assert 20 < found.low_percent <= found.change_percent <= found.high_percent < 100
    assert found.a_ns < found.b_ns
    assert len(found.times_a) == len(found.times_b) == found.rounds
    assert "slower" in repr(found)


def test_functions_take_turns_and_setup_runs_before_each_call():
    calls: list[str] = []
    marey.compare_functions(
        lambda: calls.append("f"), lambda: calls.append("g"), lambda: calls.append("s"), max_rounds=8
    )
    assert calls[::2] == ["s"] * (len(calls) // 2)
    rounds = "".join(calls[1::2])[6:]  # after the warm-up
    assert rounds == "fggf" * 4


def test_sync_is_timed_and_errors_come_through():
    found = marey.compare_functions(
        lambda: None, lambda: None, lambda: None, max_rounds=6, sync=lambda: time.sleep(0.002)
    )
    assert found.a_ns > 2e6

    def fail() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        marey.compare_functions(fail, fail)
    with pytest.raises(ValueError, match="seconds"):
        marey.compare_functions(fail, fail, seconds=0)
    with pytest.raises(ValueError, match="max_rounds"):
        marey.compare_functions(fail, fail, max_rounds=3)


def test_garbage_collection_is_as_before():
    import gc

    assert gc.isenabled()
    marey.compare_functions(lambda: None, lambda: None, seconds=0.05)
    assert gc.isenabled()


ITERATE = """
import ctypes, os
import marey

pass_ns = ctypes.CDLL(None).marey_test_clock_advance
watch = marey.Stopwatch()
watch.enable(num_warmup_iters=5)
for i in range(65):
    with watch("forward"):
        pass_ns(100_000 * (50 if i < 5 else int(os.environ["FACTOR"])))
    with watch("backward"):
        pass_ns(300_000)
    watch.finish_iter()
watch.to_json(os.environ["INTO"])
"""


def test_a_stopwatch_s_iterations_are_compared_from_recordings_and_from_json(run_python, tmp_path):
    """By a clock that the program moves, so that times are exact."""
    clock = tmp_path / "clock.so"  # LD_PRELOAD takes no blank, which the build's own path may have
    clock.symlink_to(Path(os.environ["MAREY_BUILD"]) / "tests" / "standin" / "clock_standin.so")
    for name, factor in (("a", 1), ("b", 2)):
        env = {"MAREY": f"{name}.marey", "MAREY_OPTIONS": "clock=monotonic", "LD_PRELOAD": str(clock)}
        run_python(ITERATE, env={**env, "FACTOR": str(factor), "INTO": f"{name}.json"})
    for ending in ("marey", "json"):
        found = marey.compare(tmp_path / f"a.{ending}", tmp_path / f"b.{ending}")
        assert found.row(name="forward")["verdict"] == "slower"
        assert found.row(name="forward")["change_percent"] == pytest.approx(100)
        assert found.row(name="backward")["verdict"] == "same"
        assert found.iteration is not None
        assert found.iteration["n_a"] == 60
        assert found.iteration["change_percent"] == pytest.approx(25)
        assert {row["n_iterations"] for row in found.runs} == {60}
