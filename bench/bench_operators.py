"""Overhead of recording per PyTorch operator: marey's callback and torch.profiler, on the CPU, with one thread.

    bench/run operators

A step of small operators, bare and recorded, alternating; the minimum of many rounds counts. torch.profiler is measured
while recording and including its stop, which creates the trace.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from typing import Any, Callable

from bench_results import Results, options_of

import marey

try:
    import torch
except ImportError:
    print("not here: torch is not installed")
    sys.exit(77)

from marey._operators import Operators

STEPS = 20


def make_step() -> Callable[[], None]:
    model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.ones(4, 8)

    def step() -> None:
        model(batch).relu().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def profile_of(shapes: bool) -> Any:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=shapes)


def timed(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    return time.perf_counter() - began


def measure(step: Callable[[], None], rounds: int) -> dict[str, float]:
    """Return the minimum seconds of STEPS steps for each method."""
    took: dict[str, list[float]] = defaultdict(list)
    ways = {"marey, names": Operators(shapes=False), "marey, shapes": Operators(shapes=True)}
    for _ in range(rounds):
        took["bare"].append(timed(step))
        for name, operators in ways.items():
            operators.start()
            took[name].append(timed(step))
            operators.stop()
        profile = profile_of(shapes=True)
        profile.start()
        began = time.perf_counter()
        took["torch.profiler, shapes"].append(timed(step))
        profile.stop()
        took["torch.profiler, shapes, with its stop"].append(time.perf_counter() - began)
    return {name: min(values) for name, values in took.items()}


def main() -> None:
    options = options_of(__doc__).parse_args()
    results = Results(options.results)
    torch.set_num_threads(1)
    step = make_step()
    for _ in range(50):
        step()
    with profile_of(shapes=False) as profile:
        step()
    n = len(profile.events())
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        marey.start(f"{folder}/operators.marey")
        took = measure(step, 5 if options.quick else 30)
        marey.stop()
    added = {name: (seconds - took["bare"]) / STEPS / n for name, seconds in took.items() if name != "bare"}
    for name, seconds in added.items():
        results.put(f"added to an operator: {name}", f"{seconds * 1e9:.0f} ns")
    times = added["torch.profiler, shapes, with its stop"] / max(added["marey, shapes"], 1e-12)
    results.put("operators with shapes, marey against torch", f"{times:.1f} x less", ">= 3 x", times >= 3)


main()
