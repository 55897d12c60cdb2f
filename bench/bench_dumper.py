#!/usr/bin/env python3
"""Cost of marey.TensorDumper: a call while off, and small tensors while on, against other ways to save them.

    bench_dumper.py [--quick] [--dir DIR] [--results FILE]

Off: a loop of one statement minus the empty loop; an empty Python method for comparison. On: 2000 tensors of 4 KiB in
each step of a loop. "add" is the time of the program's thread until all are added, "add and write" until the step is in
its file, without fsync, as for the peers, which write one file per tensor. Candidates alternate in each round; figures
are medians of the rounds, in CPU time of this thread if nothing waits, else in wall time. Missing packages are skipped.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from itertools import repeat
from pathlib import Path
from typing import Any, Callable

from bench_results import Results, options_of

import marey

N_TENSORS = 2000
N_NUMBERS = 1024


class Plain:
    """An empty method, as in a tool written in Python while it is off."""

    def add_tensor_data(self, path: str, data: object, dump_type: object = None) -> None:
        """Do nothing."""


def per_call(function: Callable[..., Any], n: int) -> float:
    """Nanoseconds of CPU time for a call with a path and data."""
    data = object()
    clock = time.thread_time_ns
    started = clock()
    for _ in repeat(None, n):
        function("path", data)
    return (clock() - started) / n


def per_turn(n: int) -> float:
    clock = time.thread_time_ns
    started = clock()
    for _ in repeat(None, n):
        pass
    return (clock() - started) / n


def measure_off(results: Results, rounds: int, n: int) -> None:
    ours, plain = marey.TensorDumper().add_tensor_data, Plain().add_tensor_data
    off, empty = [], []
    for _ in range(rounds):
        turn = per_turn(n)
        off.append(per_call(ours, n) - turn)
        empty.append(per_call(plain, n) - turn)
    cost = statistics.median(off)
    results.put("TensorDumper, a call while off", f"{cost:.1f} ns", "30 ns", cost <= 30)
    results.put("an empty method of Python", f"{statistics.median(empty):.1f} ns")


class Steps:
    """Consecutive steps of a dumper with all tensors, as in a loop; the first is warm-up."""

    def __init__(self, tensors: list[Any], folder: Path, **options: Any) -> None:
        self.tensors, self.folder, self.options = tensors, folder, options
        self.names = [f"layer{i}.out" for i in range(len(tensors))]

    def run(self, n: int) -> list[tuple[float, float]]:
        """Microseconds per tensor: CPU time of this thread until all are added, and wall time until they are
        written."""
        marey.TensorDumper().enable(self.folder, **self.options)
        measured = [self.step() for _ in range(n + 1)]
        marey.TensorDumper().disable()
        return measured[1:]

    def step(self) -> tuple[float, float]:
        dumper = marey.TensorDumper()
        began, busy = time.perf_counter_ns(), time.thread_time_ns()
        for name, tensor in zip(self.names, self.tensors):
            dumper.add_tensor_data(name, tensor)
        busy = time.thread_time_ns() - busy
        dumper.dump()
        dumper.wait()
        took = time.perf_counter_ns() - began
        return busy / len(self.tensors) / 1e3, took / len(self.tensors) / 1e3


def save_all(save: Callable[[Any, Path], None], tensors: list[Any], folder: Path) -> float:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.perf_counter_ns()
    for i, tensor in enumerate(tensors):
        save(tensor, folder / f"layer{i}.out")
    return (time.perf_counter_ns() - began) / len(tensors) / 1e3


def measure_on(results: Results, rounds: int, folder: Path) -> None:
    try:
        import numpy as np
        import torch
    except ImportError as missing:
        print(f"  left out: {missing}")
        return
    tensors = [torch.randn(N_NUMBERS) for _ in range(N_TENSORS)]
    ways: dict[str, Callable[[], float]] = {
        "np.save": lambda: save_all(lambda t, path: np.save(f"{path}.npy", t.numpy()), tensors, folder / "npy"),
        "torch.save": lambda: save_all(lambda t, path: torch.save(t, f"{path}.pt"), tensors, folder / "pt"),
    }
    add, write, bare = [], [], []
    others: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(rounds):
        for busy, took in Steps(tensors, folder / f"marey{i}").run(2):
            add.append(busy)
            write.append(took)
        bare += [took for _, took in Steps(tensors, folder / f"bare{i}", stats=False).run(2)]
        for name, way in ways.items():
            others[name].append(way())
        for path in folder.iterdir():
            shutil.rmtree(path)
    mine = statistics.median(write)
    results.put("4 KiB tensors of torch: add", f"{statistics.median(add):.1f} us each")
    results.put("4 KiB tensors of torch: add and write", f"{mine:.1f} us each", "6 us", mine <= 6)
    results.put("the same without statistics", f"{statistics.median(bare):.1f} us each")
    for name, took in others.items():
        theirs = statistics.median(took)
        results.put(f"{name}, a file each", f"{theirs:.1f} us each, {theirs / mine:.1f} x")


def main() -> int:
    options = options_of(__doc__, None).parse_args()
    results = Results(options.results)
    rounds = 3 if options.quick else 15
    measure_off(results, rounds, 100_000 if options.quick else 1_000_000)
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        measure_on(results, rounds, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
