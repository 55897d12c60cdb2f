#!/usr/bin/env python3
"""Cost of comparing, summarizing and digesting tensors, against numpy and torch.

    bench_tensor.py [--quick] [--dir DIR] [--results FILE]

Each round runs all candidates on the same data; ratios are computed within a round, and their median is printed.
Single-threaded candidates are timed by CPU time, others by wall time. Gigabytes per second count both inputs. Only
reading, by memcmp() of a tensor with itself, shows the memory bandwidth. The data are normally distributed numbers, and
the same with noise in the seventh digit: every element differs and none is wrong.
"""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import sys
import threading
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import numpy as np
from bench_results import Results, median_with_interval, options_of

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))
from tensor_calls import Library, Tensor  # noqa: E402

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

GB = 1e9
Clock = Callable[[], float]
libc = ctypes.CDLL(None)
libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def rounds(n: int, clock: Clock, candidates: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Run each candidate once per round; return seconds by name."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for i in range(-1, n):
        for name, run in candidates.items():
            begin = clock()
            run()
            if i >= 0:  # the first round touches new memory
                seconds[name].append(clock() - begin)
    return seconds


def ratio(seconds: dict[str, list[float]], peer: str, ours: str = "ours") -> tuple[float, float, float]:
    return median_with_interval([a / b for a, b in zip(seconds[peer], seconds[ours])])


def rate(seconds: list[float], n_bytes: int) -> float:
    return n_bytes / statistics.median(seconds) / GB


def put_ratio(
    results: Results, what: str, times: tuple[float, float, float], bar: Optional[float], beside: str
) -> None:
    low, mid, high = times
    measured = f"{mid:.1f} x ({low:.1f} to {high:.1f}){beside}"
    if bar is None:
        results.put(what, measured)
    else:
        results.put(what, measured, f">= {bar:g} x", mid >= bar)


class Pair:
    """Two tensors of `n_bytes` each, and their descriptions."""

    def __init__(self, library: Library, dtype: str, n_bytes: int, noise: float) -> None:
        rng = np.random.default_rng(1)
        size = {"float64": 8, "float32": 4}.get(dtype, 2)
        a = rng.standard_normal(n_bytes // size, dtype=np.float32)
        b = a * (1 + np.float32(noise) * rng.standard_normal(n_bytes // size, dtype=np.float32))
        self.n_bytes = n_bytes
        self.arrays: tuple[Any, Any]
        if dtype == "bfloat16":
            self.arrays = tuple((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))  # type: ignore[assignment]
        else:
            self.arrays = (a.astype(dtype), b.astype(dtype))
        self.a: Tensor
        self.b: Tensor
        self.a, self.b = (library.of_numpy(x, dtype) for x in self.arrays)
        if torch is not None:
            views = [torch.from_numpy(x) for x in self.arrays]
            self.torch = [x.view(torch.bfloat16) if dtype == "bfloat16" else x for x in views]

    def read(self, share: int = 0, of: int = 1) -> None:
        """Read every byte of both, or of a share of them."""
        for array in self.arrays:
            n = array.nbytes // of
            libc.memcmp(array.ctypes.data + share * n, array.ctypes.data + share * n, n)


def put_comparisons(results: Results, library: Library, n_bytes: int, n: int) -> None:
    pair = Pair(library, "float32", n_bytes, 1e-7)
    candidates: dict[str, Callable[[], Any]] = {
        "ours": lambda: library.compare(pair.a, pair.b, abs=1e-5, rel=1.3e-6, nan_equal=1),
        "read": pair.read,
        "allclose": lambda: np.allclose(*pair.arrays, rtol=1.3e-6, atol=1e-5, equal_nan=True),
    }
    if torch is not None:
        torch.set_num_threads(1)
        candidates["assert_close"] = lambda: torch.testing.assert_close(*pair.torch, equal_nan=True)
    seconds = rounds(n, time.thread_time, candidates)
    ours, read = rate(seconds["ours"], 2 * n_bytes), rate(seconds["read"], 2 * n_bytes)
    share = ratio(seconds, "read")[1]
    results.put(
        "compare float32, all measures, one thread",
        f"{ours:.1f} GB/s; reading alone {read:.1f} GB/s, {share:.0%} of it",
        ">= 25 GB/s",
        ours >= 25,
    )
    for peer, bar in (("allclose", 8.0), ("assert_close", 40.0)):
        if peer in seconds:
            beside = f"; it takes {rate(seconds[peer], 2 * n_bytes):.2f} GB/s"
            put_ratio(results, f"  against {peer}", ratio(seconds, peer), bar, beside)
        else:
            results.put(f"  against {peer}", "torch is not installed")
    grown = peak_growth_mib(candidates["ours"])
    results.put("  memory it takes", f"{grown:.1f} MiB", "0 MiB", grown < 1)
    put_threads(results, library, pair, n)


def peak_growth_mib(run: Callable[[], Any]) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def put_threads(results: Results, library: Library, pair: Pair, n: int) -> None:
    n_threads = len(os.sched_getaffinity(0))

    def read_together() -> None:
        threads = [threading.Thread(target=pair.read, args=(i, n_threads)) for i in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    candidates: dict[str, Callable[[], Any]] = {
        "ours": lambda: library.compare(pair.a, pair.b, n_threads, abs=1e-5, rel=1.3e-6, nan_equal=1),
        "read": read_together,
    }
    seconds = rounds(2 * n, time.perf_counter, candidates)
    low, mid, high = ratio(seconds, "read")
    ours = rate(seconds["ours"], 2 * pair.n_bytes)
    results.put(
        f"compare float32, {n_threads} threads, of what reading takes",
        f"{mid:.0%} ({low:.0%} to {high:.0%}), {ours:.1f} GB/s",
        ">= 80 %",
        mid >= 0.8,
    )


def put_type(results: Results, library: Library, dtype: str, n_bytes: int, n: int) -> None:
    pair = Pair(library, dtype, n_bytes, {"float64": 1e-7, "float16": 1e-3, "bfloat16": 1e-2}[dtype])
    tolerance = {"abs": 1e-5, "rel": 0.1, "nan_equal": 1}
    candidates: dict[str, Callable[[], Any]] = {"ours": lambda: library.compare(pair.a, pair.b, **tolerance)}
    if torch is not None:
        candidates["assert_close"] = lambda: torch.testing.assert_close(
            *pair.torch, rtol=0.1, atol=1e-5, equal_nan=True
        )
    seconds = rounds(n, time.thread_time, candidates)
    measured = f"{rate(seconds['ours'], 2 * n_bytes):.1f} GB/s"
    if "assert_close" in seconds:
        measured += f"; {ratio(seconds, 'assert_close')[1]:.0f} x assert_close"
    results.put(f"compare {dtype}, one thread", measured)


def put_special(results: Results, library: Library, n_bytes: int, n: int) -> None:
    """Cases in which kernels are faster than usual, or need two passes."""
    same, masked = Pair(library, "float32", n_bytes, 0), Pair(library, "float32", n_bytes, 1e-7)
    for array in masked.arrays:
        array[::3] = -np.inf
    candidates: dict[str, Callable[[], Any]] = {
        "same": lambda: library.compare(same.a, same.b, nan_equal=1),
        "masked": lambda: library.compare(masked.a, masked.b, abs=1e-5, rel=1e-6, nan_equal=1),
    }
    seconds = rounds(n, time.thread_time, candidates)
    results.put("compare float32 that is equal", f"{rate(seconds['same'], 2 * n_bytes):.1f} GB/s")
    results.put("compare float32, a third infinite", f"{rate(seconds['masked'], 2 * n_bytes):.1f} GB/s")


def put_small(results: Results, library: Library) -> None:
    pair = Pair(library, "float32", 4096, 1e-7)
    call = timeit.Timer(lambda: library.compare(pair.a, pair.b, abs=1e-5, rel=1.3e-6, nan_equal=1))
    microseconds = min(call.repeat(20, 200)) / 200 * 1e6
    nothing = timeit.Timer(lambda: library.compare(pair.a, pair.a))
    nothing_us = min(nothing.repeat(20, 200)) / 200 * 1e6
    results.put("compare 4 KiB, a call by ctypes", f"{microseconds:.1f} µs; of equal ones {nothing_us:.1f} µs")


def put_statistics(results: Results, library: Library, n_bytes: int, n: int) -> None:
    x = np.random.default_rng(2).standard_normal(n_bytes // 4, dtype=np.float32)
    tensor = library.of_numpy(x)

    def by_numpy() -> list[Any]:
        return [x.min(), x.max(), x.mean(), x.std(), np.linalg.norm(x), np.isnan(x).sum(), np.isinf(x).sum()]

    def by_numpy_and_counts() -> list[Any]:
        return [*by_numpy(), (x == 0).sum(), (x < 0).sum(), np.bincount(np.frexp(x)[1] + 1000).sum()]

    candidates: dict[str, Callable[[], Any]] = {
        "ours": lambda: library.stats(tensor),
        "numpy": by_numpy,
        "numpy, counts": by_numpy_and_counts,
    }
    seconds = rounds(n, time.thread_time, candidates)
    ours = rate(seconds["ours"], n_bytes)
    results.put("statistics of float32, one pass", f"{ours:.1f} GB/s", ">= 20 GB/s", ours >= 20)
    put_ratio(results, "  against numpy without histogram", ratio(seconds, "numpy"), None, "")
    put_ratio(results, "  against numpy with histogram", ratio(seconds, "numpy, counts"), None, "")


def put_digests(results: Results, library: Library, n_bytes: int, n: int) -> None:
    x = np.random.default_rng(3).integers(0, 256, n_bytes, dtype=np.uint8)
    whole, cached = library.of_numpy(x), library.of_numpy(x[: 256 << 10])

    def many() -> None:
        for _ in range(n_bytes // (256 << 10)):
            library.digest(cached)

    seconds = rounds(n, time.thread_time, {"cached": many, "whole": lambda: library.digest(whole)})
    in_cache = rate(seconds["cached"], n_bytes)
    results.put("digest of 256 KiB, in the cache", f"{in_cache:.1f} GB/s", ">= 20 GB/s", in_cache >= 20)
    results.put(f"digest of {n_bytes >> 20} MiB", f"{rate(seconds['whole'], n_bytes):.1f} GB/s")


def main() -> int:
    options = options_of(__doc__).parse_args()
    library, results = Library(), Results(options.results)
    n_bytes, n = (32 << 20, 3) if options.quick else (64 << 20, 9)
    put_comparisons(results, library, n_bytes, n)
    for dtype in ("float64", "float16", "bfloat16"):
        put_type(results, library, dtype, n_bytes, n)
    put_special(results, library, n_bytes, n)
    put_small(results, library)
    put_statistics(results, library, n_bytes, n)
    put_digests(results, library, n_bytes, n)
    return 0


if __name__ == "__main__":
    sys.exit(main())
