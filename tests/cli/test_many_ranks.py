"""Reports over many ranks: correct, the same with any number of threads, with few files and little memory.

bench/rank_logs.c writes the logs; rank_model.py computes their content independently.
"""

from __future__ import annotations

import csv
import io
import json
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built import BUILD, Finished, cached
from rank_model import RANGES, Rank, nearest_rank, run_rank

N_RANKS, N_ITERATIONS = 200, 12
SKETCH_ERROR = 1 / 128  # of quantiles, as docs/internals say


@pytest.fixture(scope="module")
def ranks() -> list[Rank]:
    return [run_rank(number, N_ITERATIONS) for number in range(N_RANKS)]


def make(path: Path, n_ranks: int, n_iterations: int) -> Path:
    subprocess.run([BUILD / "tests" / "many_ranks", path, str(n_ranks), str(n_iterations)], check=True)
    return path


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("job") / "job.marey", N_RANKS, N_ITERATIONS)


@pytest.fixture(scope="module")
def answer(job: Path, program: Path) -> dict[str, Any]:
    done = subprocess.run([program, "report", job, "--ranks", "--json"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def is_near(told: int, true: int) -> bool:
    return abs(told - true) <= SKETCH_ERROR * true + 1


def test_the_whole_is_the_sum_of_all_ranks(answer: dict[str, Any], ranks: list[Rank]) -> None:
    told = {row["name"]: row for row in answer["ranges"]}
    assert sorted(told) == sorted(RANGES)
    for name in RANGES:
        values = [value for rank in ranks for value in rank.durations[name]]
        row = told[name]
        assert row["count"] == N_RANKS * N_ITERATIONS == len(values)
        assert (row["total_ns"], row["min_ns"], row["max_ns"]) == (sum(values), min(values), max(values))
        assert (row["threads"], row["processes"]) == (N_RANKS, N_RANKS)
        for column, q in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)):
            assert is_near(row[column], nearest_rank(values, q)), (name, column)


def test_each_rank_is_reported_by_itself(answer: dict[str, Any], ranks: list[Rank]) -> None:
    told = {(row["rank"], row["name"]): row for row in answer["ranks"]}
    assert len(told) == N_RANKS * len(RANGES)
    for rank in ranks:
        for name in RANGES:
            row = told[rank.number, name]
            assert (row["count"], row["total_ns"]) == (N_ITERATIONS, sum(rank.durations[name]))


def test_iterations_of_all_ranks_are_added_up(answer: dict[str, Any], ranks: list[Rank]) -> None:
    told = {row["name"]: row for row in answer["iterations"]}
    whole = [value for rank in ranks for value in rank.iterations]
    row = told["(whole iteration)"]
    assert row["count"] == len(whole)
    assert is_near(row["p50_ns"], nearest_rank(whole, 0.5))
    of_rank = {row["rank"]: row for row in answer["iteration_ranks"]}
    for rank in ranks:
        assert of_rank[rank.number]["mean_ns"] == pytest.approx(sum(rank.iterations) / N_ITERATIONS, abs=1)
        assert is_near(of_rank[rank.number]["p50_ns"], nearest_rank(rank.iterations, 0.5))
    slowest = [max(ranks, key=lambda rank: rank.iterations[i]).number for i in range(N_ITERATIONS)]
    for rank in ranks:
        assert of_rank[rank.number]["slowest"] == slowest.count(rank.number)


@pytest.mark.parametrize("options", [(), ("--ranks",), ("--iterations",), ("--tree", "--threads"), ("--json",)])
def test_any_number_of_threads_gives_the_same_bytes(
    job: Path, marey: Callable[..., Finished], options: tuple[str, ...]
) -> None:
    answers = {marey("report", job, *options, "--jobs", n).stdout for n in (1, 2, 7)}
    assert len(answers) == 1
    assert len(answers.pop()) > 500


def limited(kind: int, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (value, value))


def test_a_few_open_files_are_enough(job: Path, marey: Callable[..., Finished], answer: dict[str, Any]) -> None:
    done = marey("report", job, "--ranks", "--json", "--jobs", 64, preexec_fn=limited(resource.RLIMIT_NOFILE, 32))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == answer


def test_memory_hardly_grows_with_ranks(tmp_path: Path, marey: Callable[..., Finished]) -> None:
    """1,500 ranks within an address space in which 25 kB for each, as it was once, would not fit."""
    if cached("MAREY_SANITIZE"):
        pytest.skip("a sanitizer needs an address space of its own")
    path = make(tmp_path / "wide.marey", 1500, 3)
    done = marey("report", path, "--jobs", 1, preexec_fn=limited(resource.RLIMIT_AS, 40 << 20))
    assert (done.returncode, done.stderr) == (0, "")
    assert "1500 processes" in done.stdout


def test_one_rank_of_many_may_be_damaged(job: Path, tmp_path: Path, marey: Callable[..., Finished]) -> None:
    copy = tmp_path / "damaged.marey"
    copy.mkdir()
    for log in job.iterdir():
        (copy / log.name).symlink_to(log)
    broken = next(copy.glob("r77-*.klog"))
    broken.unlink()
    broken.write_bytes(b"rubbish" * 100)
    done = marey("report", copy, "--csv", "--table", "processes", "--jobs", 3)
    assert done.returncode == 2
    told = {int(row["rank"]) for row in csv.DictReader(io.StringIO(done.stdout))}
    assert told == set(range(N_RANKS)) - {77}
