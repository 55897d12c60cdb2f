"""Traces of torch.profiler: time counts once, steps have their numbers, repeats are not ranks."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rank_logs
from built import Finished, cached
from page_decoder import Page, needs_viewer

WITH_STACK = Path(__file__).parent.parent / "data" / "torch" / "with_stack.json.gz"


def span(name: str, at: float, lasts: float, category: str = "cpu_op", **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": lasts, "args": {}, **more}


def write(path: Path, events: list[dict[str, Any]], **more: Any) -> Path:
    path.write_text(json.dumps({"traceEvents": events, **more}))
    return path


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """A thread of 1 ms: Python frames, and an annotation that begins within one frame and ends within another."""
    python = "python_function"
    kernel = {"pid": 0, "tid": 7, "args": {"correlation": 1, "device": 0, "stream": 7}}
    events = [
        span("train.py(1): <module>", 0, 1000, python),
        span("profiler.py(1): __enter__", 0, 20, python),
        span("forward", 10, 900, "user_annotation"),
        span("model.py(3): forward", 30, 800, python),
        span("aten::mm", 40, 500),
        span("cudaLaunchKernel", 50, 10, "cuda_runtime", args={"correlation": 1}),
        span("profiler.py(2): __exit__", 900, 50, python),
        span("gemm", 100, 600, "kernel", **kernel),
        span("forward", 100, 600, "gpu_user_annotation", **kernel),
    ]
    return write(tmp_path / "annotated.json", events)


def test_stacks_count_each_nanosecond_once(annotated: Path, marey: Callable[..., Finished]) -> None:
    lines = marey("export", annotated, "--to", "collapsed", "-o", "-").stdout.splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == 1_000_000
    functions = json.loads(marey("report", annotated, "--calls", "--json").stdout)["functions"]
    assert sum(row["self_ns"] for row in functions) == 1_000_000
    picture = marey("export", annotated, "--to", "flamegraph", "-o", "-").stdout
    assert "1.00 ms in ranges of 1 process and 1 thread" in picture
    assert 'data-t="90.0 us"><title>forward' in picture


def covered_ns(path: Path) -> int:
    """Time in which at least one range of a thread is open."""
    threads = defaultdict(list)
    for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in ("cpu_op", "user_annotation", "python_function"):
            threads[event["tid"]].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
    total = 0
    for spans in threads.values():
        done = 0
        for begin, end in sorted(spans):
            total += max(0, end - max(begin, done))
            done = max(done, end)
    return total


@needs_viewer
def test_self_times_of_a_thread_add_up_to_its_time(marey: Callable[..., Finished], tmp_path: Path) -> None:
    """A trace of torch.profiler with stacks: annotations overlap the frames that enter and leave them."""
    report = json.loads(marey("report", WITH_STACK, "--tree", "--threads", "--json").stdout)
    expected = pytest.approx(covered_ns(WITH_STACK), abs=2000)
    assert sum(row["self_ns"] for row in report["ranges"]) == expected
    assert sum(row["self_ns"] for row in report["threads"]) == expected
    assert sum(row["self_ns"] for row in report["tree"]) == expected
    assert sum(row["total_ns"] for row in report["tree"] if row["depth"] == 0) == expected
    assert any("overlapping others of the same thread" in text for text in report["warnings"])
    assert sum(row["count"] for row in report["ranges"] if row["name"] in ("forward", "backward")) == 4

    assert marey("report", WITH_STACK, "--html", "page.html").returncode == 0
    boxes = Page(tmp_path / "page.html").table("tree")  # the flame graph
    assert sum(row["total_ns"] for row in boxes if row["depth"] == 0) == expected


@pytest.mark.skipif(cached("SQLITE_FOUND") != "1", reason="built without SQLite")
def test_self_times_add_up_in_a_database(marey: Callable[..., Finished], tmp_path: Path) -> None:
    assert marey("export", WITH_STACK, "--to", "sqlite", "-o", "x.db").returncode == 0
    with sqlite3.connect(tmp_path / "x.db") as db:
        (total,) = db.execute("SELECT sum(self_ns) FROM range").fetchone()
    assert total == pytest.approx(covered_ns(WITH_STACK), abs=2000)


def test_profiles_of_speedscope_name_what_overlaps(annotated: Path, marey: Callable[..., Finished]) -> None:
    profiles = json.loads(marey("export", annotated, "--to", "speedscope", "-o", "-").stdout)["profiles"]
    names = [profile["name"] for profile in profiles if "GPU" not in profile["name"]]
    assert [name.endswith(" (overlapping)") for name in names] == [False, True]


def steps(first: int, n: int) -> list[dict[str, Any]]:
    return [span(f"ProfilerStep#{first + i}", 1000 * i, 900, "user_annotation") for i in range(n)]


@needs_viewer
def test_the_map_of_ranks_begins_with_the_first_step(tmp_path: Path, marey: Callable[..., Finished]) -> None:
    for rank in range(2):
        write(tmp_path / f"rank{rank}.json", steps(551, 2), distributedInfo={"rank": rank, "world_size": 2})
    assert marey("report", "rank0.json", "rank1.json", "--html", "page.html").returncode == 0
    heat = Page(tmp_path / "page.html").index["heat"]
    assert (heat["rows"], heat["columns"]) == (2, 2)
    assert heat["first"] == 551


@needs_viewer
def test_steps_far_from_0_have_columns_of_their_own(tmp_path: Path, marey: Callable[..., Finished]) -> None:
    for rank in range(2):
        write(tmp_path / f"rank{rank}.json", steps(100_001 - rank, 3), distributedInfo={"rank": rank, "world_size": 2})
    assert marey("report", "rank0.json", "rank1.json", "--html", "page.html").returncode == 0
    heat = Page(tmp_path / "page.html").index["heat"]
    assert (heat["columns"], heat["first"], heat["iterations"]) == (4, 100_000, 1)


@needs_viewer
def test_windows_of_one_process_are_not_ranks(tmp_path: Path, marey: Callable[..., Finished]) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    for i in range(2):
        write(folder / f"node1_4711.17000000000{i}0.pt.trace.json", steps(10 * i, 2))
    report = json.loads(marey("report", folder, "--json", "--ranks").stdout)
    assert [row["rank"] for row in report["processes"]] == [None, None]
    assert report["rank_times"] == [] and report["warnings"] == []
    assert marey("report", folder, "--html", "page.html").returncode == 0
    assert "heat" not in Page(tmp_path / "page.html").index
    for i in range(2):
        write(folder / f"node1_4712.17000000000{i}0.pt.trace.json", steps(10 * i, 2))
    report = json.loads(marey("report", folder, "--json").stdout)
    assert [row["rank"] for row in report["processes"]] == [0, 0, 1, 1]


@needs_viewer
def test_waiting_is_never_the_cause(tmp_path: Path, marey: Callable[..., Finished]) -> None:
    """Rank 0 waits in step 7, since rank 1 is slow there: nothing explains rank 0, `forward` explains rank 1."""
    names = rank_logs.RANGES
    rank_logs.RANGES = ("step", "ddp.wait", "forward")  # type: ignore[assignment]
    try:
        times = {(0, 7): rank_logs.Times(120_000, 80_000), (1, 7): rank_logs.Times(20_000, 180_000)}
        usual = rank_logs.Times(20_000, 80_000)
        ranks = rank_logs.job(2)
        rank_logs.write(tmp_path / "job.marey", ranks, lambda rank, i: times.get((rank, i), usual))
    finally:
        rank_logs.RANGES = names
    report = json.loads(marey("report", "job.marey", "--json").stdout)
    assert [(row["rank"], row["longer"]) for row in report["outliers"]] == [(0, None), (1, "forward")]
    assert marey("report", "job.marey", "--html", "page.html").returncode == 0
    assert Page(tmp_path / "page.html").index["heat"]["names"] == ["", "forward"]
