"""Recordings past the internal limits of readers: every report and export works, and time is linear in the size.

docs/internals/reader-limits.md lists the limits and which test goes past each of them.
"""

from __future__ import annotations

import csv
import json
import resource
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import rank_logs
from built import Finished, cached
from long_run import IS_LONG
from page_decoder import needs_viewer

SITES = 2**20  # ids of ranges have 20 bits
MAX_OPEN = 2**20
IN_FLIGHT = 2**21
TREE_NODES = 2**22
EPOCHS = 2**20
LANES = 2**18
EACH = ("perfetto", "chrome", "kineto", "csv", "speedscope", "sqlite")


class Size(NamedTuple):
    """What tests/cli/large.c does, and how many ranges of which name that makes."""

    does: str
    n_ranges: int
    first: str


SIZES = {
    "words": Size("ranges=530000", 1_060_000, "a"),
    "depth": Size("deep=1050000", 1_050_000, "level0"),
    "threads": Size("threads=4200", 4200, "in a thread"),
    "steps": Size("steps=66000", 66_000, "forward"),
    "counters": Size("counters=360000", 0, ""),
    "marks": Size("marks=1060000", 0, ""),
    "async": Size("async=270000", 0, ""),
    "payloads": Size("payloads=270000", 270_000, "with text"),
    "long name": Size("long=1100000", 1, "n" * 100),
    "processes": Size("processes=130", 260, "a"),
    "names": Size("names=1050000", 1_050_000, "name0"),
}
STDOUT = ("report {}", "report {} --iterations", "report {} --gpu", "report {} --calls", "breakdown {}")
FILES = (
    "report {} --tree --all -o {out}",
    "report {} --threads --ranks --json -o {out}",
    "report {} --per-iteration -o {out}",
    "report {} --calls --by path --csv -o {out}",
    "report {} --html {out}",
    "breakdown {} --by range --csv -o {out}",
    "export {} --to perfetto -o {out}",
    "export {} --to chrome -o {out}",
    "export {} --to kineto -o {out}",
    "export {} --to csv -o {out}",
    "export {} --to speedscope -o {out}",
    "export {} --to collapsed -o {out}",
    "export {} --to flamegraph -o {out}",
    "export {} --to pstats -o {out}",
    "export {} --to callgrind -o {out}",
    *(["export {} --to sqlite -o {out}"] if cached("SQLITE_FOUND") == "1" else []),
)
# These have each range, within MAX_OPEN others at most.
EVENTS = [command for command in FILES if command.split()[:3:2] == ["export", "--to"] and command.split()[3] in EACH]
# With a million names each takes seconds; an ordinary run tries one of each kind.
WITH_NAMES = (
    "report {}",
    "report {} --html {out}",
    "breakdown {} --by range --csv -o {out}",
    "export {} --to perfetto -o {out}",
)
# These say that what they are about is not there.
ABSENT = {
    "report {} --epochs": "epochs",
    "report {} --samples": "samples",
    "export {} --to pyspy -o {out}": "sampled",
}


@pytest.fixture(scope="module")
def large(compiled: Callable[..., Path]) -> Path:
    return compiled("large.c", "-pthread")


@pytest.fixture(scope="module", params=SIZES)
def sized(
    request: pytest.FixtureRequest, large: Path, program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """A recording of each size; one is there at a time."""
    path = tmp_path_factory.mktemp("sized") / "x.marey"
    record(program, path, large, SIZES[request.param].does)
    yield request.param, path


def record(program: Path, path: Path, large: Path, does: str) -> None:
    subprocess.run(
        [program, "run", "--only", "ranges", "-q", "--options", "policy=block", "-o", path, "--", large, does],
        check=True,
    )


def words_of(command: str, path: Path, out: Path) -> list[str]:
    return [word.format(path, out=out) for word in command.split()]


def test_every_command_answers(sized: tuple[str, Path], marey: Callable[..., Finished], tmp_path: Path) -> None:
    name, path = sized
    for command in WITH_NAMES if name == "names" and not IS_LONG else STDOUT + FILES:
        done = marey(*words_of(command, path, tmp_path / "out"), timeout=300)
        has_ranges = SIZES[name].n_ranges != 0
        if not has_ranges and ("no call and no range" in done.stderr or "no ranges: there is nothing" in done.stderr):
            assert done.returncode == 2, command
            continue
        assert done.returncode == 0, (command, done.returncode, done.stderr)
        if name == "depth" and command in EVENTS:
            assert f"left out {SIZES[name].n_ranges - MAX_OPEN} ranges: nested too deep" in done.stderr, command
        if name == "depth" and command == "breakdown {}":
            assert f"Ranges nested too deep: {SIZES[name].n_ranges - MAX_OPEN} of process" in done.stdout
        assert command not in FILES or (tmp_path / "out").stat().st_size > 0 or not has_ranges, command
        (tmp_path / "out").unlink(missing_ok=True)
    for command, reason in ABSENT.items():
        if name == "steps" and "epochs" in command:
            continue
        done = marey(*words_of(command, path, tmp_path / "out"))
        assert done.returncode == 2 and reason in done.stderr, (command, done.stderr)


def test_what_is_counted(sized: tuple[str, Path], marey: Callable[..., Finished]) -> None:
    name, path = sized
    size = SIZES[name]
    done = marey("report", path, "--json", timeout=300)
    report = json.loads(done.stdout)
    assert sum(row["count"] for row in report["ranges"]) == (MAX_OPEN if name == "depth" else size.n_ranges)
    assert size.n_ranges == 0 or any(row["name"].startswith(size.first) for row in report["ranges"])
    n = int(size.does.split("=")[1])
    if name in ("counters", "marks", "async"):
        assert [row["count"] for row in report[name]] == [n]
    if name == "threads":
        assert report["ranges"][0]["threads"] == n
    if name == "processes":
        assert report["ranges"][0]["processes"] == n
    if name == "steps":
        assert report["iterations"][0]["count"] == n
        assert len(marey("report", path, "--per-iteration").stdout.splitlines()) == 1 + 2 * n  # the whole, and forward
        assert marey("report", path, "--epochs").returncode == 0
    if name == "names":
        assert len(report["ranges"]) == SITES - 1  # ids from 1; those without one share a name


def test_reports_count_what_is_too_deep(
    large: Path, program: Path, marey: Callable[..., Finished], tmp_path: Path
) -> None:
    """The limit is that of exports."""
    record(program, tmp_path / "x.marey", large, f"deep={MAX_OPEN + 1001}")
    done = marey("report", "x.marey", timeout=300)
    assert "1001 ranges nested too deep: left out." in done.stdout + done.stderr
    for made in ("collapsed", "pstats", "callgrind"):
        done = marey("export", "x.marey", "--to", made, "-o", "out", timeout=300)
        assert "left out 1001 ranges: nested too deep" in done.stderr, made
    done = marey("generate-flamegraph", "--file", "x.marey", "--output-filename", "out.svg", timeout=300)
    assert "left out 1001 ranges: nested too deep" in done.stderr
    done = marey("report", "x.marey", "--calls", timeout=300)
    assert "ranges left out, nested too deep: 1001" in done.stdout + done.stderr


def test_async_ranges_past_those_in_flight_are_counted(
    large: Path, program: Path, marey: Callable[..., Finished], tmp_path: Path
) -> None:
    """2^21 begins wait for their ends; of the others the begins and later the ends find nothing."""
    record(program, tmp_path / "x.marey", large, f"async={IN_FLIGHT + 1000}")
    report = json.loads(marey("report", "x.marey", "--json", timeout=300).stdout)
    assert [row["count"] for row in report["async"]] == [IN_FLIGHT]
    note = "1000 async events left out: too many async ranges were in flight."
    assert note in report["warnings"]
    done = marey("export", "x.marey", "--to", "csv", "-o", "out", timeout=300)
    assert "left out 1000 async events: too many async ranges were in flight" in done.stderr
    done = marey("breakdown", "x.marey", timeout=300)
    assert "Async events while too many async ranges were in flight: 1000 of process" in done.stdout


def test_paths_past_the_call_tree_share_a_node(
    large: Path, program: Path, marey: Callable[..., Finished], tmp_path: Path
) -> None:
    n = TREE_NODES + 1000
    record(program, tmp_path / "x.marey", large, f"paths={n}")
    n_left = n + (n + 2047) // 2048 - (TREE_NODES - 1)  # ranges and those around them, less the nodes; the root is one
    tree = ("--tree", "--filter", "(other)", "--csv", "--table", "tree")
    rows = list(csv.DictReader(marey("report", "x.marey", *tree, timeout=300).stdout.splitlines()))
    assert [(row["name"], int(row["count"])) for row in rows] == [("(other)", n_left)]
    whole = json.loads(marey("report", "x.marey", "--json", "--filter", "inner*", timeout=300).stdout)
    assert sum(row["count"] for row in whole["ranges"]) == n


@pytest.mark.parametrize(("n", "is_found"), [(900, True), (1500, False)])
def test_an_end_is_searched_a_thousand_levels_down(
    n: int, is_found: bool, large: Path, program: Path, marey: Callable[..., Finished], tmp_path: Path
) -> None:
    """If it is found, the end of the outer range ends the inner ones too; else it is left out."""
    record(program, tmp_path / "x.marey", large, f"search={n}")
    report = json.loads(marey("report", "x.marey", "--json").stdout)
    counts = {row["name"]: row["count"] for row in report["ranges"]}
    notes = report["warnings"]
    assert counts == ({"inner": n, "outer": 1} if is_found else {"inner": n})
    assert [row["name"] for row in report["open"]] == ([] if is_found else ["outer"])
    assert f"{n if is_found else 1} end{'s' if is_found else ''} without a begin: left out." in notes
    for made in EACH if cached("SQLITE_FOUND") == "1" else EACH[:-1]:
        assert marey("export", "x.marey", "--to", made, "-o", "out").returncode == 0, made
        (tmp_path / "out").unlink()
    assert marey("breakdown", "x.marey").returncode == 0


def test_epochs_past_the_table_have_no_row(
    large: Path, program: Path, marey: Callable[..., Finished], tmp_path: Path
) -> None:
    record(program, tmp_path / "x.marey", large, f"epochs={EPOCHS + 10}")
    report = json.loads(marey("report", "x.marey", "--json", timeout=300).stdout)
    assert len(report["epochs"]) == EPOCHS
    assert report["iterations"][0]["count"] == EPOCHS + 10


def test_events_of_lanes_past_the_limit_are_lost(marey: Callable[..., Finished], tmp_path: Path) -> None:
    """A log with a lane on each side of the limit: a program with as many threads takes minutes."""
    log = rank_logs.log_bytes(rank_logs.Rank(0, 1, n_iterations=1, has_end=False))
    words = [rank_logs.word(1000, rank_logs.BEGIN, 2), rank_logs.word(2000, rank_logs.FINISH, 2)]
    for lane in (LANES - 1, LANES, LANES + 7):
        log += rank_logs.block(rank_logs.LANE, struct.pack("<qII", lane, 0, 4) + b"many", lane=lane)
        log += rank_logs.block(rank_logs.WORDS, struct.pack("<2Q", *words), last_tick=2000, lane=lane)
    (tmp_path / "x.marey").mkdir()
    log += rank_logs.block(rank_logs.END, rank_logs.pairs(end="stop"))
    (tmp_path / "x.marey" / "r0-node0-1000-00000000.klog").write_bytes(log)
    report = json.loads(marey("report", "x.marey", "--json").stdout)
    assert {row["name"]: row["count"] for row in report["ranges"]}["step"] == 2
    assert report["lost_events"] == 4
    assert f"4 events left out: only the first {LANES} threads are read" in report["warnings"]
    for command in STDOUT + FILES:
        done = marey(*words_of(command, tmp_path / "x.marey", tmp_path / "out"))
        assert done.returncode == 0, (command, done.stderr)
        (tmp_path / "out").unlink(missing_ok=True)


@needs_viewer
def test_page_of_many_ranks_with_a_large_one(marey: Callable[..., Finished], tmp_path: Path) -> None:
    """Of more than 64 ranks the page reads some again for its timeline; the slowest is among these, and has 2^20 words.

    80 ranks of 600,000 ranges each take the same way and 80 times as long.
    """

    def times(rank: int, iteration: int) -> rank_logs.Times:
        took = rank_logs.even(rank, iteration)
        return took._replace(forward=2 * took.forward) if rank == 3 else took

    ranks = rank_logs.job(80)
    ranks[3] = ranks[3]._replace(n_iterations=110_000)
    rank_logs.write(tmp_path / "x.marey", ranks, times)
    done = marey("report", "x.marey", "--html", "page.html", timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_stacks_of_others_with_more_than_a_million_words(marey: Callable[..., Finished], tmp_path: Path) -> None:
    n = 530_000
    events = [{"type": kind, "at": 2 * i + at, "frame": 0} for i in range(n) for at, kind in enumerate("OC")]
    write_speedscope(tmp_path / "x.speedscope.json", ["f"], events)
    done = marey("report", "x.speedscope.json", "--samples", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["function"] for row in json.loads(done.stdout)["functions"]] == ["f"]
    assert marey("export", "x.speedscope.json", "--to", "pyspy", "-o", "out").returncode == 0


@needs_viewer
def test_a_page_of_many_processes_with_more_than_a_million_words(
    large: Path, program: Path, marey: Callable[..., Finished], tmp_path: Path
) -> None:
    """Of more than 64 processes the timeline has some, which are read a second time; the longest is among them."""
    for does in ("processes=70", "ranges=530000"):
        record = [
            program,
            "run",
            "--only",
            "ranges",
            "-q",
            "--append",
            "--options",
            "policy=block",
            "-o",
            tmp_path / "x.marey",
            "--",
            large,
        ]
        subprocess.run([*record, does], check=True)
    done = marey("report", "x.marey", "--html", "page.html")
    assert done.returncode == 0, done.stderr


# ---- time grows with the size ----


def span(name: str, at: float, lasts: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": lasts, "args": {}, **more}


def launched(i: int, device: int, stream: int) -> list[dict[str, Any]]:
    place = {"pid": device, "tid": stream}
    args = {"correlation": i + 1, "device": device, "stream": stream}
    call = span("cudaLaunchKernel", 10 * i, 2, cat="cuda_runtime", args={"correlation": i + 1})
    return [call, span("gemm", 10 * i + 3, 2, cat="kernel", args=args, **place)]


def write_trace(path: Path, events: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps({"traceEvents": events}))


def trace_by_depth(path: Path, n: int) -> None:
    write_trace(path, [span(f"op{i % 50}", i, 2 * (n - i)) for i in range(n)])


def trace_by_devices(path: Path, n: int) -> None:
    write_trace(path, [event for i in range(n) for event in launched(i, i, 7)])


def trace_by_devices_in_ranges(path: Path, n: int) -> None:
    write_trace(path, [event for i in range(n) for event in [span(f"op{i % 50}", 10 * i, 4), *launched(i, i, 7)]])


def trace_by_streams(path: Path, n: int) -> None:
    write_trace(path, [event for i in range(n) for event in launched(i, 0, i)])


def stacks_by_depth(path: Path, n: int) -> None:
    opened = [{"type": "O", "at": i, "frame": i} for i in range(n)]
    closed = [{"type": "C", "at": n + i, "frame": n - 1 - i} for i in range(n)]
    write_speedscope(path, [f"f{i}" for i in range(n)], opened + closed)


def write_speedscope(path: Path, names: list[str], events: list[dict[str, Any]]) -> None:
    profile = {"type": "evented", "name": "main", "unit": "microseconds", "startValue": 0, "endValue": len(events)}
    whole = {"shared": {"frames": [{"name": name} for name in names]}, "profiles": [{**profile, "events": events}]}
    path.write_text(json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", **whole}))


GROWTH = [
    (trace_by_depth, ".json", 10_000, "export {} --to kineto -o {out}"),
    (trace_by_depth, ".json", 10_000, "report {} --html {out}"),
    (trace_by_devices, ".json", 2000, "report {} --gpu"),
    (trace_by_devices, ".json", 2000, "breakdown {} --by stream"),
    (trace_by_devices_in_ranges, ".json", 2000, "breakdown {} --by range"),
    (trace_by_streams, ".json", 2000, "report {} --gpu"),
    (trace_by_streams, ".json", 2000, "report {} --path"),
    (trace_by_devices, ".json", 2000, "report {} --path"),
    (stacks_by_depth, ".speedscope.json", 5000, "report {} --samples"),
    (stacks_by_depth, ".speedscope.json", 5000, "export {} --to callgrind -o {out}"),
    (stacks_by_depth, ".speedscope.json", 5000, "export {} --to pstats -o {out}"),
]


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(("make", "extension", "n", "command"), GROWTH)
def test_time_grows_with_the_size(
    make: Callable[[Path, int], None], extension: str, n: int, command: str, program: Path, tmp_path: Path
) -> None:
    """Four times the size takes four times as long, not sixteen times."""
    took = []
    for size in (n, 4 * n):
        path = tmp_path / f"{size}{extension}"
        make(path, size)
        took.append(cpu_seconds([str(program), *words_of(command, path, tmp_path / "out")]))
    assert took[1] < 9 * took[0] + 0.3, took
