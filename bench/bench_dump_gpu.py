#!/usr/bin/env python3
"""Cost of dumping GPU tensors for the program: the stall per GiB, and the host's time per tensor.

    bench_dump_gpu.py [--quick] [--dir DIR] [--results FILE]

Needs torch and a GPU; without them it prints a message and exits with 77. A step is 60 products of 8192 x 8192 bfloat16
matrices. CUDA events time it from its start to the start of the next, without a dump, and with a 1 GiB tensor dumped in
the middle; the difference is the stall. The peer copies the tensor by .cpu() and writes it by np.save at the same
place. Files go to DIR, by default /dev/shm if it has room, so that the disk has no influence.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np
from bench_results import Results, median_with_interval, options_of
from dump_library import CUDA, F32, Dumper, Tensor, describe

GIB = 1 << 30


def on_gpu(torch: Any, x: Any) -> Tensor:
    tensor = describe(x.data_ptr(), F32, tuple(x.shape))
    tensor.memory, tensor.device, tensor.stream = CUDA, x.device.index, torch.cuda.current_stream().cuda_stream
    return tensor


def step_ms(torch: Any, n_products: int, n_steps: int, dump: Optional[Callable[[int], None]]) -> list[float]:
    """Milliseconds of each step on the GPU."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.empty_like(a)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n_steps + 1)]
    for i in range(n_steps):
        events[i].record()
        for k in range(n_products):
            torch.mm(a, a, out=b)
            if k == n_products // 2 and dump is not None:
                dump(i)
    events[n_steps].record()
    torch.cuda.synchronize()
    return [events[i].elapsed_time(events[i + 1]) for i in range(n_steps)]


def stalls(torch: Any, results: Results, dumper: Dumper, folder: Path, n_steps: int, n_products: int) -> None:
    x = torch.randn(GIB // 4, device="cuda")
    host_us: list[float] = []

    def ours(step: int) -> None:
        tensor = on_gpu(torch, x)
        begin = time.perf_counter()
        dumper.add(b"x", tensor)
        dumper.flush()
        host_us.append((time.perf_counter() - begin) * 1e6)

    def theirs(step: int) -> None:
        np.save(folder / f"peer{step}.npy", x.cpu().numpy())

    def dumped() -> list[float]:
        found = step_ms(torch, n_products, n_steps, ours)
        dumper.wait()
        for file in (folder / "d").iterdir():
            file.unlink()
        return found

    step_ms(torch, n_products, 3, None)
    dumper.enable(folder / "d", memory_bytes=(n_steps + 2) * GIB, no_stats=1)
    dumped()  # creates the ring and the pool, like the first steps of a run
    host_us.clear()
    alone, stalled = [], []
    for _ in range(7):
        alone.append(statistics.median(step_ms(torch, n_products, n_steps, None)[1:]))
        stalled.append(statistics.median(dumped()[1:]) - alone[-1])
    failed = dumper.counts().n_failed
    dumper.disable()
    shutil.rmtree(folder / "d")
    if failed:
        raise RuntimeError(f"{failed} tensors were not dumped")
    base = statistics.median(alone)
    low, stall, high = median_with_interval(stalled)
    peer = statistics.median(step_ms(torch, n_products, 4, theirs)[1:]) - base
    results.put(
        "GPU dump, stall for each GiB",
        f"{stall:.2f} ms ({low:.2f} to {high:.2f}) beside {base:.1f} ms of work; "
        f"the call takes {statistics.median(host_us):.0f} us; .cpu() and np.save {peer:.0f} ms",
        "<= 1.5 ms",
        stall <= 1.5,
    )


def small(torch: Any, results: Results, dumper: Dumper, folder: Path) -> None:
    # More than 56 small clones queued after a kernel fill the driver's queue, and the driver's call then waits.
    n, x = 50, torch.randn(1024, device="cuda")
    names, tensor = [f"layer{i}".encode() for i in range(n)], on_gpu(torch, x)
    host = []
    dumper.enable(folder / "d")
    for _ in range(30):
        torch.cuda._sleep(100_000_000)  # not waited for
        begin = time.perf_counter()
        for name in names:
            dumper.add_on(name, tensor)
        host.append((time.perf_counter() - begin) / n * 1e6)
        dumper.flush()
        dumper.wait()
    dumper.disable()
    shutil.rmtree(folder / "d")
    mid = statistics.median(host[1:])
    results.put("GPU dump, host time for a tensor of 4 KiB", f"{mid:.1f} us, by ctypes", "<= 10 us", mid <= 10)


def main() -> int:
    arguments = options_of(__doc__, None).parse_args()
    try:
        import torch
    except ImportError:
        print("not here: torch is not installed")
        return 77
    if not torch.cuda.is_available():
        print("not here: torch sees no GPU")
        return 77
    shm = Path("/dev/shm")
    place = arguments.dir or (str(shm) if shm.is_dir() and shutil.disk_usage(shm).free > 40 * GIB else None)
    with tempfile.TemporaryDirectory(dir=place) as name:
        dumper, results = Dumper(), Results(arguments.results)
        torch.cuda.init()
        small(torch, results, dumper, Path(name))
        stalls(torch, results, dumper, Path(name), 4 if arguments.quick else 8, 60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
