"""Iterations, epochs and phases of a real program: in reports, tables and exports."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from pathlib import Path

import pytest

N, WARMUP = 40, 4


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture(scope="session")
def iterate(compiled) -> Path:
    return compiled("iterate.c", "-pthread")


@pytest.fixture
def loop(marey, iterate, tmp_path) -> Path:
    """loop.marey: a training loop of one process."""
    assert marey("run", "--only", "ranges", "-q", "-o", "loop.marey", "--", iterate, N, WARMUP).returncode == 0
    return tmp_path / "loop.marey"


@pytest.fixture
def ranks(marey, iterate, tmp_path) -> Path:
    """ranks.marey: three ranks, of which the second takes longer."""
    for rank in range(3):
        env = {"RANK": str(rank), "WORLD_SIZE": "3"}
        assert (
            marey(
                "run",
                "--only",
                "ranges",
                "-q",
                "-o",
                "ranks.marey",
                "--",
                iterate,
                N,
                WARMUP,
                5000 * (rank == 1),
                env=env,
            ).returncode
            == 0
        )
    return tmp_path / "ranks.marey"


def test_the_report_tells_of_iterations(marey, loop):
    done = marey("report", loop, "--data", "data")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"iterations: {N - WARMUP} and {WARMUP} of warm-up; mean " in done.stdout
    assert " samples/s, " in done.stdout
    assert " of the time of an iteration waiting for data" in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("  of the time of an iteration: "))
    assert ", (no range) " in line
    assert "straggler" not in done.stdout


def test_json_has_the_tables(marey, loop):
    report = json.loads(marey("report", loop, "--json", "--data", "data").stdout)
    whole, *names = report["iterations"]
    assert whole["name"] == "(whole iteration)"
    assert {row["name"]: (row["count"], row["ran"]) for row in names if row["name"] != "prefetch"} == {
        "data": (N - WARMUP, N - WARMUP),
        "forward": (N - WARMUP, N - WARMUP),
        "log": (N - WARMUP, (N - WARMUP) // 2),
        "(no range)": (N - WARMUP, N - WARMUP),
    }
    (prefetch,) = (row for row in names if row["name"] == "prefetch")
    # A thread of its own: on a busy machine it may sleep through an iteration.
    assert prefetch["count"] == N - WARMUP and 0 < prefetch["ran"] <= N - WARMUP
    by_name = {row["name"]: row for row in names}
    assert by_name["log"]["min_ns"] == 0
    assert by_name["data"]["mean_ns"] + by_name["forward"]["mean_ns"] <= whole["mean_ns"]
    # Of the thread that counts, ranges and what is in none of them are the whole.
    parts = ("data", "forward", "log", "(no range)")
    assert sum(by_name[name]["share"] for name in parts) == pytest.approx(1)
    throughput = report["throughput"][0]
    assert (throughput["iterations"], throughput["warmup"], throughput["cut"]) == (N, WARMUP, 0)
    assert throughput["samples"] == 16 * (N - WARMUP)
    assert throughput["data_share"] == pytest.approx(by_name["data"]["share"])
    assert [(row["number"], row["iterations"], row["samples"]) for row in report["epochs"]] == [
        (0, N // 2, 8 * N),
        (1, N // 2, 8 * N),
    ]
    assert [(row["name"], row["count"], row["iterations"]) for row in report["phases"]] == [
        ("train", 2, N),
        ("(no phase)", None, None),
    ]
    assert sum(row["share"] for row in report["phases"]) == pytest.approx(1)
    steady_ns = sum(row["steady_ns"] for row in report["phases"])
    assert whole["count"] * whole["mean_ns"] <= steady_ns * 1.001 < report["cost"]["program_ns"]
    assert {row["name"]: row["share"] for row in report["steady"]} == {
        row["name"]: pytest.approx(row["self_ns"] / steady_ns) for row in report["steady"]
    }


def test_a_range_that_is_not_there_is_reported(marey, loop):
    assert "No range 'loading' ran in an iteration" in marey("report", loop, "--data", "loading").stdout


def test_tables_are_shown_when_asked_for(marey, loop):
    text = marey("report", loop, "--iterations").stdout
    for word in ("(whole iteration)", "forward", "\nepochs\n", "\nphases\n"):
        assert word in text
    assert "of steady" in text.split("\nphases\n")[1].splitlines()[0]
    assert "rank max" not in text
    table = rows(marey("report", loop, "--iterations", "--csv").stdout)
    assert table[0]["name"] == "(whole iteration)"


def test_the_series_adds_up_to_the_table(marey, loop):
    series = rows(marey("report", loop, "--per-iteration").stdout)
    whole = [row for row in series if row["name"] == "(whole iteration)"]
    assert [int(row["iteration"]) for row in whole] == list(range(N))
    assert [row["warmup"] for row in whole] == ["1"] * WARMUP + ["0"] * (N - WARMUP)
    assert {row["cut"] for row in series} == {"0"}
    report = json.loads(marey("report", loop, "--json").stdout)
    for row in report["iterations"]:
        if row["name"] == "(no range)":  # of the table alone
            continue
        values = [int(one["ns"]) for one in series if one["name"] == row["name"] and one["warmup"] == "0"]
        assert len(values) == row["ran"]
        assert row["mean_ns"] == pytest.approx(sum(values) / row["count"], abs=1)
        assert row["max_ns"] == max(values)


def test_the_series_goes_alone(marey, loop):
    done = marey("report", loop, "--per-iteration", "--json")
    assert done.returncode == 2
    assert "--json and --per-iteration exclude one another" in done.stderr


def test_the_slowest_rank_is_named(marey, ranks):
    done = marey("report", ranks)
    assert "straggler: rank 1 is slowest in " in done.stdout
    assert "rank max" in marey("report", ranks, "--iterations").stdout
    report = json.loads(marey("report", ranks, "--json").stdout)
    slow = report["iteration_ranks"][1]
    assert slow["slowest"] > (N - WARMUP) // 2
    assert slow["behind_ns"] > 0
    forward = next(row for row in report["iterations"] if row["name"] == "forward")
    assert (forward["count"], forward["max_rank"]) == (3 * (N - WARMUP), 1)
    assert forward["rank_max_ns"] > forward["rank_min_ns"]


def test_the_database_agrees_with_the_series(marey, loop, tmp_path, build_setting):
    if marey("export", loop, "-o", "loop.db").returncode != 0:
        pytest.skip("this build has no SQLite")
    database = sqlite3.connect(tmp_path / "loop.db")
    ours = {
        (int(row["iteration"]), row["name"]): int(row["ns"])
        for row in rows(marey("report", loop, "--per-iteration").stdout)
        if row["name"] != "(whole iteration)"
    }
    theirs = {(number, name): ns for number, name, ns in database.execute("SELECT number, name, ns FROM per_iteration")}
    # A range that was open when the program ended has no row there.
    assert {key for key in ours if theirs.get(key) != ours[key]} <= {(N - 1, "prefetch")}


def test_timelines_have_iterations(marey, loop, tmp_path):
    assert marey("export", loop, "-o", "loop.json").returncode == 0
    events = json.loads((tmp_path / "loop.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event["ph"] == "X"]
    assert sum(name.startswith("iteration ") for name in names) == N
    assert {"epoch 0", "epoch 1", "train"} <= set(names)
    kinds = [row["kind"] for row in rows(marey("export", loop, "--to", "csv", "-o", "-").stdout)]
    assert (kinds.count("iteration"), kinds.count("epoch"), kinds.count("phase")) == (N, 2, 2)


def test_perfetto_reads_iterations_as_slices(marey, loop, tmp_path):
    perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    assert marey("export", loop, "-o", "loop.pftrace").returncode == 0
    trace = perfetto.Trace()
    trace.ParseFromString((tmp_path / "loop.pftrace").read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}
    begins, ends = [], []
    for packet in trace.packet:
        event = packet.track_event
        if tracks.get(event.track_uuid) == "iterations":
            (begins if event.type == event.TYPE_SLICE_BEGIN else ends).append((packet.timestamp, event.name))
    assert [name for _, name in begins] == [f"iteration {i}" for i in range(N)]
    assert all(begin < end for (begin, _), (end, _) in zip(begins, ends))


SLOW_START = """
import time
import marey

def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

burn(0.3)
for i in range(12):
    with marey.iteration():
        if i == 0:
            burn(1)
        with marey.range("data"):
            burn(0.005)
        with marey.range("forward"):
            burn(0.01)
        burn(0.005)
"""


def test_shares_are_without_the_first_iteration_and_add_up(marey, tmp_path):
    """Nothing is marked as warm-up, and the first step takes as long as 50 others."""
    (tmp_path / "train.py").write_text(SLOW_START)
    assert marey("run", "--only", "ranges", "-q", "-o", "run.marey", "--", sys.executable, "train.py").returncode == 0
    report = json.loads(marey("report", "run.marey", "--json", "--data", "data").stdout)
    by_name = {row["name"]: row for row in report["iterations"]}
    whole, no_range = by_name["(whole iteration)"], by_name["(no range)"]
    assert whole["max_ns"] > 1e9 > no_range["steady_ns"] * 11
    assert whole["steady_ns"] == pytest.approx((whole["mean_ns"] * 12 - whole["max_ns"]) / 11, rel=1e-6)
    parts = [by_name[name] for name in ("data", "forward", "(no range)")]
    assert sum(row["share"] for row in parts) == pytest.approx(1)
    assert sum(row["steady_ns"] for row in parts) == pytest.approx(whole["steady_ns"], abs=3)
    assert report["throughput"][0]["data_share"] == pytest.approx(by_name["data"]["share"])
    text = marey("report", "run.marey").stdout
    (line,) = (
        line for line in text.splitlines() if line.startswith("  of the time of an iteration, without the first: ")
    )
    assert "forward " in line and "data " in line and "(no range) " in line
    assert "of run" in text  # what shares of ranges are of


def test_ranges_of_other_threads_are_not_of_the_iteration(marey, loop):
    """`prefetch` runs all the time, on a thread that counts nothing."""
    report = json.loads(marey("report", loop, "--json").stdout)
    by_name = {row["name"]: row for row in report["iterations"]}
    assert by_name["prefetch"]["share"] > 0.5 and by_name["(no range)"]["mean_ns"] > 0
