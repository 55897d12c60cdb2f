"""With a real GPU: ranges that wait for it are as long as its work, ranges that do not are not.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_nvtx_sync.py

The long piece of work is a kernel that spins for a number of clock cycles. What is compared are lengths of ranges in a
recording with the length of the work as CUDA's own events measure it, by factors that no scheduling can bridge.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_program import import_torch

CYCLES = 400_000_000  # some 0.2 to 0.4 s on any GPU of the last years


def length_of_work_ns(torch: Any) -> float:
    """The kernel's own time, in the second of two runs: the first one loads it."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(2):
        begin.record()
        torch.cuda._sleep(CYCLES)
        end.record()
        torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e6


def lengths_ns(torch: Any, folder: Path, on_push: bool, on_pop: bool) -> tuple[float, float]:
    """Lengths of a range around the launch of the work, and of one behind it that launches nothing."""
    import marey

    wrapper = marey.NVTXRangeWrapper()
    torch.cuda.synchronize()
    path = folder / f"{on_push}-{on_pop}.marey"
    marey.start(path)
    wrapper.enable(on_push, on_pop, True)
    wrapper.range_push("launch")
    torch.cuda._sleep(CYCLES)
    wrapper.range_pop("launch")
    wrapper.range_push("behind")
    wrapper.range_pop("behind")
    wrapper.disable()
    marey.stop()
    torch.cuda.synchronize()
    ranges = marey.load(path).ranges
    return ranges.row(name="launch")["total_ns"], ranges.row(name="behind")["total_ns"]


def check(what: str, holds: bool, failures: list[str]) -> None:
    print(f"{'holds' if holds else 'DOES NOT HOLD'}: {what}")
    if not holds:
        failures.append(what)


def check_settings(torch: Any, folder: Path, failures: list[str]) -> None:
    work = length_of_work_ns(torch)
    print(f"the work takes {work / 1e6:.1f} ms")
    for on_push in (False, True):
        for on_pop in (False, True):
            launch, behind = lengths_ns(torch, folder, on_push, on_pop)
            setting = f"sync_on_push={on_push}, sync_on_pop={on_pop}"
            print(f"{setting}: launch {launch / 1e6:.2f} ms, behind {behind / 1e6:.2f} ms")
            if on_pop:
                check(f"{setting}: the range lasts as long as its work", 0.5 * work < launch < 2 * work, failures)
            else:
                check(f"{setting}: the range ends while its work runs", launch < 0.3 * work, failures)
            check(f"{setting}: a range behind the work has none of it", behind < 0.3 * work, failures)


def check_capture(torch: Any, failures: list[str]) -> None:
    """A graph that is being captured must not be waited for; replayed, it computes what it should."""
    import marey

    wrapper = marey.NVTXRangeWrapper(True, True, True)
    total = torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        wrapper.range_push("captured")
        total += 1
        wrapper.range_pop("captured")
    graph.replay()
    torch.cuda.synchronize()
    check("a graph is captured with ranges in it", total.tolist() == [1.0] * 8, failures)
    wrapper.disable()


WITHOUT_TORCH = """
import ctypes, sys
import marey

runtime = ctypes.CDLL(sys.argv[1])
pointers = [ctypes.c_void_p() for _ in range(2)]
SIZE = 1 << 30
for pointer in pointers:
    if runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(SIZE)) != 0:
        sys.exit(77)
runtime.cudaMemcpyAsync.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
runtime.cudaDeviceSynchronize()
wrapper = marey.NVTXRangeWrapper()

def length(on_pop):
    path = f"{sys.argv[2]}/runtime-{on_pop}.marey"
    marey.start(path)
    wrapper.enable(False, on_pop, True)
    wrapper.range_push("copies")
    for _ in range(200):
        if runtime.cudaMemcpyAsync(pointers[0], pointers[1], SIZE, 3, None) != 0:
            sys.exit("cudaMemcpyAsync failed")
    wrapper.range_pop("copies")
    wrapper.disable()
    marey.stop()
    runtime.cudaDeviceSynchronize()
    return marey.load(path).ranges.row(name="copies")["total_ns"]

length(True)
with_wait, without = length(True), length(False)
assert "torch" not in sys.modules
print(f"200 copies of 1 GiB: {with_wait / 1e6:.2f} ms with sync_on_pop, {without / 1e6:.2f} ms without")
sys.exit(0 if without < 0.5 * with_wait else 1)
"""


def runtime_library() -> str:
    """The runtime that torch has loaded, else one that the loader finds."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcudart.so" in line:
            return line.split(maxsplit=5)[5]
    for name in ("libcudart.so.13", "libcudart.so.12"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return ""


def check_without_torch(folder: Path, failures: list[str]) -> None:
    library = runtime_library()
    if not library:
        print("not here: a CUDA runtime of its own for a program without torch")
        return
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, library, str(folder)], env=os.environ, check=False)
    check("without torch, libcudart waits", done.returncode == 0, failures)


def main() -> int:
    torch = import_torch()
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_settings(torch, folder, failures)
        check_capture(torch, failures)
        check_without_torch(folder, failures)
    print("all holds" if not failures else f"{len(failures)} do not hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
