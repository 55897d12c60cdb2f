"""With a real GPU: what `marey report --gpu` says of a program that is launch-bound, and of the same as a CUDA graph.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU.

    python tests/gpu/test_launch_overhead.py

It runs examples/launch_overhead.py, whose steps are known: 60 modules that are 60 kernels or more, 50 times, and 50
launches of a graph of as many.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch

import marey

EXAMPLE = Path(__file__).parents[2] / "examples" / "launch_overhead.py"
MAREY = [sys.executable, "-m", "marey"]
STEPS, MODULES = 50, 60
NO_SQLITE = "marey: this build of marey has no SQLite; install libsqlite3-dev and build it again\n"


def told_by(*command: object) -> Any:
    done = subprocess.run([*MAREY, *map(str, command), "--json"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def check_ranges(gpu: dict[str, Any]) -> None:
    ranges = {row["name"]: row for row in gpu["ranges"]}
    bound = {row["name"]: row for row in gpu["launch_bound"]}
    eager, graph = ranges["eager"], ranges["graph"]
    print(f"eager: {eager['launches']} launches of {eager['work']} pieces, {eager['gpu_ns'] / 1e6:.2f} ms on the GPU")
    print(f"graph: {graph['launches']} launches of {graph['work']} pieces, {graph['gpu_ns'] / 1e6:.2f} ms on the GPU")
    for name in ("eager", "graph"):
        row = bound[name]
        shares = f"{row['launch_wait_share']:.1%} launch wait, {row['host_wait_share']:.1%} host wait"
        rate = f"{row['launches_per_ms']:.1f} launches/ms"
        print(f"{name}: {shares}, {rate}, {row['verdict']}, {row['span_ns'] / 1e6:.2f} ms")
        print(f"{name}: delay {ranges[name]['delay_p50_ns'] / 1e3:.1f} us (median)")
    check("every launch of the eager steps is there, one kernel each", eager["launches"] == eager["work"])
    check("each eager step has its kernels", eager["work"] % STEPS == 0 and eager["work"] >= STEPS * MODULES)
    check("each replay is one launch", graph["launches"] == STEPS)
    check("a graph has as many kernels as the eager step", graph["work"] == eager["work"])
    check("the eager steps are launch-bound", bound["eager"]["verdict"] == "launch-bound")
    check("the graph waits less", bound["graph"]["launch_wait_share"] < bound["eager"]["launch_wait_share"])
    check("the graph is quicker", bound["graph"]["span_ns"] < bound["eager"]["span_ns"])


def check_whole(gpu: dict[str, Any], broken: dict[str, Any]) -> None:
    for device in gpu["devices"]:
        parts = ("busy_ns", "launch_wait_ns", "host_wait_ns", "other_idle_ns")
        check("busy and idle times add up", sum(device[part] for part in parts) == device["span_ns"])
    [row] = [row for row in broken["devices"] if row["window"] == "gpu_span"]
    check("the breakdown has the same busy time", row["busy"] == sum(d["busy_ns"] for d in gpu["devices"]))
    check("every kernel has its shape", all(row["grid"] is not None for row in gpu["shapes"]))
    check("no work is without its launch", gpu["warnings"] == [])
    check("iterations are told", len(gpu["iterations"]) >= 2 * STEPS)


def main() -> int:
    import_torch()
    print(f"marey {marey.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "launches.marey"
        subprocess.run([*MAREY, "run", "-q", "--gpu", "-o", path, "--", sys.executable, EXAMPLE], check=True)
        gpu = told_by("report", path, "--gpu")["gpu"]
        check_ranges(gpu)
        check_whole(gpu, told_by("breakdown", path))
        for format in ("perfetto", "perfetto-gpu", "chrome", "sqlite"):
            command = [*MAREY, "export", path, "--to", format, "-o", Path(folder) / "out"]
            done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
            if format == "sqlite" and done.returncode == 2 and done.stderr == NO_SQLITE:
                print("not in this build: sqlite")
                continue
            print(done.stderr, end="")
            check(f"it goes to {format}", done.returncode == 0)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
