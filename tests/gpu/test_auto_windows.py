"""With a real GPU: `marey run python PROGRAM`, as a user starts it, prints the right finding; windows of GPU tracing.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_auto_windows.py [NAME...]

Programs that are slow for a known reason, and one that is healthy. Then CUDA graphs made before, in and after windows,
torch.profiler in the middle, two processes, and what windows cost: steps in them against steps between them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch

# What each program begins with: steps with their times, and whether CUDA calls of a step are recorded.
HEAD = """
import json, sys, time
import torch
import marey
steps = []
def count():
    return marey.gpu.counts()["calls"]
class Step:
    def __enter__(self):
        self.calls, self.began = count(), time.perf_counter()
    def __exit__(self, *error):
        steps.append((time.perf_counter() - self.began, count() != self.calls))
def finish(**more):
    torch.cuda.synchronize()
    traced = [i for i, (_, is_traced) in enumerate(steps) if is_traced]
    print("RESULT", json.dumps({"ms": [s * 1e3 for s, _ in steps], "traced": traced, **more}))
"""

STARVED = """
from torch.utils.data import DataLoader, Dataset
class Items(Dataset):
    def __len__(self):
        return 64 * 120
    def __getitem__(self, i):
        return torch.full((256,), float(i))
def augment(x):
    total = 0
    for i in range(12000):
        total += i * i % 7
    return x + total
def collate(items):
    return torch.stack([augment(x) for x in items])
def train():
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(Items(), batch_size=64, collate_fn=collate):
        with Step():
            loss = model(batch.cuda()).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
train()
finish()
"""

LAUNCHES = """
def train(n):
    layers = [torch.nn.Linear(64, 64) for _ in range(20)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    batch = torch.randn(32, 64, device="cuda")
    total = 0
    for _ in range(n):
        with Step():
            loss = model(batch).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
train(int(sys.argv[1]))
finish()
"""

SYNCS = """
def summarize(values):
    total = 0
    for i in range(100000):
        total += i * i % 7
    return total
def train():
    model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, bias=False) for _ in range(3)]).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    batch = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for _ in range(300):
        with Step():
            loss = model(batch).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            value = loss.item()  # the wait
            summarize(value)
train()
finish()
"""

HEALTHY = """
def train():
    model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, bias=False) for _ in range(4)]).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    batch = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for i in range(300):
        with Step():
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
train()
finish()
"""

# Graphs by hand from step FIRST on, and torch.compile where asked for. Kernels are counted by window.
GRAPHS = """
def train(first, is_compiled):
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]).cuda()
    runs = torch.compile(model, mode="reduce-overhead") if is_compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, other = torch.randn(32, 64, device="cuda"), torch.ones(64, device="cuda")
    graph = None
    windows, kernels, had_any = [], 0, False
    for i in range(420):
        if i >= first and (i in (2, 7, 12, 60, 70) or i % 40 == 20):
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(10):
                    other = other * 1.0
        with Step():
            runs(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if graph is not None:
                graph.replay()
        if had_any and not steps[-1][1]:
            marey.gpu.settle()
            now = marey.gpu.counts()["kernels"]
            windows.append((i - 1, now - kernels))
            kernels = now
        had_any = steps[-1][1]
    finish(windows=windows, counts=marey.gpu.counts())
train(int(sys.argv[1]), sys.argv[2] == "compiled")
"""

PROFILED = """
import gzip, os
def train(has_graph):
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, other = torch.randn(32, 64, device="cuda"), torch.ones(64, device="cuda")
    if has_graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            other = other * 1.0
    profile = None
    for i in range(120):
        if i == 33:
            profile = torch.profiler.profile()
            profile.start()
        if i == 38:
            profile.stop()
            profile.export_chrome_trace("torch.json")
        with Step():
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if has_graph:
                graph.replay()
        time.sleep(0.01)  # Kineto gives CUPTI back in the background
    events = [e for e in json.load(open("torch.json"))["traceEvents"] if e.get("ph") == "X"]
    host = [e["ts"] for e in events if e.get("cat") == "cpu_op"]
    kernels = [e["ts"] for e in events if e.get("cat") == "kernel"]
    inside = sum(min(host) <= ts <= max(host) + 1e6 for ts in kernels)
    finish(kernels=len(kernels), inside=inside)
train(sys.argv[1] == "graph")
"""

PAIR = """
import subprocess, sys
runs = [subprocess.Popen([sys.executable, "launches.py", "150"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
print("".join(run.communicate()[0] for run in runs))
sys.exit(max(run.returncode for run in runs))
"""

# One process, in turns: after tracing that gave CUPTI back, and after tracing that only let go of it, as with graphs.
RESIDUE = """
import ctypes
from marey import _native
def train():
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(20)]).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    batch = torch.randn(32, 64, device="cuda")
    def run(n):
        took = []
        for _ in range(n):
            torch.cuda.synchronize()
            began = time.perf_counter()
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.synchronize()
            took.append((time.perf_counter() - began) * 1e3)
        return sorted(took)[n // 2]
    def window():
        marey.gpu.start()
        run(5)
        marey.gpu.stop()
    marey.start("residue.marey")
    run(50)
    before = [run(60)]
    _native.gpu_capture(True)
    _native.gpu_capture(False)
    finalized, kept = [], []
    for _ in range(8):
        window()
        kept.append(run(60))
        path = next(line.split()[-1] for line in open("/proc/self/maps") if "libcupti" in line)
        ctypes.CDLL(path).cuptiFinalize()
        finalized.append(run(60))
    finish(before=before, finalized=finalized, kept=kept)
train()
"""

SOURCES = {
    "starved": STARVED,
    "launches": LAUNCHES,
    "syncs": SYNCS,
    "healthy": HEALTHY,
    "graphs": GRAPHS,
    "profiled": PROFILED,
    "pair": PAIR,
    "residue": RESIDUE,
}


class Run:
    """A program under `marey run`, its printed results, and its diagnosis."""

    def __init__(self, folder: Path, name: str, *args: str, options: str = "", env: Any = None, is_plain: bool = False):
        for each, source in SOURCES.items():
            (folder / f"{each}.py").write_text(source if each == "pair" else HEAD + source)
        self.path = folder / f"{name}.marey"
        command = [sys.executable, f"{name}.py", *args]
        if not is_plain:
            command = [sys.executable, "-m", "marey", "run", "--force", "-o", str(self.path), *command]
        print(f"---- {name} {' '.join(args)} {options}", flush=True)
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **({"MAREY_OPTIONS": options} if options else {}), **(env or {})},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        self.status, self.stderr = done.returncode, done.stderr
        lines = [line[7:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        self.results = [json.loads(line) for line in lines]
        print(done.stderr[-3000:], end="", flush=True)
        check(f"{name} ends with 0, not {self.status}", self.status == 0)
        for result in self.results:
            show_cost(result)
        self.diagnosis: dict[str, Any] = {}
        if not is_plain:
            text = subprocess.run(
                [sys.executable, "-m", "marey", "report", str(self.path), "--diagnosis", "--json"],
                capture_output=True,
                text=True,
                check=False,
            ).stdout
            self.diagnosis = json.loads(text or "{}")
            print("device", self.diagnosis.get("device"), "steps", self.diagnosis.get("steps"))
            for finding in self.diagnosis.get("findings", []):
                place = [(w["function"], Path(w["file"]).name, w["line"]) for w in finding["where"]]
                print("finding", finding["id"], finding["share"], finding["gain"], place, flush=True)

    @property
    def result(self) -> dict[str, Any]:
        return self.results[0] if self.results else {"ms": [], "traced": []}

    @property
    def first(self) -> dict[str, Any]:
        findings = self.diagnosis.get("findings") or [{}]
        return {"id": None, "where": [{"function": None, "line": 0, "file": ""}], "share": 0, **findings[0]}


def show_cost(result: dict[str, Any]) -> None:
    """By alternation: steps in windows against their neighbours, as a share of all steps."""
    traced, ms = set(result["traced"]), result["ms"]
    inside = [ms[i] for i in traced if i >= 5]  # a step ends in the optimizer, so that what follows is of the next one
    # The steps around a window are its control; those right beside it may wait for its edges.
    near = [ms[i] for i in range(len(ms)) if i not in traced and i > 3 and any(3 <= abs(i - t) <= 12 for t in traced)]
    edges = [ms[i] for i in range(len(ms)) if i not in traced and any(abs(i - t) <= 2 for t in traced) and i > 2]
    if not inside or not near:
        print(f"{len(ms)} steps, traced: {sorted(traced)}")
        return
    base = statistics.median(near)
    control = statistics.mean(min(x, 2 * base) for x in near)  # without the garbage collections of single steps
    extra = sum(min(x, 4 * base) - control for x in inside) + sum(min(x, 4 * base) - control for x in edges)
    print(
        f"{len(ms)} steps, traced {sorted(traced)[:12]}... {len(traced)}; a step between windows {base:.3f} ms, in one "
        f"{statistics.median(inside):.3f}, beside one {statistics.median(edges):.3f}; in all "
        f"{extra / sum(ms) * 100:.2f} % of the steps' time",
        flush=True,
    )


def line_of(name: str, text: str) -> int:
    """The line of a program that contains a string."""
    source = (HEAD + SOURCES[name]).splitlines()
    return next(i + 1 for i, line in enumerate(source) if text in line)


# ---- output ----


def starved(folder: Path) -> None:
    run = Run(folder, "starved")
    place = run.first["where"][0]
    check(f"the first finding is input-bound: {run.first['id']}", run.first["id"] == "input-bound")
    check(f"in augment: {place['function']}", place["function"] == "augment")
    lines = line_of("starved", "for i in range(12000)"), line_of("starved", "total += i * i % 7")
    check(f"at its loop, {lines}: {place['line']}", place["line"] in lines)
    check(f"most of the step: {run.first['share']}", run.first["share"] > 0.6)
    check("the device is idle most of the time", (run.diagnosis.get("device") or {"idle": 0})["idle"] > 0.6)


def launches(folder: Path) -> None:
    run = Run(folder, "launches", "1500")
    place = run.first["where"][0]
    check(
        f"the first finding is host-bound or sync-bound: {run.first['id']}",
        run.first["id"] in ("host-bound", "sync-bound"),
    )
    lines = range(line_of("launches", "loss = model(batch)"), line_of("launches", "total += loss.item()") + 1)
    check(f"in the loop: {place['function']} {place['line']}", place["function"] == "train" and place["line"] in lines)


def syncs(folder: Path) -> None:
    run = Run(folder, "syncs")
    place = run.first["where"][0]
    check(f"the first finding is sync-bound: {run.first['id']}", run.first["id"] == "sync-bound")
    check(f"at item(): {place['line']}", place["line"] == line_of("syncs", "# the wait"))


def healthy(folder: Path) -> None:
    run = Run(folder, "healthy")
    check("no finding", run.diagnosis.get("findings") == [])
    check("the GPU computes", (run.diagnosis.get("device") or {"compute": 0})["compute"] > 0.95)


# ---- windows ----


def check_graphs(run: Run) -> None:
    windows = run.result.get("windows", [])
    print("kernels by window:", windows, run.result.get("counts"))
    check(f"at least 20 windows: {len(windows)}", len(windows) >= 20)
    late = [n for i, n in windows if i > 110]
    # Activity queued at the start of a window is recorded with it.
    check(
        f"none lacks kernels: {min(late, default=0)} to {max(late, default=0)}",
        bool(late) and max(late) - min(late) <= 5,
    )


def graphs(folder: Path) -> None:
    check_graphs(Run(folder, "graphs", "0", "eager", options="gpu.windows=20%"))
    check_graphs(Run(folder, "graphs", "60", "eager", options="gpu.windows=20%"))


def compiled(folder: Path) -> None:
    check_graphs(Run(folder, "graphs", "60", "compiled", options="gpu.windows=20%"))


def profiled(folder: Path) -> None:
    for graph, teardown in (("plain", "0"), ("plain", "1"), ("graph", "0")):
        run = Run(folder, "profiled", graph, options="gpu.windows=20%", env={"TEARDOWN_CUPTI": teardown})
        n, inside = run.result.get("kernels", 0), run.result.get("inside", 0)
        check(f"torch.profiler has kernels at its own times: {inside} of {n}", 0 < n == inside)
        check("windows came before it", {5, 6, 7, 8, 9} <= set(run.result["traced"]))
        if teardown == "1":
            check("and after it", max(run.result["traced"], default=0) > 40)


def pair(folder: Path) -> None:
    run = Run(folder, "pair")
    check("two processes", len(run.results) == 2)
    check("with the same windows", len({str(result["traced"]) for result in run.results}) == 1)
    check("the first at step 5", {5, 6, 7, 8, 9} <= set(run.result["traced"]))


def residue(folder: Path) -> None:
    result = Run(folder, "residue", is_plain=True).result
    for name in ("before", "finalized", "kept"):
        print(f"a step, {name}: {[round(ms, 3) for ms in result.get(name, [])]} ms")
    ratios = [kept / own for kept, own in zip(result.get("kept", []), result.get("finalized", []))]
    if ratios:
        print(f"what is left where CUPTI stays initialized: {(statistics.median(ratios) - 1) * 100:.1f} % of a step")


def main() -> int:
    import_torch()
    tests = (starved, launches, syncs, healthy, graphs, compiled, profiled, pair, residue)
    for test in tests:
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    test(Path(folder))
                except Exception as error:  # the others are tried all the same
                    check(f"{test.__name__}: {error!r}", False)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
