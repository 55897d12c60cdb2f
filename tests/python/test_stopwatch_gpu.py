"""Times on the GPU: the stopwatch, torch's streams, and a stand-in for CUDA's driver whose clock the test sets.

tests/gpu/test_gpu_events.py shows the same with a real GPU.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEAD = """
import ctypes, json, sys, types
import marey

driver = ctypes.CDLL("libcuda.so.1")
now, done = (ctypes.c_double.in_dll(driver, f"marey_test_gpu_{name}") for name in ("ms", "done_ms"))
capturing = (ctypes.c_int * 1024).in_dll(driver, "marey_test_gpu_is_capturing")
offsets = (ctypes.c_double * 1024).in_dll(driver, "marey_test_gpu_offset_ms")
driver.marey_test_gpu_set_ctx(ctypes.c_size_t(7))
stopwatch = marey.Stopwatch(gpu="events")

def put(name, begin, end):
    now.value = begin
    with stopwatch(name):
        now.value = end

def tell():
    gpu = stopwatch.stats().gpu
    rows = zip(*(gpu[column] for column in ("name", "count", "total_ns", "pending")))
    print(json.dumps({name: rest for name, *rest in rows}))
"""

TORCH = """
class Torch(types.ModuleType):
    stream = 701
    def _cuda_getDevice(self):
        return 0
    def _cuda_getCurrentRawStream(self, device):
        assert device == 0
        return self.stream
torch = sys.modules["torch._C"] = Torch("torch._C")
"""

Tell = Callable[[str], "list[dict[str, Any]]"]


@pytest.fixture
def on_gpu(run_python, nvtx_build: Path) -> Tell:
    """Run a script with the stand-in loaded; what it told, call by call: name -> [count, total_ns, pending]."""

    def run(source: str) -> list[dict[str, Any]]:
        env = {"LD_PRELOAD": str(nvtx_build / "cuda" / "libcuda.so.1")}
        done = run_python(HEAD + textwrap.dedent(source), env=env)
        assert done.stderr == ""
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_times_come_when_the_gpu_is_done(on_gpu):
    before, after = on_gpu(
        """
        put("kernel", 1, 3.5)
        put("kernel", 4, 5)
        tell()
        done.value = 10
        tell()
        """
    )
    assert before == {"kernel": [0, 0, 2]}
    assert after == {"kernel": [2, 3_500_000, 0]}


def test_torchs_current_stream_is_taken(on_gpu):
    told = on_gpu(
        TORCH
        + """
offsets[702] = 100
put("quick", 1, 2)
torch.stream = 702
put("slow", 1, 2)
done.value = 10
tell()
done.value = 200
tell()
"""
    )
    assert told == [
        {"quick": [1, 1_000_000, 0], "slow": [0, 0, 1]},
        {"quick": [1, 1_000_000, 0], "slow": [1, 1_000_000, 0]},
    ]


def test_a_capture_is_left_out(on_gpu):
    (told,) = on_gpu(
        TORCH
        + """
put("before", 1, 2)
capturing[701] = 1
put("captured", 1, 2)
capturing[701] = 0
put("after", 1, 2)
done.value = 10
tell()
"""
    )
    assert {name: row for name, row in told.items() if row[0] > 0} == {
        "before": [1, 1_000_000, 0],
        "after": [1, 1_000_000, 0],
    }


@pytest.mark.parametrize(
    "torch",
    [
        "sys.modules['torch._C'] = types.ModuleType('torch._C')",
        "sys.modules['torch._C'] = None",
        TORCH + "def fail(): raise RuntimeError('no GPU')\ntorch._cuda_getDevice = fail",
        TORCH + "torch.stream = 'none'",
    ],
)
def test_a_torch_that_cannot_tell_leaves_the_default_stream(on_gpu, torch):
    (told,) = on_gpu(torch + "\nput('kernel', 1, 2)\ndone.value = 10\ntell()\n")
    assert told == {"kernel": [1, 1_000_000, 0]}


def test_what_a_block_raises_goes_on(on_gpu):
    told = on_gpu(
        TORCH
        + """
@stopwatch("kernel")
def work():
    raise KeyError("theirs")
try:
    work()
except KeyError as error:
    print(json.dumps(str(error)))
"""
    )
    assert told == ["'theirs'"]
