"""`marey report --gpu`: the same numbers as a plain reference, tables in every form, and what it says without any."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import gpu_reference
import pytest

KINETO = Path(__file__).parents[1] / "data" / "kineto"
TRACES = (
    "sampled_rank-0",
    "sampled_rank-1",
    "event_sync_trace",
    "mi250_minitoy_train_ROCm6_2_kineto",
    "triton_example",
)
TABLES = ("devices", "kernels", "shapes", "copies", "streams", "ranges", "launch_bound", "iterations", "gaps")


def tables_of(marey: Any, *paths: object) -> dict[str, Any]:
    done = marey("report", *paths, "--gpu", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["gpu"]


def check(found: dict[str, Any], trace: gpu_reference.Trace) -> None:
    """Every number that the reference has."""
    kernels = {(r["name"], r["kind"]): r for r in found["kernels"]}
    expected = gpu_reference.kernels(trace)
    assert kernels.keys() == expected.keys()
    for key, row in expected.items():
        assert {c: kernels[key][c] or 0 for c in row} == row, key
    shapes = {
        (r["name"], r["grid"], r["block"], r["registers"], r["shared_bytes"]): (r["count"], r["total_ns"])
        for r in found["shapes"]
        if r["grid"] is not None
    }
    assert shapes == gpu_reference.shapes(trace)
    ranges = {r["name"]: r for r in found["ranges"]}
    expected = gpu_reference.ranges(trace)
    assert ranges.keys() == expected.keys()
    for name, row in expected.items():
        assert {c: ranges[name][c] for c in row} == row, name
    bound = {r["name"]: r for r in found["launch_bound"]}
    spans = {name: row["span_ns"] for name, row in bound.items()}
    assert spans.pop("(no range)", None) is None  # it has no span
    assert spans == gpu_reference.spans(trace)
    check_waits(found, bound, trace)
    check_verdicts(bound)


def check_verdicts(bound: dict[str, Any]) -> None:
    """A verdict names the larger wait, which the numbers of its row prove; every large wait has one."""
    for name, row in bound.items():
        waits = {"launch-bound": row["launch_wait_ns"], "host-bound": row["host_wait_ns"]}
        largest = max(waits.values())
        if row["span_ns"] is None or largest < row["span_ns"] // 10 or largest == 0:
            assert row["verdict"] is None, name
        else:
            assert waits[row["verdict"]] == largest, name


def check_waits(found: dict[str, Any], bound: dict[str, Any], trace: gpu_reference.Trace) -> None:
    longest: list[int] = []
    by_name: dict[str, dict[str, int]] = {}
    for device in found["devices"]:
        sums, names, gaps = gpu_reference.waits(trace, device["device"])
        for column in ("launch_wait_ns", "host_wait_ns", "other_idle_ns"):
            assert device[column] == sums.get(column, 0), column
        assert device["busy_ns"] + sum(sums.values()) == device["span_ns"]
        longest += gaps
        for name, row in names.items():
            for column, ns in row.items():
                mine = by_name.setdefault(name, {})
                mine[column] = mine.get(column, 0) + ns
    assert by_name.keys() <= bound.keys()
    for name, row in bound.items():
        for column in ("launch_wait_ns", "host_wait_ns"):
            assert row[column] == by_name.get(name, {}).get(column, 0), (name, column)
    assert [g["duration_ns"] for g in found["gaps"]] == sorted(longest, reverse=True)[:20]


@pytest.mark.parametrize("name", TRACES)
def test_every_number_is_the_references(marey: Any, name: str) -> None:
    path = KINETO / f"{name}.json.gz"
    check(tables_of(marey, path), gpu_reference.Trace(path))


def random_trace(seed: int) -> list[dict[str, Any]]:
    """Nested ranges, overlapping streams, graphs of several kernels, activity of zero length or without launch."""
    rng = random.Random(seed)
    events: list[dict[str, Any]] = []
    correlation = 0
    ends = {(device, stream): 0 for device in range(2) for stream in (7, 20)}
    for thread in (1, 2):
        now = rng.randrange(100)
        for _ in range(30):
            now = put_step(rng, events, thread, now, ends, correlation)
            correlation += 100
    device, stream = next(iter(ends))
    events.append(work_event(rng, device, stream, max(ends.values()) + 500, 9_999_999))
    return events


def put_step(rng: random.Random, events: list[Any], thread: int, now: int, ends: Any, correlation: int) -> int:
    """A step with some operators in it, each with launches; times are whole microseconds and distinct for ranges."""
    begin = now
    for _ in range(rng.randrange(1, 4)):
        operator = now = now + 1
        for _ in range(rng.randrange(0, 4)):
            correlation += 1
            now += rng.choice((1, 5, 40, 300))
            call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": thread}
            events.append({**call, "ts": now, "dur": 3, "args": {"correlation": correlation}})
            device, stream = rng.choice(list(ends))
            for _ in range(rng.choice((1, 1, 1, 3))):
                at = max(ends[device, stream], now + 2) + rng.choice((0, 0, 1, 8))
                events.append(work_event(rng, device, stream, at, correlation))
                ends[device, stream] = at + events[-1]["dur"]
            now += 3
        now += 1
        name = rng.choice(("aten::mm", "aten::add", "layer"))
        events.append(host_event(name, thread, operator, now - operator))
    now += 1
    events.append(host_event(rng.choice(("step", "layer")), thread, begin, now - begin))
    return now + rng.choice((1, 200))


def host_event(name: str, thread: int, ts: int, dur: int) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": thread, "ts": ts, "dur": dur, "args": {}}


def work_event(rng: random.Random, device: int, stream: int, ts: int, correlation: int) -> dict[str, Any]:
    kind = rng.choice(("kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset"))
    names = {
        "kernel": rng.choice(("gemm", "relu")),
        "gpu_memcpy": "Memcpy HtoD (Pinned -> Device)",
        "gpu_memset": "Memset (Device)",
    }
    arguments: dict[str, Any] = {"device": device, "stream": stream, "correlation": correlation}
    if kind == "kernel":
        arguments |= {
            "grid": [rng.choice((8, 16)), 1, 1],
            "block": [128, 1, 1],
            "registers per thread": 32,
            "shared memory": 0,
        }
    else:
        arguments["bytes"] = rng.randrange(1, 1 << 20)
    place = {"ph": "X", "cat": kind, "name": names[kind], "pid": device, "tid": stream}
    return {**place, "ts": ts, "dur": rng.choice((0, 2, 2, 30, 150)), "args": arguments}


@pytest.mark.parametrize("seed", range(8))
def test_random_traces_are_as_the_reference_has_them(marey: Any, tmp_path: Path, seed: int) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": random_trace(seed)}))
    check(tables_of(marey, path), gpu_reference.Trace(path))


def test_ranks_add_up(marey: Any) -> None:
    both = tables_of(marey, *(KINETO / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)))
    each = [tables_of(marey, KINETO / f"sampled_rank-{rank}.json.gz") for rank in (0, 1)]
    assert both["devices"] == each[0]["devices"] + each[1]["devices"]
    for table, columns in (("kernels", ("count", "total_ns")), ("ranges", ("launches", "work", "gpu_ns", "launch_ns"))):
        for column in columns:
            assert sum(r[column] for r in both[table]) == sum(r[column] for one in each for r in one[table])


@pytest.mark.parametrize("table", TABLES)
def test_csv_has_the_rows_of_json(marey: Any, table: str) -> None:
    path = KINETO / "mi250_minitoy_train_ROCm6_2_kineto.json.gz"
    done = marey("report", path, "--gpu", "--csv", "--table", table)
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    expected = tables_of(marey, path)[table]
    assert [list(row) for row in rows] == [list(row) for row in expected]
    for row, wanted in zip(rows, expected):
        for column, value in wanted.items():
            assert row[column] == "" if value is None else str(row[column]) == str(value) or float(row[column]) == value


def test_text_has_a_heading_for_each_and_no_advice(marey: Any) -> None:
    done = marey("report", KINETO / "sampled_rank-0.json.gz", "--gpu", "--limit", "3")
    assert done.returncode == 0
    headings = (
        "GPUs",
        "GPU activity by name",
        "kernels by grid and block size",
        "copies and memsets",
        "streams",
        "GPU activity by the ranges that launched it",
        "where GPUs wait for the host",
        "iterations",
        "longest gaps",
    )
    at = [done.stdout.index(f"\n{heading}\n") for heading in headings]
    assert at == sorted(at)
    assert " is launch-bound" not in done.stdout and " is host-bound" not in done.stdout
    assert "... and 196 more; --all shows them" in done.stdout


def test_waits_of_launches_in_no_range_are_a_row(marey: Any, tmp_path: Path) -> None:
    """90 % of the device's time is launch wait, and no range is around the launches."""
    rng = random.Random(1)
    events = []
    for i in range(50):
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1}
        events.append({**call, "ts": i * 50, "dur": 3, "args": {"correlation": i + 1}})
        events.append({**work_event(rng, 0, 7, i * 50 + 5, i + 1), "dur": 5})
    path = tmp_path / "bare.json"
    path.write_text(json.dumps({"traceEvents": events}))
    gpu = tables_of(marey, path)
    [device] = gpu["devices"]
    [row] = gpu["launch_bound"]
    assert device["launch_wait_share"] > 0.85
    assert (row["name"], row["launch_wait_ns"]) == ("(no range)", device["launch_wait_ns"])
    text = marey("report", path, "--gpu").stdout
    assert "where GPUs wait for the host\n" in text and "seldom" not in text and "no range is" not in text


def test_other_tables_stand_before_those_of_gpus(marey: Any) -> None:
    done = marey("report", KINETO / "triton_example.json.gz", "--gpu", "--tree")
    before, heading, _ = done.stdout.partition("\nGPUs\n")
    assert heading and "cuLaunchKernel" in before
    only = marey("report", KINETO / "triton_example.json.gz", "--gpu")
    assert "cuLaunchKernel" not in only.stdout.partition("\nGPUs\n")[0]


def test_a_filter_chooses_kernels_and_ranges(marey: Any) -> None:
    done = marey("report", KINETO / "sampled_rank-0.json.gz", "--gpu", "--json", "-f", "*sgemm*")
    gpu = json.loads(done.stdout)["gpu"]
    assert gpu["kernels"] and all("sgemm" in row["name"] for row in gpu["kernels"] + gpu["shapes"])
    assert gpu["ranges"] == []


def test_without_gpu_work_it_says_how_to_get_some(marey: Any) -> None:
    done = marey("report", KINETO / "rank_non_gpu.json.gz", "--gpu")
    assert done.returncode == 0
    assert "No GPU activity was recorded: 'marey run --gpu' records it" in done.stdout


def test_wrong_usage_is_reported(marey: Any) -> None:
    path = KINETO / "triton_example.json.gz"
    done = marey("report", path, "--gpu", "--csv", "--table", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("marey: no table 'nonsense' of gpu; there are devices, kernels, ")
    done = marey("report", path, "--table", "nonsense")
    assert done.returncode == 2 and done.stderr.startswith("marey: no table 'nonsense' of ranges; there are ")
    done = marey("report", path, "--csv", "--table", "processes")
    assert done.returncode == 0 and done.stdout.startswith("rank,pid,host,")


# ---- Nsight Compute ----


def ncu_commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.splitlines() if line.startswith("  ncu ")]


def option_of(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_commands_for_nsight_compute_find_the_kernels_that_take_longest(marey: Any) -> None:
    trace = KINETO / "sampled_rank-0.json.gz"
    kernels = json.loads(marey("report", trace, "--gpu", "--json").stdout)["gpu"]["kernels"]
    longest = [row for row in kernels if row["kind"] == "kernel"][:3]
    assert any(set("<(*") & set(row["name"]) for row in longest), "names that need escaping"
    commands = ncu_commands(marey("report", trace, "--gpu").stdout)
    assert len(commands) == len(longest) == 3
    for number, (command, row) in enumerate(zip(commands, longest), 1):
        kind, pattern = option_of(command, "--kernel-name").split(":", 1)
        assert kind == "regex"
        assert [other["name"][:120] for other in kernels if re.search(pattern, other["name"])] == [row["name"][:120]]
        skip, count = (int(option_of(command, f"--launch-{word}")) for word in ("skip", "count"))
        assert skip == row["count"] // 2
        assert 1 <= count <= 3
        assert skip + count <= row["count"]
        assert command[-3:] == ["-o", f"kernel_{number}", "COMMAND"]


def test_without_kernels_there_is_no_command(marey: Any) -> None:
    assert "ncu" not in marey("report", KINETO / "rank_non_gpu.json.gz", "--gpu").stdout
