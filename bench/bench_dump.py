#!/usr/bin/env python3
"""Cost of dumping with libmarey: large tensors with and without the page cache, many small ones.

    bench_dump.py [--quick] [--dir DIR] [--results FILE]

Each row alternates with its peer, on files in the same directory: np.save for the page cache, a plain loop of 16 MiB
O_DIRECT writes for durable dumps. A rate is bytes of tensors over the time from the first add until everything is
written, over several steps, so that copying a step overlaps with writing the previous one, as in a program. Statistics
and digests are on, as by default; a figure without statistics is also printed. Data handed over is not copied.
"""

from __future__ import annotations

import mmap
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Callable

import numpy as np
from bench_results import Results, median_with_interval, options_of
from dump_library import F32, Dumper, Tensor, describe

GB = 1e9


def dump_rate(add: Callable[[bytes, Tensor], None], folder: Path, data: np.ndarray, n_steps: int) -> float:
    """Bytes per second; `data` is dumped `n_steps` times."""
    dumper = add.__self__  # type: ignore[attr-defined]
    tensor = describe(data.ctypes.data, F32, data.shape)
    begin = time.perf_counter()
    for _ in range(n_steps):
        add(b"x", tensor)
        dumper.flush()
    dumper.wait()
    seconds = time.perf_counter() - begin
    for file in folder.glob("step-*"):
        file.unlink()
    return n_steps * data.nbytes / seconds


def save_rate(folder: Path, data: np.ndarray, n_steps: int) -> float:
    folder.mkdir()
    begin = time.perf_counter()
    for i in range(n_steps):
        np.save(folder / f"{i}.npy", data)
    seconds = time.perf_counter() - begin
    shutil.rmtree(folder)
    return n_steps * data.nbytes / seconds


def direct_rate(folder: Path, n_bytes: int, n_steps: int) -> float:
    """A loop of O_DIRECT writes, with each file durable at its end."""
    folder.mkdir()
    piece = mmap.mmap(-1, 16 << 20)
    piece.write(os.urandom(1 << 20) * 16)
    begin = time.perf_counter()
    for i in range(n_steps):
        fd = os.open(folder / str(i), os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o644)
        for _ in range(n_bytes // len(piece)):
            os.write(fd, piece)
        os.fdatasync(fd)
        os.close(fd)
    seconds = time.perf_counter() - begin
    shutil.rmtree(folder)
    return n_steps * n_bytes / seconds


def settle() -> None:
    """Wait until earlier data is on the disk."""
    os.sync()
    time.sleep(0.2)


def put_ratio(
    results: Results, what: str, pairs: list[tuple[float, float]], bar: float, peer: str, extra: str = ""
) -> None:
    low, mid, high = median_with_interval([ours / theirs for ours, theirs in pairs])
    ours, theirs = (statistics.median(pair[i] for pair in pairs) / GB for i in (0, 1))
    measured = f"{mid:.2f} x ({low:.2f} to {high:.2f}); {ours:.2f} GB/s, {peer} {theirs:.2f}{extra}"
    results.put(what, measured, f">= {bar:.1f} x {peer}", mid >= bar)


def in_turns(
    add: Callable[[bytes, Tensor], None],
    folder: Path,
    data: np.ndarray,
    n: tuple[int, int],
    peer: Callable[[], float],
    **options: int,
) -> list[tuple[float, float]]:
    """Rates of marey and of the peer, without the first steps, whose memory is new."""
    n_turns, n_steps = n
    dumper = add.__self__  # type: ignore[attr-defined]
    dumper.enable(folder / "d", memory_bytes=3 * data.nbytes, **options)
    dump_rate(add, folder / "d", data, 4)
    pairs = []
    for _ in range(n_turns):
        settle()
        ours = dump_rate(add, folder / "d", data, n_steps)
        settle()
        pairs.append((ours, peer()))
    dumper.disable()
    shutil.rmtree(folder / "d")
    return pairs


def large(results: Results, dumper: Dumper, folder: Path, n_bytes: int, n: tuple[int, int]) -> None:
    data = np.random.default_rng(1).standard_normal(n_bytes // 4, dtype=np.float32)
    size, n_steps = f"{n_bytes >> 20} MiB", n[1]

    def save() -> float:
        return save_rate(folder / "s", data, n_steps)

    def write() -> float:
        return direct_rate(folder / "o", n_bytes, n_steps)

    cached = in_turns(dumper.add, folder, data, n, save)
    plain = in_turns(dumper.add, folder, data, n, save, no_stats=1)
    extra = f"; without statistics {statistics.median(ours for ours, _ in plain) / GB:.2f} GB/s"
    put_ratio(results, f"dump, page cache, tensors of {size}", cached, 1.0, "np.save", extra)
    handed = in_turns(dumper.hand_over, folder, data, n, save)
    put_ratio(results, f"dump, page cache, handed over, {size}", handed, 1.0, "np.save")
    durable = in_turns(dumper.add, folder, data, n, write, durable=1)
    put_ratio(results, f"dump, durable, tensors of {size}", durable, 0.9, "raw O_DIRECT")


def small(results: Results, dumper: Dumper, folder: Path, n_turns: int) -> None:
    n, data = 2000, np.random.default_rng(2).standard_normal(1024, dtype=np.float32)
    tensor = describe(data.ctypes.data, F32, data.shape)
    names = [f"layer{i}.out".encode() for i in range(n)]
    ours, adds, theirs = [], [], []
    dumper.enable(folder / "d")
    for turn in range(n_turns + 1):
        settle()
        begin = time.perf_counter()
        for name in names:
            dumper.add_on(name, tensor)
        added = time.perf_counter()
        dumper.flush()
        dumper.wait()
        end = time.perf_counter()
        (folder / "s").mkdir()
        before = time.perf_counter()
        for i in range(n):
            np.save(folder / "s" / f"{i}.npy", data)
        after = time.perf_counter()
        shutil.rmtree(folder / "s")
        if turn > 0:  # the first warms up
            ours.append((end - begin) / n * 1e6)
            adds.append((added - begin) / n * 1e6)
            theirs.append((after - before) / n * 1e6)
    dumper.disable()
    low, mid, high = median_with_interval(ours)
    measured = (
        f"{mid:.1f} us each ({low:.1f} to {high:.1f}), {statistics.median(adds):.1f} us of them in the add by ctypes; "
        f"np.save {statistics.median(theirs):.0f} us"
    )
    results.put("dump, 2000 tensors of 4 KiB", measured, "<= 6 us each", mid <= 6)


def main() -> None:
    arguments = options_of(__doc__, None).parse_args()
    results, dumper = Results(arguments.results), Dumper()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = Path(name)
        n_turns = 2 if arguments.quick else 5
        small(results, dumper, folder, n_turns)
        large(results, dumper, folder, (128 if arguments.quick else 1024) << 20, (n_turns, 5))


if __name__ == "__main__":
    main()
