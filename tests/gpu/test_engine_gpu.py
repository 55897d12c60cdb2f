"""With a real GPU: engine="kymo" beside torch.profiler: the same operators with shapes, the same kernels, and tables.

A plain program: exit status 0 when all holds, 1 when something does not, 77 where there is no GPU or no torch.

    python tests/gpu/test_engine_gpu.py

kymo comes first: torch keeps CUPTI once it has it. Then what each adds to a step, and how long a window's end takes.
"""

from __future__ import annotations

import collections
import csv
import gzip
import json
import sys
import tempfile
import time
from pathlib import Path

from gpu_program import FAILURES, check, import_torch

torch = import_torch()

from kymo import _background  # noqa: E402
from kymo._engine_kymo import KymoEngine  # noqa: E402
from kymo._schedule import Schedule  # noqa: E402
from kymo._window import Driver  # noqa: E402

STEPS = 20


class Training:
    """A small model, so that operators are what counts."""

    def __init__(self) -> None:
        layers = [layer for _ in range(8) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU())]
        self.model = torch.nn.Sequential(*layers).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=True)
        self.batch = torch.randn(32, 64, device="cuda")

    def step(self) -> None:
        self.model(self.batch).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def by_kymo(training: Training, folder: Path, active: int) -> tuple[Driver, float]:
    driver = Driver(Schedule(0, 2, active, 1), KymoEngine(folder, record_shapes=True), folder, {"averages"})
    driver.start()
    for _ in range(2):
        training.step()
        driver.step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(active):
        training.step()
        driver.step()
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    driver.stop()
    _background.wait()
    return driver, took


def by_torch(training: Training, path: Path, active: int) -> float:
    torch.cuda.synchronize()
    profile = torch.profiler.profile(record_shapes=True)
    profile.start()
    began = time.perf_counter()
    for _ in range(active):
        training.step()
    profile.stop()
    took = time.perf_counter() - began
    profile.export_chrome_trace(str(path))
    return took


def counts(path: Path, category: str) -> collections.Counter[tuple[str, str]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = json.loads(data)["traceEvents"]
    return collections.Counter(
        (event["name"], json.dumps(event["args"].get("Input Dims", [])) if category == "cpu_op" else "")
        for event in events
        if event["ph"] == "X" and event.get("cat") == category
    )


def main() -> int:
    folder = Path(tempfile.mkdtemp())
    training = Training()
    for _ in range(10):
        training.step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(STEPS):
        training.step()
    torch.cuda.synchronize()
    bare = time.perf_counter() - began

    driver, kymo_took = by_kymo(training, folder / "own", STEPS)
    traces = list((folder / "own").glob(f"iteration_{STEPS + 2}/*.pt.trace.json.gz"))
    check("kymo's engine left a trace", len(traces) == 1)
    by_torch(training, folder / "first.json", 1)  # what torch does once in a process
    torch_took = by_torch(training, folder / "torch.json", STEPS)
    if traces:
        for category in ("cpu_op", "kernel"):
            ours, theirs = counts(traces[0], category), counts(folder / "torch.json", category)
            print(f"{category}: kymo {sum(ours.values())}, torch {sum(theirs.values())}")
            for name, n in list(((ours - theirs) + (theirs - ours)).items())[:5]:
                print(f"  differs by {n}: {name[0][:80]} {name[1]}")
            check(f"{category}: the same names, shapes and counts", ours == theirs)
        with traces[0].with_name("rank0_key_averages.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        device = [column for column in rows[0] if "device" in column or "cuda" in column]
        print("columns of devices:", ", ".join(device))
        check("the table has time on the GPU", any(float(row[c] or 0) > 0 for row in rows for c in device))
    window = driver.windows[-1] if driver.windows else None
    print(f"bare {bare / STEPS * 1e3:.2f} ms a step; added by kymo {(kymo_took - bare) / STEPS * 1e3:.3f} ms,")
    print(f"by torch.profiler {(torch_took - bare) / STEPS * 1e3:.3f} ms with its stop")
    if window is not None:
        print(f"end of kymo's window: {window.wait_ns / 1e6:.2f} ms, of that {window.engine_ns / 1e6:.2f} for CUPTI")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
