"""marey breakdown of public traces, against a slow, independent script."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from breakdown_reference import Trace, rows_of

DATA = Path(__file__).parent.parent / "data" / "kineto"
TRACES = sorted(DATA.glob("*.json.gz"))
BY = ["step", "range", "stream", "process-group"]


def answer_of(marey: Any, *args: Any) -> dict[str, Any]:
    done = marey("breakdown", *args, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def expect_identity(row: dict[str, Any]) -> None:
    assert row["compute"] + row["exposed_comm"] + row["exposed_mem"] + row["idle"] == row["span"]
    assert sum(row["atoms"].values()) == row["span"]
    assert row["busy"] == row["span"] - row["idle"]
    assert row["hidden_comm"] + row["exposed_comm"] == row["comm_total"]


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["rank"] or 0, row["device"], row["window"], row.get("step", -1)


def compare(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """Row by row, each number that the reference has."""
    assert sorted(map(key_of, found)) == sorted(map(key_of, wanted))
    for want in wanted:
        got = next(row for row in found if key_of(row) == key_of(want))
        for name, value in want.items():
            assert got[name] == value, (key_of(want), name)


# ---- the same numbers as the reference ----


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name)
def test_every_number_is_the_references(marey: Any, trace: Path) -> None:
    wanted = rows_of(trace)
    answer = answer_of(marey, trace)
    compare(answer["devices"], [row for row in wanted if row["window"] != "step"])
    for row in answer["devices"]:
        expect_identity(row)
    if any(row["window"] == "step" for row in wanted):
        by_step = answer_of(marey, trace, "--by", "step")["by"]
        compare(by_step, [row for row in wanted if row["window"] == "step"])


def test_a_folder_of_ranks_is_all_of_them(marey: Any, tmp_path: Path) -> None:
    ranks = [path for path in TRACES if path.name.startswith("sampled_rank")]
    for path in ranks:
        shutil.copy(path, tmp_path)
    wanted = [row for path in ranks for row in rows_of(path) if row["window"] != "step"]
    answer = answer_of(marey, tmp_path)
    compare(answer["devices"], wanted)
    spans = [row for row in wanted if row["window"] == "gpu_span"]
    whole = sum(row["span"] for row in spans)
    parts = {
        "computation": sum(row["compute"] for row in spans),
        "communication": sum(row["exposed_comm"] for row in spans),
        "other": sum(row["exposed_mem"] + row["idle"] for row in spans),
    }
    for name, ns in parts.items():
        assert answer["summary"][name] == {"ns": ns, "seconds": ns / 1e9, "share": ns / whole}
    assert answer_of(marey, *ranks)["summary"] == answer["summary"]


def test_the_summary_is_of_the_window_that_was_asked_for(marey: Any) -> None:
    trace = DATA / "sampled_rank-0.json.gz"
    wanted = {row["window"]: row for row in rows_of(trace) if row["window"] != "step"}
    for window in ("gpu_span", "steps"):
        answer = answer_of(marey, trace, "--window", window)
        assert answer["window"] == window
        assert answer["summary"]["computation"]["ns"] == wanted[window]["compute"]
        assert answer["summary"]["communication"]["ns"] == wanted[window]["exposed_comm"]


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name)
def test_each_part_adds_up(marey: Any, trace: Path, by: str) -> None:
    done = marey("breakdown", trace, "--by", by, "--json")
    if by == "step" and done.returncode == 2:
        assert "has no steps" in done.stderr
        return
    for row in json.loads(done.stdout)["by"]:
        expect_identity(row)


def test_streams_have_all_the_work_between_them(marey: Any) -> None:
    answer = answer_of(marey, DATA / "sampled_rank-0.json.gz", "--by", "stream")
    whole = answer["devices"][0]
    assert sum(row["n_work"] for row in answer["by"]) == whole["n_work"] == 1204
    assert sum(row["sum_of_durations"] for row in answer["by"]) == whole["sum_of_durations"]
    assert sum(rule["count"] for rule in answer["rules"]) == 1204
    assert sum(rule["ns"] for rule in answer["rules"]) == whole["sum_of_durations"]


# ---- made traces ----


def event(name: str, begin: float, end: float, device: int = 0, **more: Any) -> dict[str, Any]:
    arguments = {"device": device, "stream": 7, "correlation": 0, **more.pop("args", {})}
    made = {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": 7, "ts": begin, "dur": end - begin}
    return {**made, "args": arguments, **more}


# The worked example: microseconds from 0 to 140, in a step of 150.
EXAMPLE = [
    *(event("gemm", begin, end) for begin, end in ((0, 40), (30, 60), (100, 120))),
    *(event("ncclDevKernel_AllReduce", begin, end) for begin, end in ((50, 90), (110, 130))),
    *(event("Memcpy DtoD", begin, end, cat="gpu_memcpy") for begin, end in ((85, 95), (125, 140))),
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 9, "ts": 0, "dur": 150},
]
EXAMPLE_ATOMS = {"none": 15, "c": 60, "n": 30, "cn": 20, "m": 15, "cm": 0, "nm": 10, "cnm": 0}


def write_trace(path: Path, events: list[dict[str, Any]], **more: Any) -> Path:
    path.write_text(json.dumps({"traceEvents": events, **more}))
    return path


def test_the_worked_example(marey: Any, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "example.json", EXAMPLE)
    answer = answer_of(marey, trace, "--window", "steps")
    row = answer["devices"][1]
    assert row["window"] == "steps"
    assert row["atoms"] == {name: 1000 * us for name, us in EXAMPLE_ATOMS.items()}
    numbers = (row["compute"], row["comm_total"], row["mem_total"], row["hidden_comm"])
    assert numbers == (80_000, 60_000, 25_000, 20_000)
    assert (row["exposed_comm"], row["exposed_mem"], row["idle"]) == (40_000, 15_000, 15_000)
    assert row["overlap_ratio"] == 20 / 60
    assert row["sum_of_durations"] == 175_000
    assert [answer["summary"][part]["ns"] for part in ("computation", "communication", "other")] == [
        80_000,
        40_000,
        30_000,
    ]
    compare(answer["devices"], [row for row in rows_of(trace) if row["window"] != "step"])


def test_times_of_today_stay_exact(marey: Any, tmp_path: Path) -> None:
    trace = tmp_path / "exact.json"
    trace.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1712195495505582.988,'
        ' "dur": 2.001, "args": {"device": 0, "stream": 7}}, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0,'
        ' "tid": 7, "ts": 1712195495505590.123, "dur": 0.001, "args": {"device": 0, "stream": 7}}]}'
    )
    row = answer_of(marey, trace)["devices"][0]
    assert (row["span"], row["compute"]) == (7136, 2002)


def test_ten_devices_in_one_file(marey: Any, tmp_path: Path) -> None:
    events = [event("k", 10, 20 + device, device) for device in range(10)]
    rows = answer_of(marey, write_trace(tmp_path / "ten.json", events))["devices"]
    assert [(row["device"], row["compute"]) for row in rows] == [(d, 10_000 + 1000 * d) for d in range(10)]


def test_lengths_that_cannot_be(marey: Any, tmp_path: Path) -> None:
    events = [
        event("k", 10, 20),
        event("k", 30, 30),
        event("k", 50, 45),
        {key: value for key, value in event("k", 60, 70).items() if key != "dur"},
        event("k", 80, 90),
    ]
    answer = answer_of(marey, write_trace(tmp_path / "lengths.json", events))
    assert answer["devices"][0]["compute"] == 20_000
    assert answer["devices"][0]["span"] == 80_000


def test_a_collective_by_its_arguments(marey: Any, tmp_path: Path) -> None:
    events = [event("generic", 0, 10, args={"Collective name": "allreduce", "Process Group Name": "dp"}), EXAMPLE[0]]
    answer = answer_of(marey, write_trace(tmp_path / "generic.json", events), "--by", "process-group")
    assert answer["devices"][0]["comm_total"] == 10_000
    assert answer["by"][0]["comm_total"] == 10_000


def test_several_ranks_without_communication_are_doubted(marey: Any, tmp_path: Path) -> None:
    for rank in range(2):
        info = {"rank": rank, "world_size": 2, "backend": "nccl"}
        write_trace(tmp_path / f"rank{rank}.json", [event("gemm", 0, 10)], distributedInfo=info)
    answer = answer_of(marey, tmp_path)
    assert any("no communication was found" in warning for warning in answer["warnings"])


# ---- options and output ----


def test_the_first_line_has_the_three_parts(marey: Any, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "example.json", EXAMPLE)
    first = marey("breakdown", trace, "--window", "steps").stdout.splitlines()[0]
    assert first == "computation 80.0 us (53.3 %), communication 40.0 us (26.7 %), other 30.0 us (20.0 %)"
    first = marey("breakdown", trace, "--window", "steps", "--unit", "s").stdout.splitlines()[0]
    assert first.startswith("computation 0.00008")


def test_csv_is_the_table_of_devices_or_of_parts(marey: Any, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "example.json", EXAMPLE)
    devices = list(csv.DictReader(io.StringIO(marey("breakdown", trace, "--csv").stdout)))
    assert [row["window"] for row in devices] == ["gpu_span", "steps"]
    assert devices[1]["compute_ns"] == "80000"
    steps = list(csv.DictReader(io.StringIO(marey("breakdown", trace, "--csv", "--by", "step").stdout)))
    assert [row["step"] for row in steps] == ["3"]


def test_rules_that_are_printed_can_be_read(marey: Any, tmp_path: Path) -> None:
    rules = tmp_path / "my.rules"
    rules.write_text("calm  ignore  name  gemm\n" + marey("breakdown", "--print-rules").stdout)
    trace = write_trace(tmp_path / "example.json", EXAMPLE)
    answer = answer_of(marey, trace, "--rules", rules)
    assert answer["devices"][0]["compute"] == 0
    assert {rule["rule"]: rule["count"] for rule in answer["rules"]}["calm"] == 3


def test_an_answer_goes_to_a_file(marey: Any, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "example.json", EXAMPLE)
    assert marey("breakdown", trace, "--json", "-o", tmp_path / "answer.json").stdout == ""
    assert next(iter(json.loads((tmp_path / "answer.json").read_text()))) == "summary"


# ---- errors ----


def expect_refusal(done: Any, part: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nothing_to_break_down(marey: Any, tmp_path: Path) -> None:
    empty = write_trace(tmp_path / "empty.json", [{"ph": "i", "name": "x", "pid": 1, "tid": 1, "ts": 1, "s": "g"}])
    expect_refusal(marey("breakdown", empty), "no GPU activity and no ranges")


def test_no_events_at_all(marey: Any, tmp_path: Path) -> None:
    expect_refusal(marey("breakdown", write_trace(tmp_path / "none.json", [])), "none.json")


def test_steps_that_are_not_there(marey: Any) -> None:
    trace = DATA / "event_sync_trace.json.gz"
    expect_refusal(marey("breakdown", trace, "--window", "steps"), "has no steps")
    expect_refusal(marey("breakdown", trace, "--by", "step"), "has no steps")


def test_rules_with_a_mistake(marey: Any, tmp_path: Path) -> None:
    rules = tmp_path / "bad.rules"
    rules.write_text("# mine\nours  compares  name  x\n")
    expect_refusal(marey("breakdown", TRACES[0], "--rules", rules), "line 2: a rule's class is")
    expect_refusal(marey("breakdown", TRACES[0], "--rules", tmp_path / "missing"), "missing")


def test_a_trace_that_is_cut_off(marey: Any, tmp_path: Path) -> None:
    """The readable part is reported, with a message that it is incomplete."""
    text = gzip.decompress((DATA / "sampled_rank-0.json.gz").read_bytes())
    cut = tmp_path / "cut.json"
    cut.write_bytes(text[: len(text) // 2])
    answer = json.loads(marey("breakdown", cut, "--json").stdout)
    assert any("at byte" in warning for warning in answer["warnings"])
    for row in answer["devices"]:
        expect_identity(row)


def test_a_report_names_the_next_step(marey: Any, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "example.json", EXAMPLE)
    assert marey("report", trace).stdout.splitlines()[-1].startswith("next: marey breakdown ")
    plain = write_trace(tmp_path / "plain.json", [EXAMPLE[-1]])
    assert "marey breakdown" not in marey("report", plain).stdout


# ---- random traces ----


def random_trace(seed: int) -> list[dict[str, Any]]:
    """Devices, streams, steps and launches at random, in no order; work may overlap, touch, and have no length."""
    chance = random.Random(seed)
    names = ["gemm", "ncclKernel_X", "RCCL_thing", "triton_y", "__amd_rocclr_copyBuffer.kd", "void at::z"]
    kinds = ["kernel"] * 4 + ["gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync"]
    made: list[dict[str, Any]] = []
    ends = sorted(chance.sample(range(100, 3000), chance.randrange(1, 6) * 2))
    for number, (begin, end) in enumerate(zip(ends[::2], ends[1::2])):
        host = {"ph": "X", "pid": 77, "tid": 77, "cat": "user_annotation"}
        made.append({**host, "name": f"ProfilerStep#{number}", "ts": begin, "dur": end - begin})
    for correlation in range(1, chance.randrange(2, 60)):
        begin = chance.randrange(3000)
        if chance.random() < 0.9:
            call = {"ph": "X", "pid": 77, "tid": 78, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begin}
            made.append({**call, "dur": 1, "args": {"correlation": correlation}})
        for _ in range(chance.choice([1, 1, 1, 3])):
            start = round(begin + chance.randrange(1, 400) + chance.randrange(1000) / 1000, 3)
            device = chance.randrange(3)
            work = event(chance.choice(names), start, start, device, cat=chance.choice(kinds))
            work["dur"] = chance.choice([0, 1, chance.randrange(300), chance.randrange(300_000) / 1000])
            work["args"].update(stream=chance.randrange(4), correlation=correlation)
            work["tid"] = work["args"]["stream"]
            made.append(work)
    chance.shuffle(made)
    return made


@pytest.mark.parametrize("seed", range(30))
def test_random_traces_are_as_the_reference_has_them(marey: Any, tmp_path: Path, seed: int) -> None:
    trace = write_trace(tmp_path / "random.json", random_trace(seed))
    if not Trace(trace).work:
        return
    wanted = rows_of(trace)
    answer = answer_of(marey, trace, "--by", "step")
    compare(answer["devices"], [row for row in wanted if row["window"] != "step"])
    compare(answer["by"], [row for row in wanted if row["window"] == "step"])
