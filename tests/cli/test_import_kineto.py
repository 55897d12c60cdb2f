"""Traces of PyTorch's profiler, compared event by event with what Python's own json makes of the same file.

Times are compared to the nanosecond: this side reads them as decimals.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from built import ROOT, Finished

TRACES = sorted((ROOT / "tests" / "data" / "kineto").glob("*.json.gz"))
WORK_KINDS = {"kernel": 1, "gpu_memcpy": 2, "gpu_memset": 3, "gpu_user_annotation": 4, "cuda_sync": 5}
LAUNCHERS = ("cuda_runtime", "cuda_driver")
Lines = dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def list_events(compiled: Callable[..., Path]) -> Callable[[Path], Lines]:
    """Return a function that gives the fields of all events of a file, by what they are."""
    unit = ROOT / "tests" / "unit"
    program = compiled("list_events.c", str(unit / "event_list.c"), f"-I{unit}", "-lmarey-tools")

    def run(path: Path) -> Lines:
        lines: Lines = {}
        output = subprocess.run([program, path], capture_output=True, text=True, check=True, timeout=60).stdout
        for line in output.splitlines():
            what, *fields = line.split("\t")
            lines.setdefault(what, []).append(fields)
        return lines

    return run


@pytest.fixture(params=TRACES, ids=lambda path: path.name.partition(".")[0])
def trace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One of the public traces, uncompressed."""
    path = tmp_path / request.param.stem
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    return path


def read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes(), parse_float=Decimal)


def nanoseconds(microseconds: Decimal | int) -> int:
    return int((Decimal(microseconds) * 1000).quantize(Decimal(1), ROUND_HALF_UP))


class Expected:
    """The expected events of a file."""

    def __init__(self, trace: dict[str, Any]) -> None:
        self.base = trace.get("baseTimeNanoseconds", 0)
        self.events = trace["traceEvents"]

    def chosen(self, *phases: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["ph"] in phases]

    def interval(self, event: dict[str, Any]) -> tuple[int, int]:
        begin = self.base + nanoseconds(event["ts"])
        return begin, begin + nanoseconds(event["dur"])

    def work(self) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for event in self.chosen("X"):
            if event["cat"] in WORK_KINDS:
                args = event.get("args", {})
                place = args.get("device", event["pid"]), args.get("stream", event["tid"])
                details = WORK_KINDS[event["cat"]], args.get("correlation", 0), args.get("bytes", 0)
                found[(*place, *self.interval(event), event["name"], event["cat"], *details)] += 1
        return found

    def ranges(self) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for event in self.chosen("X"):
            if event["cat"] not in WORK_KINDS and event["cat"] != "Trace":
                launch = event["args"].get("correlation", 0) if event["cat"] in LAUNCHERS else 0
                found[(event["tid"], *self.interval(event), event["name"], event["cat"], launch)] += 1
        return found

    def steps(self) -> set[tuple[int, int, int]]:
        named = [event for event in self.chosen("X") if event["name"].startswith("ProfilerStep#")]
        on_host = [event for event in named if event["cat"] not in WORK_KINDS]
        return {(*self.interval(event), int(event["name"].partition("#")[2])) for event in on_host}

    def flows(self) -> Counter[tuple[Any, ...]]:
        kept = [event for event in self.chosen("s", "t", "f") if event["cat"] != "ac2g"]
        return Counter(
            (event["tid"], self.base + nanoseconds(event["ts"]), event["name"], event["id"], "stf".index(event["ph"]))
            for event in kept
        )

    def marks(self) -> Counter[tuple[int, str]]:
        spans = [event for event in self.chosen("X") if event["cat"] == "Trace"]
        marks = self.chosen("i") + spans
        return Counter((self.base + nanoseconds(event["ts"]), event["name"]) for event in marks)


def launch_of(details: str) -> int:
    return next((int(word[7:]) for word in details.split() if word.startswith("launch=")), 0)


def test_every_event_is_there_to_the_nanosecond(trace: Path, list_events: Callable[[Path], Lines]) -> None:
    expected, lines = Expected(read_json(trace)), list_events(trace)
    work = Counter(
        (int(device), int(stream), int(begin), int(end), name, category, int(kind), int(correlation), int(size))
        for _pid, device, stream, begin, end, name, category, kind, correlation, size, _more in lines.get("work", [])
    )
    assert work == expected.work()
    ranges = Counter(
        (int(tid), int(begin), int(end), name, category, launch_of(details))
        for _pid, tid, begin, end, name, category, _place, details in lines.get("range", [])
    )
    assert ranges == expected.ranges()
    assert sum(ranges.values()) > 5
    begins = {int(number): int(ns) for _pid, _tid, ns, number in lines.get("iteration_begin", [])}
    ends = {(begins[int(number)], int(ns), int(number)) for _pid, _tid, ns, number in lines.get("iteration_end", [])}
    assert ends == expected.steps()
    flows = Counter(
        (int(tid), int(ns), name, int(number), int(end))
        for _pid, tid, ns, name, _category, number, end in lines.get("flow", [])
    )
    assert flows == expected.flows()
    assert Counter((int(ns), name) for _pid, _tid, ns, name, _cat in lines.get("mark", [])) == expected.marks()


def test_who_it_was_is_reported(trace: Path, list_events: Callable[[Path], Lines]) -> None:
    content, lines = read_json(trace), list_events(trace)
    info = content.get("distributedInfo", {})
    ((_pid, rank, world_size, _command, _host, backend, gpu, source),) = lines["process"]
    assert (int(rank), int(world_size)) == (info.get("rank", -1), info.get("world_size", -1))
    assert (backend, source) == (info.get("backend", ""), "kineto")
    devices = {int(device) for _pid, device, *_ in lines.get("stream", [])}
    names = [each["name"] for each in content.get("deviceProperties", []) if each["id"] in devices]
    assert gpu == ", ".join(dict.fromkeys(names))
    labels = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in content["traceEvents"]
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    for _pid, device, stream, name in lines.get("stream", []):
        if int(stream) >= 0:
            assert name == labels.get((int(device), int(stream)), "")


def test_a_file_packed_is_the_same(trace: Path, list_events: Callable[[Path], Lines]) -> None:
    packed = ROOT / "tests" / "data" / "kineto" / f"{trace.name}.gz"
    from_plain, from_packed = list_events(trace), list_events(packed)
    for lines in (from_plain, from_packed):
        lines["process"][0][3] = lines["process"][0][3].replace(packed.name, trace.name)
    assert from_plain == from_packed


# ---- the command ----


def test_ten_devices_and_many_events(marey: Callable[..., Finished], tmp_path: Path) -> None:
    events = [
        f'{{"ph": "X", "cat": "kernel", "name": "k{i % 100}", "pid": {i % 10}, "tid": 7, "ts": {i}.5, "dur": 0.25}}'
        for i in range(50000)
    ]
    (tmp_path / "ten.json").write_text('{"traceEvents": [' + ",\n".join(events) + "]}")
    done = marey("import", "ten.json", "-o", "ten.marey")
    assert done.returncode == 0, done.stderr
    assert "imported 50,000 events of 1 file (kineto" in done.stderr
    done = marey("breakdown", "ten.json", "--json")
    devices = json.loads(done.stdout)["devices"]
    assert sorted(each["device"] for each in devices if each["window"] == "gpu_span") == list(range(10))
    assert {each["sum_of_durations"] for each in devices if each["window"] == "gpu_span"} == {5000 * 250}


BAD = {
    "empty": (b"", "is empty"),
    "no_list": (b'{"schemaVersion": 1}', "has no list of events"),
    "no_events": (b'{"traceEvents": []}', "has no events"),
    "cut": (b'{"traceEvents": [{"ph": "X", "na', "is cut off"),
    "damaged": (b'{"traceEvents": [{"ph" "X"}]}', "is damaged: a key without a colon, at byte 23"),
    "deep": (b'{"traceEvents": [' + b"[" * 5000, "is cut off"),
    "nan": (b'{"traceEvents": [{"ph": "X", "ts": NaN, "dur": NaN}]}', "has no events"),
    "wrong_type": (b'{"traceEvents": {"ph": "X"}}', "has no list of events"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_without_an_answer_is_status_2(
    name: str, packed: bool, marey: Callable[..., Finished], tmp_path: Path
) -> None:
    content, sentence = BAD[name]
    path = tmp_path / (f"{name}.json" + ".gz" * packed)
    path.write_bytes(gzip.compress(content) if packed else content)
    done = marey("import", path.name, "-o", "out.marey")
    assert done.returncode == 2
    assert done.stderr.startswith("marey: ") and done.stderr.count("\n") == 1
    assert sentence in done.stderr
    assert not (tmp_path / "out.marey").exists()


@pytest.mark.parametrize("n_bytes", [100, 1000, 60000])
def test_what_a_cut_file_has_is_reported(n_bytes: int, marey: Callable[..., Finished], tmp_path: Path) -> None:
    whole = next(path for path in TRACES if "sampled_rank-0" in path.name).read_bytes()
    (tmp_path / "cut.json.gz").write_bytes(whole[:n_bytes])
    done = marey("report", "cut.json.gz")
    assert "its gzip data ends after" in done.stdout + done.stderr
    assert done.returncode == 2 if n_bytes == 100 else "ProfilerStep" in done.stdout or "aten::" in done.stdout
