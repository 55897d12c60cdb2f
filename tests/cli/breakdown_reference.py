"""A slow, simple breakdown of a Kineto trace: an independent implementation to compare `marey breakdown` with.

It shares no code with marey: json and Decimal read the file, and every number is computed from each interval between
two neighboring ends of events, with all events that cover it. As a program, it prints its results:

    python tests/cli/breakdown_reference.py TRACE.json.gz
"""

from __future__ import annotations

import gzip
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, Optional

COPIES = {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
OLD_ROCM_COPIES = ("__amd_rocclr_copybuffer", "memory_copy_", "__amd_rocclr_fillbuffer")
LIBRARIES = ("nccl", "rccl", "hccl", "nvshmem", "msccl", "oneccl")
RUNTIMES = {"cuda_runtime", "cuda_driver", "runtime"}
ON_THE_HOST = {"cpu_op", "user_annotation", "python_function", "overhead", *RUNTIMES}

C, N, M = 1, 2, 4
ATOMS = ["none", "c", "n", "cn", "m", "cm", "nm", "cnm"]


class Work(NamedTuple):
    """Something a device did: [begin, end) in nanoseconds."""

    begin: int
    end: int
    kind: int
    device: int
    stream: int
    correlation: Optional[int]


class Window(NamedTuple):
    begin: int
    end: int


def load(path: Path) -> tuple[Any, list[dict[str, Any]]]:
    """The file and its events."""
    packed = path.read_bytes()
    text = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    # Digits stay digits: a double cannot hold a nanosecond of today.
    whole = json.loads(text, parse_float=Decimal)
    return whole, whole["traceEvents"] if isinstance(whole, dict) else whole


class Trace:
    """What of a file matters here."""

    def __init__(self, path: Path) -> None:
        whole, events = load(path)
        slices = [event for event in events if event.get("ph") == "X" and "dur" in event]
        self.rank: Optional[int] = (whole.get("distributedInfo") or {}).get("rank") if isinstance(whole, dict) else None
        self.work = [work for event in slices if (work := as_work(event)) is not None and work.begin < work.end]
        self.devices = sorted({work.device for work in self.work})
        self.steps = sorted(
            (Window(*span(event)), int(event["name"].partition("#")[2]))
            for event in slices
            if event["name"].startswith("ProfilerStep#") and category(event) != "gpu_user_annotation"
        )
        self.launches = {
            event["args"]["correlation"]: span(event)[0]
            for event in slices
            if category(event) in RUNTIMES and "correlation" in event.get("args", {})
        }
        self.host = [event for event in slices if category(event) in ON_THE_HOST]
        self.moments = [nanoseconds(event["ts"]) for event in events if "ts" in event and event["ph"] != "M"]
        self.moments += [span(event)[1] for event in self.host]


def nanoseconds(microseconds: Any) -> int:
    exact = Decimal(microseconds) * 1000
    return int(exact.to_integral_value())


def span(event: dict[str, Any]) -> tuple[int, int]:
    begin = nanoseconds(event["ts"])
    return begin, begin + nanoseconds(event["dur"])


def category(event: dict[str, Any]) -> str:
    return str(event.get("cat", "")).lower()


def as_work(event: dict[str, Any]) -> Optional[Work]:
    name, kind = event["name"].lower(), category(event)
    if kind != "kernel" and kind not in COPIES:
        return None
    arguments = event.get("args", {})
    if kind in COPIES or name.startswith(OLD_ROCM_COPIES):
        classified = M
    elif any(library in name for library in LIBRARIES) or "Collective name" in arguments:
        classified = N
    else:
        classified = C
    begin, end = span(event)
    return Work(begin, end, classified, arguments["device"], arguments["stream"], arguments.get("correlation"))


def break_down(work: list[Work], windows: list[Window]) -> dict[str, Any]:
    """All numbers of a row, from the events and the windows."""
    atoms = [0] * 8
    durations = 0
    marks = sorted({*(t for w in work for t in w[:2]), *(t for w in windows for t in w)})
    for begin, end in zip(marks, marks[1:]):
        if not any(w.begin <= begin < w.end for w in windows):
            continue
        running = [w.kind for w in work if w.begin <= begin < w.end]
        durations += len(running) * (end - begin)
        atoms[(C in running) * C + (N in running) * N + (M in running) * M] += end - begin
    compute = sum(atoms[i] for i in range(8) if i & C)
    comm = sum(atoms[i] for i in range(8) if i & N)
    busy = sum(atoms[1:])
    return {
        "span": sum(atoms),
        "compute": compute,
        "comm_total": comm,
        "exposed_comm": atoms[N] + atoms[N | M],
        "hidden_comm": atoms[C | N] + atoms[C | N | M],
        "mem_total": sum(atoms[i] for i in range(8) if i & M),
        "exposed_mem": atoms[M],
        "idle": atoms[0],
        "busy": busy,
        "sum_of_durations": durations,
        "concurrency": durations / busy if busy else None,
        "overlap_ratio": (atoms[C | N] + atoms[C | N | M]) / comm if comm else None,
        "atoms": dict(zip(ATOMS, atoms)),
    }


def step_of(trace: Trace, work: Work) -> Optional[int]:
    """The step of an activity: the one in which it was launched."""
    launched = trace.launches.get(work.correlation, work.begin)
    return next((i for i, (step, _) in enumerate(trace.steps) if step.begin <= launched < step.end), None)


def gpu_rows(trace: Trace) -> list[dict[str, Any]]:
    """A row for each device and window, and one for each step of each device."""
    rows = []
    for device in trace.devices:
        work = [w for w in trace.work if w.device == device]
        whole = Window(min(w.begin for w in work), max(w.end for w in work))
        rows.append({"device": device, "window": "gpu_span", **break_down(work, [whole])})
        windows = []
        steps = []
        for i, (step, number) in enumerate(trace.steps):
            own = [w for w in work if step_of(trace, w) == i]
            windows.append(Window(step.begin, max([step.end, *(w.end for w in own)])))
            steps.append({"device": device, "window": "step", "step": number, **break_down(own, [windows[-1]])})
        if windows:
            rows.append({"device": device, "window": "steps", **break_down(work, windows)})
        rows += steps
    return rows


def without(interval: tuple[int, int], holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The rest of an interval."""
    parts = []
    begin, end = interval
    for hole_begin, hole_end in sorted(holes):
        if hole_end <= begin or hole_begin >= end:
            continue
        if hole_begin > begin:
            parts.append((begin, hole_begin))
        begin = max(begin, hole_end)
    return [*parts, (begin, end)] if begin < end else parts


def host_rows(trace: Trace) -> list[dict[str, Any]]:
    """A process without device activity: its main thread computes while it is in anything except annotations.

    Its calls of c10d are communication, not computation of the enclosing operator.
    """
    communicates = [event for event in trace.host if event["name"].startswith(("gloo:", "c10d::"))]
    main = [event for event in trace.host if event["tid"] == event["pid"]]
    blocked = [span(event) for event in communicates if event["tid"] == event["pid"]]
    computes = [span(event) for event in main if category(event) != "user_annotation"]
    work = [Work(*part, C, -1, 0, None) for each in computes for part in without(each, blocked)]
    work += [Work(*span(event), N, -1, 0, None) for event in communicates]
    rows = [
        {"device": -1, "window": "process_span", **break_down(work, [Window(min(trace.moments), max(trace.moments))])}
    ]
    if trace.steps:
        rows.append({"device": -1, "window": "steps", **break_down(work, [step for step, _ in trace.steps])})
    # Ranges of one thread are nested: their union counts once.
    for row in rows:
        del row["sum_of_durations"], row["concurrency"]
    return rows


def rows_of(path: Path) -> list[dict[str, Any]]:
    trace = Trace(path)
    return [{"rank": trace.rank, **row} for row in (gpu_rows(trace) if trace.work else host_rows(trace))]


if __name__ == "__main__":
    for path in sys.argv[1:]:
        for row in rows_of(Path(path)):
            print(json.dumps(row))
