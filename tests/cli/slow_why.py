"""Why devices were idle, what ranks waited for and itwinai's fractions, counted slowly from a Kineto trace.

An independent reading of the definitions in docs/internals/breakdown.md, for the tests: plain loops over the JSON,
nothing shared with marey's own code. Times are whole nanoseconds.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, Optional

LATENCY, KERNEL_GAP = 20_000, 10_000

# The names that the public traces have; the rules themselves are tested one by one elsewhere.
REASONS = [
    ("synchronise", r"cuda\w*Synchronize|hip\w*Synchronize|hipMemcpyWithStream"),
    ("allocation", r"cudaMalloc|cudaFree|hip\w*Malloc|hipFree"),
    ("data_loading", r"(?i)dataloader|^data"),
    ("optimizer", r"(?i)optimizer"),
    ("synchronise", r"aten::item|aten::_local_scalar_dense|aten::is_nonzero"),
]
RUNTIME = ("cuda_runtime", "cuda_driver")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
HOST = ("cpu_op", "user_annotation", *RUNTIME)


class Event(NamedTuple):
    begin: int
    end: int
    name: str
    category: str
    where: Any  # (device, stream) of work, else the thread
    correlation: Optional[int]


class Trace:
    def __init__(self, path: Path) -> None:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        raw = json.loads(text, parse_float=Decimal)
        self.rank = raw.get("distributedInfo", {}).get("rank")
        self.world_size = raw.get("distributedInfo", {}).get("world_size", 1)
        base = raw.get("baseTimeNanoseconds", 0)
        self.work: list[Event] = []
        self.host: list[Event] = []
        self.annotations: list[Event] = []
        for event in raw["traceEvents"]:
            if event.get("ph") != "X" or "cat" not in event:
                continue
            begin, length = base + int(event["ts"] * 1000), int(event.get("dur", 0) * 1000)
            arguments = event.get("args", {})
            where = (arguments["device"], arguments["stream"]) if event["cat"] in DEVICE else event["tid"]
            made = Event(begin, begin + length, event["name"], event["cat"], where, arguments.get("correlation"))
            if event["cat"] in DEVICE:
                self.work.append(made)
            elif event["cat"] in HOST:
                self.host.append(made)
            elif event["cat"] == "gpu_user_annotation":
                self.annotations.append(made)
        self.work.sort(key=lambda work: work.begin)
        self.launches = {call.correlation: call for call in self.host if call.category in RUNTIME and call.correlation}
        self.threads: dict[Any, list[Event]] = defaultdict(list)
        for call in sorted(self.host, key=lambda call: (call.begin, -call.end)):
            self.threads[call.where].append(call)

    def launch(self, work: Optional[Event]) -> Optional[Event]:
        return self.launches.get(work.correlation) if work else None

    def open_at(self, thread: Any, moment: int) -> list[Event]:
        """The ranges of a thread that are open, outermost first."""
        return [call for call in self.threads[thread] if call.begin <= moment < call.end]

    def operator(self, stack: list[Event]) -> Optional[str]:
        for call in reversed(stack):
            if call.category not in RUNTIME:
                return None if call.name.startswith("ProfilerStep") else call.name
        return None


def explain(stack: list[Event]) -> str:
    for reason, pattern in REASONS:
        if any(re.search(pattern, call.name) for call in stack):
            return reason
    return "host_bound"


def host_times(trace: Trace, begin: int, end: int, threads: list[Any]) -> dict[tuple[str, Optional[str]], int]:
    """The activity of the first thread with an open range, at each time."""
    times: dict[tuple[str, Optional[str]], int] = defaultdict(int)
    edges = {begin, end}
    for thread in threads:
        for call in trace.threads[thread]:
            edges |= {edge for edge in (call.begin, call.end) if begin < edge < end}
    ordered = sorted(edges)
    for low, high in zip(ordered, ordered[1:]):
        stack = next((stack for stack in (trace.open_at(thread, low) for thread in threads) if stack), [])
        operators = [call.name for call in stack if call.category not in RUNTIME and "ProfilerStep" not in call.name]
        times[explain(stack), operators[-1] if operators else None] += high - low
    return times


def why_idle(trace: Trace, device: int) -> dict[tuple[str, Optional[str]], int]:
    """Idle time by reason and operator, from the first work of the device to its last."""
    times: dict[tuple[str, Optional[str]], int] = defaultdict(int)
    work = [each for each in trace.work if each.where[0] == device and each.end > each.begin]
    busy_until, last = work[0].begin, work[0]
    for each in work:
        if each.begin > busy_until:
            begins = [other for other in work if other.begin == each.begin]
            launched = [other for other in begins if trace.launch(other)]
            following = min(launched, key=lambda other: trace.launch(other).begin) if launched else each
            add_gap(trace, times, busy_until, each.begin, last, following)
        if each.end > busy_until:
            last, busy_until = each, each.end
    return times


def add_gap(trace: Trace, times: Any, begin: int, end: int, last: Event, following: Event) -> None:
    launch, before = trace.launch(following), trace.launch(last)
    if launch is None:
        times["unknown", None] += end - begin
        return
    split = min(max(launch.begin, begin), end)
    threads = [launch.where] + ([before.where] if before and before.where != launch.where else [])
    for key, length in host_times(trace, begin, split, threads).items():
        times[key] += length
    if split == end:
        return
    name = trace.operator([call for call in trace.open_at(launch.where, launch.begin) if call != launch])
    soon = min(end, max(split, launch.begin + LATENCY))
    called = min(end, max(soon, launch.end))
    rest = "queued" if end - called > KERNEL_GAP else "kernel_gap" if launch.begin <= begin else "launch_latency"
    for reason, low, high in (("launch_latency", split, soon), ("launch_call", soon, called), (rest, called, end)):
        if high > low:
            times[reason, name] += high - low


class Wait(NamedTuple):
    count: int
    transfer: int
    waits: list[int]
    skew: float
    apart: int


def collectives(traces: list[Trace], pattern: str) -> Wait:
    """The i-th kernels of that name of all ranks are one collective."""
    ranks = [[work for work in trace.work if re.search(pattern, work.name)] for trace in traces]
    rounds = list(zip(*ranks))
    transfers = [min(work.end - work.begin for work in one) for one in rounds]
    waits = [sum(one[r].end - one[r].begin - t for one, t in zip(rounds, transfers)) for r in range(len(traces))]
    skews = [max(work.begin for work in one) - min(work.begin for work in one) for one in rounds]
    apart = sum(max(work.begin for work in one) >= min(work.end for work in one) for one in rounds)
    return Wait(len(rounds), sum(transfers), waits, sum(skews) / len(skews), apart)


def averages(trace: Trace) -> dict[tuple[str, str], list[int]]:
    """Rows as torch's key_averages() has them: (name, of) to [calls, self ns, total ns]."""
    rows: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(name: str, of: str, calls: int, own: int, total: int) -> None:
        row = rows["ProfilerStep*" if name.startswith("ProfilerStep#") else name, of]
        for i, value in enumerate((calls, own, total)):
            row[i] += value

    for call in trace.host:
        add(call.name, "host", 1, 0, 0)
    for work in trace.annotations:
        add(work.name, "annotation", 1, work.end - work.begin, work.end - work.begin)
    for work in trace.work:
        length, launch = work.end - work.begin, trace.launch(work)
        add(work.name, "device", 1, length, length)
        stack = trace.open_at(launch.where, launch.begin) if launch else []
        around = [call for call in stack if call.category not in RUNTIME]
        for call in around:
            add(call.name, "host", 0, length if call is around[-1] else 0, length)
    return rows


def fraction(rows: list[tuple[str, float]]) -> tuple[float, float]:
    """Both fractions of itwinai over (name, self time in us)."""
    computation = sum(us for name, us in rows if re.search(r"aten::|\sat::|c10::|autograd::", name))
    collective = r"nccl:(all_reduce|broadcast|reduce|all_gather|gather|reduce_scatter)|cudaStreamWaitEvent"
    communication = sum(us for name, us in rows if re.search(collective + "|cudaStreamSynchronize", name))
    profiler = sum(us for name, us in rows if name == "ProfilerStep*")
    whole = sum(us for _, us in rows) - profiler
    return computation / (whole + 1e-10), computation / (computation + communication + 1e-10)
