"""With a real GPU: what `marey run --gpu` records of a program is what the program did.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or C compiler.

    python tests/gpu/test_gpu_tracing.py

The program that is traced, cuda_program.c, uses CUDA's driver and nothing of marey; it says what it did. Times are
compared with CUDA's own events. How far the clocks of GPU and host agree is bounded by cause and effect: a
kernel cannot begin before its launch was called, nor end after the host has waited for it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

from gpu_program import FAILURES, check, skip

import marey

HERE = Path(__file__).parent
# 20 iterations of 7 kernels, under a range each.
TRAINING = """
import marey, torch
x = torch.ones(64, device="cuda")
torch.cuda.synchronize()
for i in range(20):
    with marey.iteration():
        with marey.range("add" if i % 2 else "subtract"):
            for _ in range(7):
                x = x + 1
        torch.cuda.synchronize()
print("kernels", 7)
"""
MAREY = [sys.executable, "-m", "marey"]


def build(folder: Path) -> Path:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        skip("there is no C compiler")
    program = folder / "cuda_program"
    subprocess.run([compiler, "-O1", "-o", program, HERE / "cuda_program.c", "-ldl"], check=True)
    return program


class Traced:
    """One run of the program under marey, what it said and what was recorded."""

    def __init__(self, folder: Path, program: Path, mode: str, *options: str, seconds: float = 0) -> None:
        self.path = folder / f"{mode}.marey"
        inner = [str(program), mode] if mode != "training" else [sys.executable, "-c", TRAINING]
        command = [*MAREY, "run", "--gpu", *options, "--force", "-o", str(self.path), "--", *inner]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if seconds:
            assert process.stdout is not None
            process.stdout.readline()  # it is under way
            kill_child_of(process.pid)
        out, self.errors = process.communicate(timeout=120)
        self.status = process.returncode
        self.said = {line.split()[0]: float(line.split()[1]) for line in out.splitlines() if " " in line}
        text = subprocess.run(
            [*MAREY, "export", self.path, "--to", "csv", "-o", "-"], check=False, stdout=subprocess.PIPE, text=True
        ).stdout
        self.rows = list(csv.DictReader(io.StringIO(text)))

    def work(self, kind: str, name: str = "") -> list[dict[str, str]]:
        return [row for row in self.rows if row["kind"] == kind and name in row["name"]]


def kill_child_of(pid: int) -> None:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)


def ns(row: dict[str, str], column: str) -> int:
    return int(row[column])


def check_counts(run: Traced) -> None:
    check(f"the program ran well ({run.status}) {run.errors.strip()}", run.status == 0)
    check(
        "kernels by name are as many as were launched",
        len(run.work("kernel", "spin(unsigned long)")) == run.said["spin"],
    )
    check("and on the second stream", len(run.work("kernel", "gemm_compute")) == run.said["compute"])
    check("two streams", len({row["stream"] for row in run.work("kernel")}) == 2)
    into, back = run.work("copy", "Memcpy HtoD"), run.work("copy", "Memcpy DtoH")
    check("copies", (len(into), len(back)) == (run.said["copies_in"], run.said["copies_out"]))
    check("bytes of copies", all(float(row["bytes"]) == run.said["bytes"] for row in into + back))
    check("memsets", len(run.work("set", "Memset")) == run.said["sets"])
    launches = [row for row in run.rows if row["kind"] == "range" and row["name"] == "cuLaunchKernel"]
    check("calls that launch", len(launches) == run.said["spin"] + run.said["compute"])
    check("no kernel without a correlation", len({row["correlation"] for row in run.work("kernel")}) == len(launches))


def check_times(run: Traced) -> None:
    total = sum(ns(row, "duration_ns") for row in run.work("kernel", "spin")) / 1e3
    ratio = total / run.said["microseconds"]
    check(f"durations are {100 * (ratio - 1):+.3f} % off CUDA's events", abs(ratio - 1) <= 0.02)


def check_overlap(run: Traced) -> None:
    done = subprocess.run([*MAREY, "breakdown", run.path, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    row = json.loads(done.stdout)["devices"][0]
    for name, column in (
        ("compute_ms", "compute"),
        ("hidden_ms", "hidden_comm"),
        ("exposed_ms", "exposed_comm"),
    ):
        ratio = row[column] / 1e6 / run.said[name]
        check(f"planted {name}: {row[column] / 1e6:.3f} of {run.said[name]:.0f}", abs(ratio - 1) <= 0.01)


def check_graph(run: Traced) -> None:
    kernels = run.work("kernel", "spin")
    check("kernels of a graph", len(kernels) == run.said["kernels"])
    check("as many correlations as launches", len({row["correlation"] for row in kernels}) == run.said["launches"])
    nodes = Counter(json.loads(row["value"])["graph node id"] for row in kernels if "graph node id" in row["value"])
    check(f"nodes {dict(nodes)}", len(nodes) == run.said["nodes"] and set(nodes.values()) == {run.said["launches"]})


def check_clocks(run: Traced) -> None:
    launches = sorted(ns(row, "start_ns") for row in run.rows if row["name"] == "cuLaunchKernel")
    waits = sorted(
        ns(row, "start_ns") + ns(row, "duration_ns") for row in run.rows if row["name"] == "cuStreamSynchronize"
    )
    kernels = sorted((ns(row, "start_ns"), ns(row, "duration_ns")) for row in run.work("kernel", "spin"))
    check(
        f"{len(kernels)} kernels, {len(launches)} launches, {len(waits)} waits",
        len(kernels) == len(launches) == len(waits),
    )
    after = [begin - launch for (begin, _), launch in zip(kernels, launches)]
    before = [wait - begin - duration for (begin, duration), wait in zip(kernels, waits)]
    print(
        f"a kernel begins {min(after) / 1e3:.2f} us or more behind its launch call (median {median(after) / 1e3:.2f}), "
        f"the host knows {min(before) / 1e3:.2f} us or more behind its end (median {median(before) / 1e3:.2f}): "
        f"the clocks agree to within {max(min(after), min(before)) / 1e3:.2f} us"
    )
    check("no kernel begins before its launch nor ends after the wait for it", min(after) >= 0 and min(before) >= 0)


def check_endings(folder: Path, program: Path) -> None:
    run = Traced(folder, program, "exit")
    check(f"a program that leaves while a kernel runs ends well {run.errors.strip()}", run.status == 0)
    check("what had ended is there", len(run.work("kernel", "spin")) == run.said["spin"])
    run = Traced(folder, program, "fork")
    check(f"a program that forks ends well {run.errors.strip()}", run.status == 0)
    check("and its kernels are there", len(run.work("kernel", "spin")) == run.said["spin"])
    run = Traced(folder, program, "endless", seconds=1)
    n = len(run.work("kernel", "spin"))
    check(f"after kill -9 the kernels are there: {n} of 5000 and more", n > 3500)


def check_training(folder: Path, program: Path) -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        return
    for options, n_iterations in (((), 20), (("--gpu-schedule", "4:2:3:2"), 6), (("--gpu-schedule", "0:0:5"), 20)):
        run = Traced(folder, program, "training", *options)
        adds = run.work("kernel", "vectorized_elementwise_kernel")
        n = len([row for row in adds if "FillFunctor" not in row["name"]])
        check(f"{' '.join(options) or 'no schedule'}: {n} kernels {run.errors.strip()}", n == 7 * n_iterations)
        if not options:
            done = subprocess.run(
                [*MAREY, "report", str(run.path), "--gpu"], stdout=subprocess.PIPE, text=True, check=False
            )
            print(done.stdout)


def main() -> int:
    if not Path("/dev/nvidia0").exists():
        skip("there is no NVIDIA GPU")
    print(f"marey {marey.__version__}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder)
        check_counts(Traced(folder, program, "count"))
        check_times(Traced(folder, program, "times"))
        check_overlap(Traced(folder, program, "overlap"))
        check_graph(Traced(folder, program, "graph"))
        check_clocks(Traced(folder, program, "clocks"))
        check_endings(folder, program)
        check_training(folder, program)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
