"""With a real GPU: engine="marey" beside torch.profiler: the same operators with shapes, the same kernels, and tables.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_engine_gpu.py

marey comes first: torch keeps CUPTI once it has it. First windows that repeat, each with work that still runs when it
ends: what the training waits for their edges, and which work they have. Then one window against torch's, and what each
adds to a step. At the beginning, tracing goes on and off by orders while threads launch.
"""

from __future__ import annotations

import collections
import csv
import gzip
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch

torch = import_torch()

import marey  # noqa: E402
from marey import _background  # noqa: E402
from marey._engine_marey import MareyEngine  # noqa: E402
from marey._schedule import Action, Schedule  # noqa: E402
from marey._window import Driver  # noqa: E402

STEPS = 20
WINDOWS = 6
WAIT, WARMUP = 8, 20  # steps of 2 to 3 ms; in the first CUPTI is given back, in the others it gets ready, 10 to 20 ms
ACTIVE = 3
BUSY_CYCLES = 40_000_000  # of the GPU: some 20 ms of work that nobody waits for


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


# ---- on and off while threads launch ----


def storm(folder: Path, later: bool) -> None:
    """No crash, no hang, tracing is in the last requested state, and kernels have their launches."""
    is_over = threading.Event()

    def launch() -> None:
        stream, x = torch.cuda.Stream(), torch.ones(64, device="cuda")
        with torch.cuda.stream(stream):
            while not is_over.is_set():
                x = x + 1

    path = folder / f"storm{later}.marey"
    before = marey.gpu.counts()
    marey.start(path)
    threads = [threading.Thread(target=launch) for _ in range(3)]
    for thread in threads:
        thread.start()
    calls_ns = []
    for i in range(30):
        for act in (marey.gpu.start, marey.gpu.stop):
            began_ns = time.perf_counter_ns()
            act(later=later)
            calls_ns.append(time.perf_counter_ns() - began_ns)
            if i % 3 == 0:
                marey.gpu.settle()
            else:
                time.sleep(0.002 * (i % 4))
    marey.gpu.settle()
    check("tracing is off behind the last stop", not marey.gpu.is_on() and marey.gpu.is_settled())
    told = {name: n - before[name] for name, n in marey.gpu.counts().items()}
    is_over.set()
    for thread in threads:
        thread.join()
    marey.stop()
    words = "by a thread" if later else "at once"
    print(f"60 starts and stops {words} beside 3 threads: {statistics.median(calls_ns) / 1e3:.0f} us each, at most")
    print(f"{max(calls_ns) / 1e3:.0f}; {told['kernels']} kernels, {told['calls']} calls, {told['dropped']} dropped")
    check("there were kernels between the orders", told["kernels"] > 0)
    # What waits for the GPU when tracing starts was launched before it: a few kernels of each thread.
    n_without = told["kernels"] - told["calls"]
    check(f"{n_without} kernels more than launches: at most 90", n_without <= 90)
    launched = marey.load(path).ranges
    print("calls in the recording:", dict(zip(launched["name"], launched["count"])))


# ---- windows that repeat ----


def windows(training: Training, folder: Path) -> None:
    driver = Driver(Schedule(WAIT, WARMUP, ACTIVE, WINDOWS), MareyEngine(folder), folder, {"averages"})
    steps_ms: dict[str, list[float]] = collections.defaultdict(list)
    driver.start()
    for _ in range(WINDOWS * (WAIT + WARMUP + ACTIVE) + 2):
        began = time.perf_counter()
        action = driver.action
        training.step()
        is_last = action is Action.RECORD_AND_SAVE
        if is_last:
            torch.cuda._sleep(BUSY_CYCLES)
            torch.cosh(training.batch)
        driver.step()
        if is_last:
            torch.sinh(training.batch)
        steps_ms[action.name].append((time.perf_counter() - began) * 1e3)
    driver.stop()
    _background.wait()
    marey.stop()
    for name, times in steps_ms.items():
        print(f"steps {name}: {statistics.median(times):.2f} ms by the host, at most {max(times):.2f}")
    check_waits(list(driver.windows))
    check_work(driver, folder)


def check_waits(saved: list[Any]) -> None:
    for window in saved:
        waits = (window.prepare_ns, window.begin_ns, window.wait_ns)
        words = "prepared {:.3f} ms, begun {:.3f} ms, ended {:.3f} ms".format(*(ns / 1e6 for ns in waits))
        print(f"window to step {window.step_num}: {words} {' '.join(window.notes)}")
    check(f"all {WINDOWS} windows were saved", len(saved) == WINDOWS)
    if not saved:
        return
    prepared = max(window.prepare_ns for window in saved)
    begun, ended = max(window.begin_ns for window in saved), max(window.wait_ns for window in saved)
    check(f"a warm-up begins with {prepared / 1e6:.3f} ms of waiting at most: below 1 ms", prepared < 1_000_000)
    check(f"a window begins with {begun / 1e6:.3f} ms of waiting at most: below 1 ms", begun < 1_000_000)
    check(f"a window ends with {ended / 1e6:.3f} ms of waiting at most: below 1 ms", ended < 1_000_000)


def check_work(driver: Driver, folder: Path) -> None:
    totals = []
    for window in driver.windows:
        traces = list(Path(window.folder).glob("*.pt.trace.json.gz"))
        check(f"the window to step {window.step_num} has a trace", len(traces) == 1)
        if not traces:
            continue
        names = [name for name, _ in counts(traces[0], "kernel").elements()]
        totals.append(len(names))
        last = sum("cosh_kernel" in name and "acosh" not in name for name in names)
        check(f"it has the work that ran behind its end, {last} of 1", last == 1)
        check("it has no work that was launched behind its end", not any("sinh_kernel" in name for name in names))
    print(f"kernels of the windows: {totals}")
    check("all windows have as many kernels", len(set(totals)) == 1)
    kernels = marey.load(folder / "marey_engine.marey").kernels
    check("nor has the recording", not any("sinh_kernel" in name for name in kernels["name"]))


# ---- one window, and torch's ----


def by_marey(training: Training, folder: Path, active: int) -> float:
    driver = Driver(Schedule(0, WARMUP, active, 1), MareyEngine(folder, record_shapes=True), folder, {"averages"})
    driver.start()
    for _ in range(WARMUP):
        training.step()
        torch.cuda.synchronize()  # what was launched before the window has run before it, as with torch
        driver.step()
    began = time.perf_counter()
    for _ in range(active):
        training.step()
        driver.step()
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    driver.stop()
    _background.wait()
    return took


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


def compare(trace: Path, theirs_at: Path) -> None:
    for category in ("cpu_op", "kernel"):
        ours, theirs = counts(trace, category), counts(theirs_at, category)
        print(f"{category}: marey {sum(ours.values())}, torch {sum(theirs.values())}")
        for name, n in list(((ours - theirs) + (theirs - ours)).items())[:5]:
            print(f"  differs by {n}: {name[0][:80]} {name[1]}")
        check(f"{category}: the same names, shapes and counts", ours == theirs)
    with trace.with_name("rank0_key_averages.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    device = [column for column in rows[0] if "device" in column or "cuda" in column]
    print("columns of devices:", ", ".join(device))
    check("the table has time on the GPU", any(float(row[c] or 0) > 0 for row in rows for c in device))


def main() -> int:
    folder = Path(tempfile.mkdtemp())
    training = Training()
    for _ in range(10):
        training.step()
    for function in (torch.cosh, torch.sinh):  # what is loaded with the first use is not measured
        function(training.batch)
    torch.cuda.synchronize()
    storm(folder, later=True)
    storm(folder, later=False)
    windows(training, folder / "windows")
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(STEPS):
        training.step()
    torch.cuda.synchronize()
    bare = time.perf_counter() - began

    marey_took = by_marey(training, folder / "own", STEPS)
    traces = list((folder / "own").glob(f"iteration_{STEPS + WARMUP}/*.pt.trace.json.gz"))
    check("marey's engine left a trace", len(traces) == 1)
    by_torch(training, folder / "first.json", 1)  # what torch does once in a process
    torch_took = by_torch(training, folder / "torch.json", STEPS)
    if traces:
        compare(traces[0], folder / "torch.json")
    print(f"bare {bare / STEPS * 1e3:.2f} ms a step; added by marey {(marey_took - bare) / STEPS * 1e3:.3f} ms,")
    print(f"by torch.profiler {(torch_took - bare) / STEPS * 1e3:.3f} ms with its stop")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
