#!/usr/bin/env python3
"""Cost of tensors as text: writing and reading JSON, against Python's json; and opening small files, against other
readers.

    bench_formats.py [--quick] [--results FILE]

Numbers are float32 from a normal distribution, and rates are bytes of float32 per second. marey's time is all that a
user waits for: TensorDumper from the add to the complete file, the reader from the path to an array. Peers use
json.dump(tensor.tolist()) and json.loads(), alternating with marey, in memory (/dev/shm) if available. Times are CPU
times of all threads, so a busy machine has little effect.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench_results import Results, median_with_interval, options_of

import marey
from marey import _tools
from marey._arrays import as_array

MB = 1e6


def seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def dump_json(folder: Path, array: np.ndarray) -> float:
    """Seconds from the add until the JSON is written, in ACCV-Lab's layout."""
    dumper = marey.TensorDumper(folder, layout="accvlab")
    dumper.add_tensor_data("warm", array[:1], marey.TensorDumper.Type.JSON)
    dumper.dump()
    dumper.wait()

    def work() -> None:
        dumper.add_tensor_data("x", array, marey.TensorDumper.Type.JSON)
        dumper.dump()
        dumper.wait()

    taken = seconds(work)
    dumper.reset()
    return taken


def write_json(path: Path, array: np.ndarray) -> float:
    def work() -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"x": array.tolist()}, file, indent=2)

    return seconds(work)


def read_ours(path: Path) -> Any:
    dumps = _tools.Dumps(path)
    return as_array(dumps.get(0, 0))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def put_rates(
    results: Results, what: str, ours: list[float], theirs: list[float], bars: tuple[float, float], peer: str
) -> None:
    """Rates in MB/s, and ratios to the peer's in each round."""
    low, mid, high = median_with_interval(ours)
    ratio = median_with_interval([a / b for a, b in zip(ours, theirs)])[1]
    measured = f"{mid:.0f} MB/s ({low:.0f} to {high:.0f}), {ratio:.1f} x {peer}"
    bar = f">= {bars[0]:.0f} MB/s" + (f", >= {bars[1]:.0f} x {peer}" if bars[1] else "")
    results.put(what, measured, bar, mid >= bars[0] and ratio >= bars[1])


def texts(results: Results, folder: Path, n_bytes: int, n_turns: int) -> None:
    array = np.random.default_rng(1).standard_normal((n_bytes // 4096, 1024), dtype=np.float32)
    few = array[: max(1, len(array) // 8)]  # the peers are slow
    written: tuple[list[float], list[float]] = ([], [])
    read: tuple[list[float], list[float]] = ([], [])
    compared = []
    for _ in range(n_turns):
        written[0].append(array.nbytes / dump_json(folder / "d", array) / MB)
        written[1].append(few.nbytes / write_json(folder / "few.json", few) / MB)
        path = folder / "d" / "1" / "tensors.json"
        read[0].append(array.nbytes / seconds(lambda: read_ours(path)) / MB)  # noqa: B023
        read[1].append(few.nbytes / seconds(lambda: read_json(folder / "few.json")) / MB)
        shutil.copytree(folder / "d", folder / "e")
        compared.append(2 * array.nbytes / seconds(lambda: marey.diff(folder / "d", folder / "e")) / MB)
        shutil.rmtree(folder / "d")
        shutil.rmtree(folder / "e")
    put_rates(results, "dump as JSON, float32", *written, (150, 20), "json.dump")
    put_rates(results, "JSON read, float32", *read, (100, 9), "json.loads")
    low, mid, high = median_with_interval(compared)
    measured = f"{mid:.0f} MB/s of both ({low:.0f} to {high:.0f})"
    results.put("compare two JSON dumps, float32", measured, ">= 100 MB/s", mid >= 100)


def small_files(results: Results, folder: Path, n_turns: int) -> None:
    """Open one file and get its tensors."""
    import safetensors.numpy

    array = np.ones(1024, dtype=np.float32)
    np.save(folder / "x.npy", array)
    safetensors.numpy.save_file({f"layer{i}": array for i in range(100)}, folder / "x.safetensors")

    def ours(path: Path, n: int) -> None:
        dumps = _tools.Dumps(path)
        for i in range(n):
            as_array(dumps.get(0, i))

    pairs: list[tuple[str, Callable[[], Any], Callable[[], Any], str]] = [
        ("a .npy of 4 KiB", lambda: ours(folder / "x.npy", 1), lambda: np.load(folder / "x.npy"), "np.load"),
        (
            "a safetensors file of 100 x 4 KiB",
            lambda: ours(folder / "x.safetensors", 100),
            lambda: safetensors.numpy.load_file(folder / "x.safetensors"),
            "load_file",
        ),
    ]
    for what, mine, peer, name in pairs:
        a = [min(seconds(mine) for _ in range(50)) * 1e6 for _ in range(n_turns)]
        b = [min(seconds(peer) for _ in range(50)) * 1e6 for _ in range(n_turns)]
        results.put(f"read {what}", f"{median_with_interval(a)[1]:.0f} us; {name} {median_with_interval(b)[1]:.0f} us")


def main() -> None:
    arguments = options_of(__doc__).parse_args()
    results = Results(arguments.results)
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as name:
        texts(results, Path(name), 4 << 20 if arguments.quick else 32 << 20, 3 if arguments.quick else 7)
        small_files(results, Path(name), 3 if arguments.quick else 7)


if __name__ == "__main__":
    main()
