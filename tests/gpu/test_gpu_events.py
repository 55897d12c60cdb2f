"""With a real GPU: Stopwatch(gpu="events") measures GPU time without waiting.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_gpu_events.py

The work is a kernel that spins for a number of clock cycles. The same stretch is measured by torch's own events, whose
ends lie right outside of ours: both have to agree within 2 %.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from gpu_program import FAILURES, check, import_torch

CYCLES = 100_000_000  # some 50 to 100 ms


def agree(what: str, ours_ns: float, truth_ns: float) -> None:
    check(f"{what}: {ours_ns / 1e6:.3f} ms, torch says {truth_ns / 1e6:.3f} ms", abs(ours_ns / truth_ns - 1) <= 0.02)


def row(stopwatch: Any, table: str, name: str) -> dict[str, Any]:
    return dict(stopwatch.stats()[table].row(name=name))


class Truth:
    """The same stretch by torch's own events: the sum over its uses."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.pairs: list[tuple[Any, Any]] = []

    def measure(self, stopwatch: Any, name: str, work: Callable[[], object]) -> None:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        with stopwatch(name):
            work()
        end.record()
        self.pairs.append((begin, end))

    def total_ns(self) -> float:
        self.torch.cuda.synchronize()
        return sum(float(begin.elapsed_time(end)) for begin, end in self.pairs) * 1e6


def check_kernels(torch: Any, stopwatch: Any) -> None:
    """Ten kernels of several lengths on the default stream; the host is done long before the GPU."""
    truth = Truth(torch)
    for i in range(10):
        truth.measure(stopwatch, "kernel", lambda i=i: torch.cuda._sleep(CYCLES * (i % 3 + 1) // 3))
        stopwatch.finish_iter()
    pending = row(stopwatch, "gpu", "kernel")["pending"]
    host_ns = row(stopwatch, "intervals", "kernel")["total_ns"]
    total_ns = truth.total_ns()
    gpu = row(stopwatch, "gpu", "kernel")
    check(f"results were still to come when the host was done ({pending} of 10)", pending > 0)
    check(f"nobody waited: {host_ns / 1e6:.3f} ms on the host", host_ns < 0.2 * total_ns)
    check("all ten came", gpu["count"] == 10 and gpu["pending"] == 0)
    agree("kernels on the default stream", gpu["total_ns"], total_ns)


def check_streams(torch: Any, stopwatch: Any) -> None:
    """Two parallel streams: each name has the time of its stream."""
    streams = [torch.cuda.Stream() for _ in range(2)]
    truths = [Truth(torch) for _ in range(2)]
    for i in range(6):
        which = i % 2
        with torch.cuda.stream(streams[which]):
            truths[which].measure(
                stopwatch, f"stream {which}", lambda which=which: torch.cuda._sleep(CYCLES * (1 + which) // 2)
            )
    stopwatch.finish_iter()
    for i in range(2):
        total_ns = truths[i].total_ns()
        agree(f"stream {i}", row(stopwatch, "gpu", f"stream {i}")["total_ns"], total_ns)


def check_capture(torch: Any, stopwatch: Any) -> None:
    """A capture goes through with measurements in it; they are left out, and what comes later is measured."""
    total = torch.zeros(8, device="cuda")
    with stopwatch("beside"):
        torch.cuda._sleep(CYCLES)  # its result is asked for while the capture goes on
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with stopwatch("captured"):
            total += 1
        stopwatch.stats()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    check("a graph is captured with measurements in it", total.tolist() == [3.0] * 8)
    gpu = stopwatch.stats()["gpu"]
    counts = dict(zip(gpu["name"], gpu["count"]))
    check("what lay in the capture has no time on the GPU", counts.get("captured", 0) == 0)
    truth = Truth(torch)
    truth.measure(stopwatch, "replay", lambda: (graph.replay(), torch.cuda._sleep(CYCLES)))
    total_ns = truth.total_ns()
    agree("a replay", row(stopwatch, "gpu", "replay")["total_ns"], total_ns)


def check_threads(torch: Any, stopwatch: Any) -> None:
    """A thread with a stream of its own."""
    truth = Truth(torch)

    def work() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            truth.measure(stopwatch, "thread", lambda: torch.cuda._sleep(CYCLES))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    total_ns = truth.total_ns()
    agree("another thread", row(stopwatch, "gpu", "thread")["total_ns"], total_ns)


def check_devices(torch: Any, stopwatch: Any) -> None:
    for i in range(torch.cuda.device_count()):
        with torch.cuda.device(i):
            truth = Truth(torch)
            truth.measure(stopwatch, f"device {i}", lambda: torch.cuda._sleep(CYCLES))
            total_ns = truth.total_ns()
            agree(f"device {i}", row(stopwatch, "gpu", f"device {i}")["total_ns"], total_ns)


def check_error_is_left(torch: Any, stopwatch: Any) -> None:
    """Asking for results that are not there yet leaves no error for the program to find: torch looks at each launch."""
    with stopwatch("error"):
        torch.cuda._sleep(CYCLES)
    pending = row(stopwatch, "gpu", "error")["pending"]
    try:
        value = torch.ones(4, device="cuda").sum().item()
    except RuntimeError as error:
        value = repr(error)
    check(f"no error is left behind ({pending} was pending, the sum of four is {value})", value == 4 and pending == 1)


def main() -> int:
    torch = import_torch()
    import marey

    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    stopwatch = marey.Stopwatch()
    for part in (check_kernels, check_streams, check_capture, check_threads, check_devices, check_error_is_left):
        torch.cuda._sleep(1000)
        torch.cuda.synchronize()
        stopwatch.enable(gpu="events")
        part(torch, stopwatch)
        stopwatch.disable()
    print("all holds" if not FAILURES else f"{len(FAILURES)} do not hold")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
