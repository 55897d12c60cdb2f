#!/usr/bin/env python3
"""What tracing a GPU adds to a step that is bound by launches, beside bare CUPTI and torch.profiler.

    bench_gpu.py [--quick] [--dir DIR] [--results FILE]

Needs torch and a GPU; without them it says so and ends with 77. A step is the training step of a small network, some
430 kernels of a few microseconds each. Every round times it plain, traced by kymo, after that, under two controls of
bare CUPTI whose records are thrown away (cupti_control.c: the GPU's work alone, and with the runtime's calls), and
plain again. What is added is the difference to the plain time of the same round. torch.profiler comes last, with plain
rounds between: once it has run, it keeps CUPTI.
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

from bench_results import Results, median_with_interval, options_of

import kymo

HERE = Path(__file__).parent


class GpuOptions(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("wait", "warmup", "active", "repeat")]


def build_control(folder: Path) -> ctypes.CDLL:
    library = folder / "cupti_control.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", f"-I{HERE.parent / 'core'}", HERE / "cupti_control.c", "-o", library],
        check=True,
    )
    return ctypes.CDLL(str(library))


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


class Bench:
    """The step, and what it takes under each of the tools."""

    def __init__(self, torch: Any, control: ctypes.CDLL, n_steps: int) -> None:
        self.torch, self.control, self.n_steps = torch, control, n_steps
        self.step = make_step(torch)
        self.library = ctypes.CDLL(os.path.join(kymo.get_library_dir(), "libkymo.so.0"))

    def milliseconds(self) -> float:
        """Return the median over the steps, each waited for: a hiccup of the machine counts as one step."""
        times = []
        for _ in range(self.n_steps + 2):
            begin = time.perf_counter()
            self.step()
            self.torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        return statistics.median(times[2:]) * 1e3

    def traced(self) -> float:
        if self.library.kymo_gpu_start_sized(ctypes.byref(GpuOptions()), ctypes.sizeof(GpuOptions)) != 0:
            raise RuntimeError("kymo cannot trace")
        took = self.milliseconds()
        self.library.kymo_gpu_stop()
        return took

    def controlled(self, calls: bool) -> float:
        if self.control.control_start(calls) != 0:
            raise RuntimeError("bare CUPTI cannot trace")
        took = self.milliseconds()
        self.control.control_stop()
        return took

    def profiled(self) -> float:
        with self.torch.profiler.profile(activities=[self.torch.profiler.ProfilerActivity.CUDA]):
            return self.milliseconds()


def measure(bench: Bench, n_rounds: int) -> dict[str, list[float]]:
    added: dict[str, list[float]] = {name: [] for name in ("plain", "kymo", "after", "bare", "bare calls", "torch")}
    for _ in range(n_rounds):
        plain = bench.milliseconds()
        kymo_ms, after = bench.traced(), bench.milliseconds()
        bare, calls = bench.controlled(False), bench.controlled(True)
        plain = (plain + bench.milliseconds()) / 2
        added["plain"].append(plain)
        for name, took in (("kymo", kymo_ms), ("after", after), ("bare", bare), ("bare calls", calls)):
            added[name].append(took - plain)
    for _ in range(n_rounds):
        plain, profiled = bench.milliseconds(), bench.profiled()
        added["torch"].append(profiled - (plain + bench.milliseconds()) / 2)
    return added


def tell(results: Results, added: dict[str, list[float]]) -> None:
    plain = statistics.median(added["plain"])
    mid = {name: statistics.median(values) for name, values in added.items()}
    for name, words in (
        ("bare", "bare CUPTI, the GPU's work"),
        ("bare calls", "bare CUPTI, with calls"),
        ("torch", "torch.profiler, CUDA only"),
    ):
        low, middle, high = median_with_interval(added[name])
        results.put(f"GPU step, added by {words}", f"{middle:.2f} ms ({low:.2f} to {high:.2f}) to {plain:.2f} ms")
    low, middle, high = median_with_interval(added["kymo"])
    results.put(
        "GPU step, added by kymo",
        f"{middle:.2f} ms ({low:.2f} to {high:.2f}); {middle / mid['torch']:.2f} x torch.profiler's",
        "<= 0.85 x",
        middle <= 0.85 * mid["torch"],
    )
    above = middle / mid["bare calls"] - 1
    results.put("GPU step, kymo above bare CUPTI with calls", f"{100 * above:+.0f} %", "<= +10 %", above <= 0.1)
    above = middle / mid["bare"] - 1
    results.put("GPU step, kymo above bare CUPTI without calls", f"{100 * above:+.0f} %")
    low, middle, high = (100 * value / plain for value in median_with_interval(added["after"]))
    results.put("GPU step, left after stop", f"{middle:+.2f} % ({low:+.2f} to {high:+.2f})", "<= 0.5 %", middle <= 0.5)


def main() -> int:
    arguments = options_of(__doc__, None).parse_args()
    try:
        import torch
    except ImportError:
        print("not here: torch is not installed")
        return 77
    if not torch.cuda.is_available() or shutil.which(os.environ.get("CC", "cc")) is None:
        print("not here: torch sees no GPU, or there is no C compiler")
        return 77
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        kymo.start(f"{name}/bench.kymo")
        bench = Bench(torch, build_control(Path(name)), 10 if arguments.quick else 20)
        for _ in range(5):
            bench.milliseconds()
        tell(Results(arguments.results), measure(bench, 5 if arguments.quick else 25))
        kymo.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
