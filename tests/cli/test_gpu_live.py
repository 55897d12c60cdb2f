"""Recordings of GPU work made by marey itself, from the run to the last table and export.

The GPU is fake: tests/cupti has libraries that replace CUDA and CUPTI. The program follows its arguments, so counts and
names are known; times are only compared with each other.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built import needs_sqlite
from page_decoder import Page, needs_viewer

ACTS = (
    "begin train begin forward launch gemm 7 launch relu 7 end begin replay graph 5 7 end "
    "copy 4096 9 set 512 9 take 1024 sync iteration end"
)
SHAPE = {"grid": [8, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024}


@pytest.fixture
def traced(marey: Any, build_dir: Path, tmp_path: Path) -> Callable[..., Path]:
    def trace(acts: str = ACTS, cupti: str = "", options: str = "") -> Path:
        libraries = build_dir / "tests" / "cupti"
        env = {"LD_LIBRARY_PATH": str(libraries / "cuda"), "CUDA_INJECTION64_PATH": "", "MAREY_TEST_CUPTI": cupti}
        command = [
            "run",
            "-q",
            "--gpu",
            "--options",
            options,
            "-o",
            "run.marey",
            "--",
            libraries / "gpu_work",
            *acts.split(),
        ]
        done = marey(*command, env=env)
        assert done.returncode == 0, done.stderr
        return tmp_path / "run.marey"

    return trace


def test_the_report_has_every_launch(marey: Any, traced: Callable[..., Path]) -> None:
    told = json.loads(marey("report", traced(), "--gpu", "--json").stdout)
    gpu = told["gpu"]
    assert {row["name"]: row["count"] for row in gpu["kernels"]} == {
        "gemm": 1,
        "relu": 1,
        "in_a_graph": 5,
        "Memcpy HtoD (Pageable -> Device)": 1,
        "Memset (Device)": 1,
    }
    assert {(row["grid"], row["block"], row["registers"], row["shared_bytes"]) for row in gpu["shapes"]} == {
        ("8x1x1", "128x1x1", 32, 1024)
    }
    assert {row["direction"]: row["bytes"] for row in gpu["copies"]} == {"HtoD": 4096, None: 512}
    ranges = {row["name"]: (row["calls"], row["launches"], row["work"]) for row in gpu["ranges"]}
    assert ranges == {"train": (1, 5, 9), "forward": (1, 2, 2), "replay": (1, 1, 5)}
    [device] = gpu["devices"]
    idle = device["launch_wait_ns"] + device["host_wait_ns"] + device["other_idle_ns"]
    assert device["busy_ns"] + idle == device["span_ns"]
    total = sum(row["total_ns"] for row in gpu["kernels"])
    assert 0 < device["busy_ns"] <= total
    [iteration] = gpu["iterations"]
    assert (iteration["launches"], iteration["work"], iteration["gpu_ns"]) == (5, 9, total)
    # Allocated memory does not count as activity.
    memory = [row for row in told["kernels"] if row["kind"] == "memory"]
    assert [(row["count"], row["share"]) for row in memory] == [(1, None)]


def test_the_breakdown_comes_straight_from_the_recording(marey: Any, traced: Callable[..., Path]) -> None:
    path = traced()
    broken = json.loads(marey("breakdown", path, "--by", "range", "--json").stdout)
    gpu = json.loads(marey("report", path, "--gpu", "--json").stdout)["gpu"]
    [device] = [row for row in broken["devices"] if row["window"] == "gpu_span"]
    assert device["busy"] == gpu["devices"][0]["busy_ns"] and device["span"] == gpu["devices"][0]["span_ns"]
    kernels = sum(row["total_ns"] for row in gpu["kernels"] if row["kind"] == "kernel")
    assert 0 < device["compute"] <= kernels and device["exposed_comm"] == 0
    assert {row["range"] for row in broken["by"]} == {"train", "forward", "replay"}


def test_chrome_is_as_kineto_writes_it(marey: Any, traced: Callable[..., Path], tmp_path: Path) -> None:
    path = traced()
    assert marey("export", path, "--to", "chrome", "-o", "trace.json").returncode == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert len(kernels) == 7
    for kernel in kernels:
        assert {**SHAPE, "device": 0, "stream": 7}.items() <= kernel["args"].items()
    in_graph = [e["args"] for e in kernels if e["name"] == "in_a_graph"]
    assert len({args["graph node id"] for args in in_graph}) == 5
    calls = [e for e in events if e.get("cat") == "cuda_runtime" and e["ph"] == "X"]
    launches = {e["args"]["correlation"]: e["name"] for e in calls if "args" in e}
    assert {launches[args["correlation"]] for args in in_graph} == {"cudaGraphLaunch"}
    arrows = [(e["ph"], e["id"]) for e in events if e.get("cat") == "ac2g"]
    for kernel in kernels:
        correlation = kernel["args"]["correlation"]
        assert ("s", correlation) in arrows and ("f", correlation) in arrows
    # The export has the same data as the recording.
    again = json.loads(marey("report", "trace.json", "--gpu", "--json").stdout)["gpu"]
    before = json.loads(marey("report", path, "--gpu", "--json").stdout)["gpu"]
    for table in ("kernels", "copies"):
        names = {row["name"]: row for row in before[table] if row.get("kind") != "memory"}
        assert names.keys() == {row["name"] for row in again[table]}
        for row in again[table]:
            assert row["count"] == names[row["name"]]["count"]
            # Ticks become nanoseconds once for the duration there, and once for each end here.
            assert abs(row["total_ns"] - names[row["name"]]["total_ns"]) <= row["count"]


def test_perfetto_has_shapes_and_arrows(marey: Any, traced: Callable[..., Path], tmp_path: Path) -> None:
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    path = traced()
    assert marey("export", path, "-o", "slices.pftrace").returncode == 0
    packets = pb.Trace.FromString((tmp_path / "slices.pftrace").read_bytes()).packet
    notes = [{n.name: n for n in p.track_event.debug_annotations} for p in packets]
    shaped = [n for n in notes if "registers per thread" in n]
    assert len(shaped) == 7
    assert {tuple(v.int_value for v in n["grid"].array_values) for n in shaped} == {(8, 1, 1)}
    flows = [f for p in packets for f in p.track_event.flow_ids]
    # Five launches, one of them with five pieces of work, and memory that was asked for; other calls lead nowhere.
    assert [n for n in sorted(map(flows.count, set(flows))) if n > 1] == [2, 2, 2, 2, 2, 6]
    assert marey("export", path, "--to", "perfetto-gpu", "-o", "native.pftrace").returncode == 0
    packets = pb.Trace.FromString((tmp_path / "native.pftrace").read_bytes()).packet
    kernels = [p.gpu_render_stage_event for p in packets if p.gpu_render_stage_event.launch.workgroup_size.x == 128]
    assert len(kernels) == 7 and {k.launch.grid_size.x for k in kernels} == {8}
    assert len({k.event_id for k in kernels}) == 3


@needs_sqlite
def test_sql_has_shapes(marey: Any, traced: Callable[..., Path], tmp_path: Path) -> None:
    assert marey("export", traced(), "-o", "run.db").returncode == 0
    database = sqlite3.connect(tmp_path / "run.db")
    query = "SELECT a.json FROM gpu_work w JOIN arguments a ON a.event = w.id WHERE w.kind = 'kernel'"
    shapes = [json.loads(text) for (text,) in database.execute(query)]
    assert len(shapes) == 7 and all(SHAPE.items() <= shape.items() for shape in shapes)
    database.close()


@needs_viewer
def test_the_page_has_shapes_and_arrows(marey: Any, traced: Callable[..., Path], tmp_path: Path) -> None:
    path = traced()
    assert marey("report", path, "--html", "page.html").returncode == 0
    page = Page(tmp_path / "page.html")
    [stream] = [track for track in page.tracks("gpu") if track["stream"] == 7]
    texts = [json.loads(text) for text in page.texts(stream).values()]
    assert len(texts) == 7 and all(SHAPE.items() <= text.items() for text in texts)
    links = {event.value for event in page.row(stream["links"])}
    [thread] = [track for track in page.tracks("thread") if track.get("links")]
    assert links and links <= {event.value for event in page.row(thread["links"])}
    tables = {table["name"]: table["rows"] for table in page.index["gpu"]}
    assert tables["kernels"] == 5 and tables["ranges"] == 3


def test_every_other_export_takes_it(marey: Any, traced: Callable[..., Path]) -> None:
    path = traced()
    for format in ("csv", "speedscope", "collapsed", "flamegraph"):
        assert marey("export", path, "--to", format, "-o", "out").returncode == 0


def test_a_full_log_is_reported_everywhere(marey: Any, traced: Callable[..., Path]) -> None:
    path = traced("begin train many 200000 7 sync end", options="disk=64KiB,pool=2MiB")
    lost = json.loads(marey("report", path, "--gpu", "--json").stdout)["lost_events"]
    assert lost > 0
    assert "\nlost: " in marey("report", path, "--gpu").stdout
    assert f"note: Lost events: {lost} of process" in marey("breakdown", path).stdout


@pytest.mark.parametrize("command", [("report",), ("report", "--gpu"), ("breakdown",)])
def test_dropped_records_are_reported_everywhere(
    marey: Any, traced: Callable[..., Path], command: tuple[str, ...]
) -> None:
    told = marey(*command, traced(cupti="dropped=5"))
    assert told.returncode == 0
    assert "records of GPU work were dropped by CUPTI" in told.stdout


def test_nsight_compute_gets_the_command_that_was_run(marey: Any, traced: Callable[..., Path]) -> None:
    lines = marey("report", traced(), "--gpu").stdout.splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("  ncu ")]
    patterns = {command[command.index("--kernel-name") + 1] for command in commands}
    assert patterns == {"regex:^in_a_graph$", "regex:^gemm$", "regex:^relu$"}
    for command in commands:
        program = command[command.index("-o") + 2 :]
        assert Path(program[0]).name == "gpu_work"
        assert program[1:] == ACTS.split()


# ---- memory, from CUPTI ----

TRAINING = (
    "stray begin train take 4000000 pinned 500000 phase forward begin layer take 8000000 end give "
    + "phase optimizer "
    + "begin step take 1000000 end iteration " * 12
    + "take 2000000 give end"
)


def test_memory_of_devices_by_the_range_that_asked_for_it(marey: Any, traced: Callable[..., Path]) -> None:
    path = traced(TRAINING)
    tables = json.loads(marey("report", path, "--memory", "--json").stdout)
    pools = {row["device"]: row for row in tables["pools"]}
    assert set(pools) == {"cuda:0", "host, pinned"}
    cuda = pools["cuda:0"]
    assert cuda["source"] == "CUPTI's records of CUDA memory" and cuda["pid"] > 0
    assert (cuda["peak_bytes"], cuda["end_bytes"], cuda["samples"]) == (18_000_000, 16_000_000, 16)
    assert pools["host, pinned"]["peak_bytes"] == 500_000
    places = {row["where"]: (row["bytes"], row["blocks"]) for row in tables["stacks"] if row["device"] == "cuda:0"}
    assert places == {
        "cudaMalloc < step < train": (12_000_000, 12),
        "cudaMalloc < train": (6_000_000, 2),
    }
    phases = {row["phase"]: row["peak_bytes"] for row in tables["phases"] if row["device"] == "cuda:0"}
    assert phases == {"forward": 12_000_000, "optimizer": 18_000_000}
    growth = {row["where"]: row for row in tables["growth"] if row["device"] == "cuda:0"}
    assert growth[None]["per"] == "iteration" and growth[None]["slope_bytes"] == 1_000_000
    assert growth["cudaMalloc < step < train"]["is_suspected"]
    live = [row["bytes"] for row in tables["live"] if row["device"] == "cuda:0"]
    assert max(live) == 18_000_000 and live[-1] == 16_000_000
    categories = {(row["device"], row["category"]): row["bytes"] for row in tables["categories"]}
    assert categories == {("cuda:0", "Device"): 18_000_000, ("host, pinned", "Pinned"): 500_000}
    drawn = marey("report", path, "--memory").stdout
    assert "cuda:0, process" in drawn and "leak suspected: what this allocates grows by 1.00 MB each iteration" in drawn


def test_memory_that_was_there_before_ends_with_its_free(marey: Any, traced: Callable[..., Path]) -> None:
    tables = json.loads(marey("report", traced("take 1024 stray take 2048"), "--memory", "--json").stdout)
    (pool,) = tables["pools"]
    assert (pool["peak_bytes"], pool["end_bytes"]) == (65_536 + 1024, 3072)
    assert tables["stacks"][0]["where"] == "(allocated before recording)" and tables["stacks"][0]["stack"] is None


def test_memory_calls_are_no_launches(marey: Any, traced: Callable[..., Path]) -> None:
    told = json.loads(marey("report", traced("begin a take 1024 give launch k 7 end"), "--gpu", "--json").stdout)
    assert [(row["name"], row["launches"]) for row in told["gpu"]["ranges"]] == [("a", 1)]


def test_both_sources_stand_side_by_side(marey: Any, build_dir: Path, tmp_path: Path) -> None:
    libraries = build_dir / "tests" / "cupti"
    env = {"LD_LIBRARY_PATH": str(libraries / "cuda"), "CUDA_INJECTION64_PATH": "", "MAREY_TEST_CUPTI": ""}
    command = ["run", "-q", "--gpu", "--memory", "--memory-sample", "1", "-o", "both.marey", "--"]
    done = marey(*command, libraries / "gpu_work", "take", "1024", "launch", "k", "7", env=env)
    assert done.returncode == 0, done.stderr
    tables = json.loads(marey("report", tmp_path / "both.marey", "--memory", "--json").stdout)
    assert {row["device"]: row["source"] for row in tables["pools"]} == {
        "host": "samples of malloc",
        "cuda:0": "CUPTI's records of CUDA memory",
    }
