"""Why devices are idle and which rank waits for which, on public traces, against a slow independent count."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
import slow_why

TRACES = Path(__file__).parent.parent / "data" / "kineto"
RANKS = [TRACES / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)]
MI250 = TRACES / "mi250_minitoy_train_ROCm6_2_kineto.json.gz"
EVENT_SYNC = TRACES / "event_sync_trace.json.gz"


def break_down(marey, *args):
    done = marey("breakdown", "--json", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", [*RANKS, MI250, EVENT_SYNC], ids=lambda path: path.name[:14])
def test_idle_times_and_operators_are_those_of_a_slow_count(marey, path):
    answer = break_down(marey, path)
    (device,) = {row["device"] for row in answer["devices"]}
    want = slow_why.why_idle(slow_why.Trace(path), device)
    got = {(row["reason"], row["operator"]): row["ns"] for row in answer["idle_by_operator"]}
    assert got == {key: ns for key, ns in want.items() if ns}
    by_reason = defaultdict(int)
    for (reason, _), ns in want.items():
        by_reason[reason] += ns
    assert {row["reason"]: row["ns"] for row in answer["idle"]} == {r: ns for r, ns in by_reason.items() if ns}
    (span,) = [row for row in answer["devices"] if row["window"] == "gpu_span"]
    assert sum(row["ns"] for row in answer["idle"]) == span["idle"]
    assert sum(row["share"] for row in answer["idle"]) == pytest.approx(1)


def test_idle_times_by_step_add_up_to_those_of_the_steps(marey):
    answer = break_down(marey, *RANKS, "--by", "step", "--window", "steps")
    for step in answer["by"]:
        rows = [r for r in answer["idle_by_step"] if (r["rank"], r["step"]) == (step["rank"], step["step"])]
        assert sum(row["ns"] for row in rows) == step["idle"]
    for device in answer["devices"]:
        if device["window"] == "steps":
            assert sum(row["ns"] for row in answer["idle"] if row["rank"] == device["rank"]) == device["idle"]


@pytest.mark.parametrize("as_folder", [False, True])
def test_collectives_of_two_ranks_are_those_of_a_slow_count(marey, tmp_path, as_folder):
    paths = RANKS
    if as_folder:
        for path in RANKS:
            (tmp_path / path.name).write_bytes(path.read_bytes())
        paths = [tmp_path]
    answer = break_down(marey, *paths)
    want = slow_why.collectives([slow_why.Trace(path) for path in RANKS], "ncclKernel_SendRecv")
    (row,) = answer["collectives"]
    assert row["what"] == "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"
    assert (row["count"], row["transfer_ns"], row["ranks"]) == (want.count, want.transfer, 2)
    assert row["wait_ns"] == round(sum(want.waits) / 2)
    assert row["skew_ns"] == round(want.skew)
    assert row["bus_bytes_per_s"] is None, "the trace does not say how many bytes"
    assert [rank["wait_ns"] for rank in answer["collective_ranks"]] == want.waits
    assert row["slowest_rank"] == "rank 1"
    assert any(f"{want.apart} of {want.count} do not overlap" in text for text in answer["warnings"]), (
        "these traces hold some of the calls only, so order cannot match them"
    )


def trace_of(rank, late_us):
    """A DDP step as torch writes it: the kernel says what it communicates; rank 1 begins late, both end together."""
    events = []
    for i in range(4):
        at = 1000 * i
        arguments = {
            "device": rank,
            "stream": 20,
            "correlation": i + 1,
            "Collective name": "allreduce",
            "In msg nelems": 1000,
            "Out msg nelems": 1000,
            "dtype": "Float",
            "Group size": 2,
            "Process Group Name": "0",
            "Process Group Ranks": "[0, 1]",
            "Seq": 7 + i,
        }
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        common = {"ph": "X", "pid": 10 + rank, "tid": 10 + rank}
        launch = {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at, "dur": 5}
        events.append({**launch, "args": {"correlation": i + 1}})
        begin = at + 100 + late_us
        events.append({**common, "cat": "kernel", "name": name, "ts": begin, "dur": 400 - late_us, "args": arguments})
    info = {"backend": "nccl", "rank": rank, "world_size": 2}
    return {
        "schemaVersion": 1,
        "distributedInfo": info,
        "traceEvents": events,
        "baseTimeNanoseconds": 1719853884 * 10**9,
    }


def test_planted_waits_of_a_process_group_are_found(marey, tmp_path):
    for rank, late_us in ((0, 0), (1, 150)):
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace_of(rank, late_us)))
    answer = break_down(marey, "rank0.json", "rank1.json")
    (row,) = answer["collectives"]
    assert row["what"] == "all_reduce"
    assert row["group"].startswith("0")
    assert (row["count"], row["bytes"], row["partial"]) == (4, 4 * 4000, 0)
    assert row["transfer_ns"] == 4 * 250_000
    assert row["wait_ns"] == 4 * 150_000 // 2
    assert row["skew_ns"] == 150_000
    assert row["algorithm_bytes_per_s"] == pytest.approx(4000 / 250e-6)
    assert row["bus_bytes_per_s"] == pytest.approx(4000 / 250e-6 * 2 * (2 - 1) / 2)
    assert (row["slowest_rank"], row["slowest_share"]) == ("rank 1", 1)
    first, second = answer["collective_ranks"]
    assert (first["wait_ns"], first["first"], first["last"]) == (4 * 150_000, 4, 0)
    assert (second["wait_ns"], second["late_ns"], second["last"]) == (0, 4 * 150_000, 4)
    text = marey("breakdown", "rank0.json", "rank1.json").stdout
    assert "rank 1" in text and "collectives: mean per rank" in text


def test_rules_of_the_user_give_reasons(marey, tmp_path):
    (tmp_path / "my.rules").write_text("mine idle:data_loading range forward\n")
    answer = break_down(marey, RANKS[0], "--rules", "my.rules")
    assert any(row["reason"] == "data_loading" and row["operator"] == "forward" for row in answer["idle_by_operator"])
    (tmp_path / "bad.rules").write_text("mine idle:nothing range forward\n")
    done = marey("breakdown", RANKS[0], "--rules", "bad.rules")
    assert done.returncode == 2
    assert "bad.rules, line 1: idle time of a thread does not have the reason 'nothing'" in done.stderr
