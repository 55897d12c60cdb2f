#!/usr/bin/env python3
"""Overhead of GPU tracing for a launch-bound step, compared with bare CUPTI and torch.profiler.

    bench_gpu.py [--quick] [--dir DIR] [--results FILE]

Needs torch and a GPU; without them it prints a message and exits with 77. A step is the training step of a small
network, about 430 kernels of a few microseconds each. Each tool has a separate process, because a tool may slow down a
program after it stopped: one that is never traced, one for marey, two for bare CUPTI with discarded records
(cupti_control.c: only GPU activity, and with runtime calls), one for torch.profiler. They alternate after each
measurement, so that all see the same state of the machine. The overhead of a tool is the difference of its step to that
of the untraced process, normalized by their ratio before any tool was on.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

from bench_results import Interval, Results, median_with_interval, options_of

import marey

HERE = Path(__file__).parent
TOOLS = ("none", "marey", "bare", "bare calls", "torch")


class GpuOptions(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("wait", "warmup", "active", "repeat")]


# ---- the process of a tool ----


def make_step(torch: Any) -> Callable[[], None]:
    nn = torch.nn
    layers = [nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(24)]
    network = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, foreach=False)
    x = torch.randn(32, 64, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        network(x).square().mean().backward()
        optimizer.step()

    return step


def milliseconds(torch: Any, step: Callable[[], None], n_steps: int) -> float:
    """Return the median over steps with a synchronization each, so that a disturbance affects one step only."""
    times = []
    for _ in range(n_steps + 2):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:]) * 1e3


def by_marey(measure: Callable[[], float]) -> float:
    library = ctypes.CDLL(os.path.join(marey.get_library_dir(), "libmarey.so.0"))
    if library.marey_gpu_start_sized(ctypes.byref(GpuOptions()), ctypes.sizeof(GpuOptions)) != 0:
        raise RuntimeError("marey cannot trace")
    took = measure()
    library.marey_gpu_stop()
    return took


def by_bare_cupti(measure: Callable[[], float], folder: str, with_calls: bool) -> float:
    control = ctypes.CDLL(f"{folder}/cupti_control.so")
    if control.control_start(with_calls) != 0:
        raise RuntimeError("bare CUPTI cannot trace")
    took = measure()
    control.control_stop()
    return took


def by_torch(torch: Any, measure: Callable[[], float]) -> float:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        return measure()


def serve(tool: str, folder: str, n_steps: int) -> None:
    """Respond to each line on stdin, "off" or "on", with the milliseconds of a step."""
    import torch

    step = make_step(torch)

    def measure() -> float:
        return milliseconds(torch, step, n_steps)

    if tool == "marey":
        marey.start(f"{folder}/bench.marey")
    for _ in range(3):
        measure()
    for line in sys.stdin:
        if line.strip() == "off":
            took = measure()
        elif tool == "marey":
            took = by_marey(measure)
        elif tool == "torch":
            took = by_torch(torch, measure)
        else:
            took = by_bare_cupti(measure, folder, tool == "bare calls")
        print(took, flush=True)
    marey.stop()


# ---- the controlling process ----


class Server:
    """A process that measures with one tool."""

    def __init__(self, tool: str, folder: str, n_steps: int) -> None:
        command = [sys.executable, "-W", "ignore", __file__, "--serve", tool, folder, str(n_steps)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, word: str) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(word, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def measure_all(servers: dict[str, Server], n_rounds: int) -> dict[str, list[float]]:
    """Overhead of each tool, and remaining overhead after marey has stopped, in milliseconds by rounds."""
    before: dict[str, list[float]] = {tool: [] for tool in TOOLS}
    for _ in range(n_rounds):
        for tool in TOOLS:
            before[tool].append(servers[tool].ask("off"))
    by = {t: statistics.median(a / b for a, b in zip(before[t], before["none"])) for t in TOOLS}
    added: dict[str, list[float]] = {name: [] for name in (*TOOLS, "after", "torch after")}
    for _ in range(n_rounds):
        plain = servers["none"].ask("off")
        took = {tool: servers[tool].ask("on") for tool in TOOLS[1:]}
        after = {tool: servers[tool].ask("off") for tool in ("marey", "torch")}
        plain = (plain + servers["none"].ask("off")) / 2
        added["none"].append(plain)
        for tool in TOOLS[1:]:
            added[tool].append(took[tool] / by[tool] - plain)
        added["after"].append(after["marey"] / by["marey"] - plain)
        added["torch after"].append(after["torch"] / by["torch"] - plain)
    return added


def words(interval: Interval) -> str:
    low, middle, high = interval
    return f"{middle:.2f} ms ({low:.2f} to {high:.2f})"


def tell(results: Results, added: dict[str, list[float]]) -> None:
    plain = statistics.median(added["none"])
    intervals = {name: median_with_interval(values) for name, values in added.items()}
    mid = {name: interval[1] for name, interval in intervals.items()}
    for name, what in (
        ("bare", "bare CUPTI, the GPU's work"),
        ("bare calls", "bare CUPTI, with calls"),
        ("torch", "torch.profiler, CUDA only"),
    ):
        results.put(f"GPU step, added by {what}", f"{words(intervals[name])} to {plain:.2f} ms")
    results.put(
        "GPU step, added by marey",
        f"{words(intervals['marey'])}; {mid['marey'] / mid['torch']:.2f} x torch.profiler's",
        "<= 0.85 x",
        mid["marey"] <= 0.85 * mid["torch"],
    )
    above = mid["marey"] / mid["bare calls"] - 1
    results.put("GPU step, marey above bare CUPTI with calls", f"{100 * above:+.0f} %", "<= +10 %", above <= 0.1)
    above = mid["marey"] / mid["bare"] - 1
    results.put("GPU step, marey above bare CUPTI without calls", f"{100 * above:+.0f} %")
    low, middle, high = (100 * value / plain for value in intervals["after"])
    results.put("GPU step, left after marey", f"{middle:+.2f} % ({low:+.2f} to {high:+.2f})", "<= 0.5 %", middle <= 0.5)
    low, middle, high = (100 * value / plain for value in intervals["torch after"])
    results.put("GPU step, left after torch.profiler", f"{middle:+.2f} % ({low:+.2f} to {high:+.2f})")


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return 0
    arguments = options_of(__doc__, None).parse_args()
    try:
        import torch
    except ImportError:
        print("not here: torch is not installed")
        return 77
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not torch.cuda.is_available() or compiler is None:
        print("not here: torch sees no GPU, or there is no C compiler")
        return 77
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        folders = [f"-I{HERE.parent / name}" for name in ("core", "include")]
        control = [compiler, "-O2", "-shared", "-fPIC", *folders, str(HERE / "cupti_control.c")]
        subprocess.run([*control, "-o", f"{folder}/cupti_control.so"], check=True)
        servers = {tool: Server(tool, folder, 10 if arguments.quick else 20) for tool in TOOLS}
        tell(Results(arguments.results), measure_all(servers, 5 if arguments.quick else 30))
        for server in servers.values():
            server.process.communicate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
