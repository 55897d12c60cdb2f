"""Chrome JSON traces with a layout known to the nanosecond; marey reads them like recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOSTILE = "</script><img src=x onerror=alert(1)>"
STEPS = 10


def whole(name: str, begin_us: float, length_us: float, tid: int = 1, pid: int = 1, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": begin_us, "dur": length_us, "pid": pid, "tid": tid, **more}


def begin(name: str, begin_us: float, tid: int = 1) -> dict[str, Any]:
    return {"ph": "B", "name": name, "ts": begin_us, "pid": 1, "tid": tid}


def write(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def known_steps() -> list[tuple[str, float, float]]:
    """Ranges of the thread main, outermost ones: name, begin and end in microseconds."""
    steps = [("step", 100.0 * i, 100.0 * i + 90) for i in range(STEPS)]
    return [*steps, (HOSTILE, 1000.0, 1100.0)]


def known(path: Path) -> Path:
    """Ten steps of two parts on one thread, a loader on another, a counter, a mark."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "trainer"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "loader"}},
    ]
    events += [whole(name, start, end - start, cat="train") for name, start, end in known_steps()]
    for i in range(STEPS):
        events.append(whole("forward", 100 * i + 10, 30))
        events.append(whole("backward", 100 * i + 40, 40))
        events.append({"ph": "C", "name": "loss", "ts": 100 * i, "pid": 1, "args": {"value": 10 - i}})
    events += [whole("load", 200 * i, 50, tid=2) for i in range(5)]
    events.append({"ph": "i", "name": "checkpoint", "ts": 500, "pid": 1, "tid": 1, "s": "t"})
    return write(path, events)


def waits_in_no_range(path: Path) -> Path:
    """A GPU that waits for the host most of the time; no range is around the launches."""
    events = []
    for i in range(20):
        args = {"correlation": i + 1, "device": 0, "stream": 7}
        events.append(whole("cudaLaunchKernel", 500 * i, 3, cat="cuda_runtime", args=args))
        events.append(whole("gemm", 500 * i + 5, 300, tid=7, pid=0, cat="kernel", args=args))
    return write(path, events)
