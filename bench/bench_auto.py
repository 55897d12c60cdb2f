#!/usr/bin/env python3
"""Overhead of `marey run` and of other tools for unmodified programs.

    bench_auto.py [--quick] [--dir DIR] [--results FILE] [--rounds N] [--peers] [PROGRAM...]

The tool is switched on and off between blocks of steps of one process (bench/auto/alternate.py): two processes of the
same program differ by up to 10 % only because of their memory layout. A round is a pair of blocks; the cost is the
median of the ratios, on to off, minus 1, with its 95 % interval. Without a GPU, times are CPU times of the program,
which computes in one thread; with one, they are wall times. CPU time of the marey process is a separate row. `claimed`
compares the cost in the diagnosis of 10 runs with the cost measured here. `start` is what `marey run` adds to `python
-c pass`. With --peers, py-spy, austin, viztracer and torch.profiler are measured as well. A program whose packages are
missing is skipped with a message.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple, Optional

from bench_results import Interval, Results, median_with_interval, options_of

AUTO = Path(__file__).resolve().parent / "auto"
BUILD = Path(os.environ.get("MAREY_BUILD", AUTO.parent.parent / "build" / "bench"))
BAR, BAR_HIGH = 0.01, 0.02
WARM_UP = 2  # pairs of blocks


class Program(NamedTuple):
    """A program of bench/auto."""

    what: str
    script: str
    arguments: tuple[str, ...]
    steps: int  # per block, which takes about 100 ms
    needs: tuple[str, ...] = ("torch",)
    is_gpu: bool = False


PROGRAMS = {
    "llama": Program("HF Llama, launch-bound", "llama.py", (), 5, ("torch", "transformers"), is_gpu=True),
    "starved": Program("data-starved loop", "starved.py", (), 40, is_gpu=True),
    "nanogpt": Program("nanoGPT on the CPU", "nanogpt.py", (), 4),
    "lightning": Program("Lightning on the CPU", "lightning_cpu.py", (), 10, ("torch", "lightning")),
    "ddp": Program("DDP, 2 gloo ranks", "ddp.py", (), 10),
    "workers8": Program("8 DataLoader workers", "workers.py", ("8",), 10),
    "workers64": Program("64 DataLoader workers", "workers.py", ("64",), 10),
    "numpy": Program("numpy script", "numpy_svd.py", (), 6, ("numpy",)),
    "threads": Program("pthreads program in C", "threads.c", (), 20, ()),
}


def has_gpu() -> bool:
    return os.path.exists("/dev/nvidiactl")


def marey(recording: Path) -> list[str]:
    return [str(BUILD / "cli" / "marey"), "run", "--quiet", "--force", "-o", str(recording)]


def peers(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """For each other tool, its kind for alternate.py and its command, to which the program is appended."""
    beside = Path(sys.executable).parent
    found: dict[str, tuple[str, list[str]]] = {}
    commands = {
        "py-spy": ["record", "-r", "100", "-f", "raw", "-o", str(folder / "spy.txt"), "--"],
        "austin": ["-i", "10ms", "-C", "-o", str(folder / "austin.mojo")],
    }
    for name, arguments in commands.items():
        path = shutil.which(name, path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
        if path:
            found[name] = ("parent", [path, *arguments])
    if importlib.util.find_spec("viztracer") is not None:
        found["viztracer"] = ("viz", [])
    if importlib.util.find_spec("torch") is not None:
        found["torch.profiler, schedule 1/1/3"] = ("cycle", [])
        found["torch.profiler, always on"] = ("always", [])
    return found


class Costs(NamedTuple):
    """One comparison of a program with and without a tool."""

    ratio: Interval  # minus 1
    tool_cpu: float  # share of a core used by the tool's process


class Watch(threading.Thread):
    """Reads the CPU time of a process, without its children, until it ends."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.stat = Path(f"/proc/{pid}/stat")
        self.cpu_s = 0.0

    def run(self) -> None:
        tick = os.sysconf("SC_CLK_TCK")
        while True:
            try:
                fields = self.stat.read_text().rpartition(")")[2].split()
            except OSError:
                return
            self.cpu_s = max(self.cpu_s, (int(fields[11]) + int(fields[12])) / tick)
            time.sleep(0.2)


class Bench:
    """State shared by all parts."""

    def __init__(self, folder: Path, results: Results, rounds: int) -> None:
        self.folder, self.results, self.rounds = folder, results, rounds
        self.recording = folder / "auto.marey"

    def command(self, program: Program, steps: int) -> list[str]:
        arguments = [str(steps), *program.arguments]
        if not program.script.endswith(".c"):
            return [sys.executable, str(AUTO / program.script), *arguments]
        binary = self.folder / "threads"
        compiler = ["cc", "-O2", "-g", "-pthread", str(AUTO / program.script), "-o", str(binary)]
        subprocess.run(compiler, check=True)
        return [str(binary), *arguments]

    def compare(self, program: Program, kind: str, tool: list[str]) -> Costs:
        """Run it under the tool, which is switched on and off, or always on without a kind."""
        command = [*tool, *self.command(program, program.steps * 2 * (self.rounds + WARM_UP) + 1)]
        log, said = self.folder / "blocks.txt", self.folder / "said.txt"
        log.unlink(missing_ok=True)
        environment = {
            **os.environ,
            **({"BENCH_ALTERNATE": f"{kind},{program.steps},{log}"} if kind else {}),
            "OMP_NUM_THREADS": "1",  # threads that spin while they wait use CPU time at random
            "OPENBLAS_NUM_THREADS": "1",
        }
        began = time.monotonic()
        with open(said, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
        watch = Watch(process.pid)
        watch.start()
        if process.wait() != 0:
            raise RuntimeError(f"{command} ended with {process.returncode}: {said.read_text(errors='replace')[-2000:]}")
        tool_cpu = watch.cpu_s / (time.monotonic() - began)
        if not kind:
            return Costs((0, 0, 0), tool_cpu)
        column = 1 if program.is_gpu and has_gpu() else 2
        blocks = [line.split() for line in log.read_text().splitlines()][2 * WARM_UP :]
        ratios = []
        for pair in zip(blocks[::2], blocks[1::2]):
            off, on = (float(block[column]) for block in sorted(pair, key=lambda block: block[0]))
            ratios.append(on / off - 1)
        return Costs(median_with_interval(ratios), tool_cpu)

    def claimed(self) -> Optional[tuple[float, float]]:
        """Return the interval of the cost in the diagnosis of the last recording."""
        command = [str(BUILD / "cli" / "marey"), "report", str(self.recording), "--json"]
        report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        cost = report["diagnosis"]["cost"]
        return (cost["low"], cost["high"]) if cost["measured"] else None


def text(costs: Interval) -> str:
    low, middle, high = (100 * x for x in costs)
    return f"{middle:.2f} % ({low:.2f} to {high:.2f})"


def measure_programs(bench: Bench, names: list[str], with_peers: bool) -> None:
    for name in names:
        program = PROGRAMS[name]
        missing = [package for package in program.needs if importlib.util.find_spec(package) is None]
        if missing:
            bench.results.put(f"marey run: {program.what}", f"left out: no {', '.join(missing)}")
            continue
        costs = bench.compare(program, "parent" if program.script.endswith(".c") else "marey", marey(bench.recording))
        is_met = costs.ratio[1] <= BAR and costs.ratio[2] <= BAR_HIGH
        bench.results.put(f"marey run: {program.what}", text(costs.ratio), "<= 1 %, upper end <= 2 %", is_met)
        bench.results.put(f"marey run: {program.what}, CPU of marey", f"{100 * costs.tool_cpu:.2f} % of a core")
        if not with_peers or program.script.endswith(".c"):
            continue
        for peer, (kind, command) in peers(bench.folder).items():
            if "torch" in peer and "torch" not in program.needs:
                continue
            try:
                found = text(bench.compare(program, kind, command).ratio)
            except RuntimeError as error:
                found = f"failed: {str(error).splitlines()[-1][:80]}"
            bench.results.put(f"{peer}: {program.what}", found)


def measure_claims(bench: Bench, n_runs: int) -> None:
    """Compare the cost in the diagnosis of runs in which the tool stays on with the cost measured here."""
    low, _, high = bench.compare(PROGRAMS["starved"], "marey", marey(bench.recording)).ratio
    n_covered = n_claimed = 0
    for _ in range(n_runs):
        bench.compare(PROGRAMS["starved"], "", marey(bench.recording))
        claim = bench.claimed()
        n_claimed += claim is not None
        n_covered += claim is not None and claim[0] <= max(high, 0) and low <= claim[1]
        print(f"  claimed {claim}, measured {low:.4f} to {high:.4f}", flush=True)
    is_met = n_claimed > 0 and n_covered >= 0.9 * n_claimed
    bench.results.put("claimed cost covers the measured one", f"{n_covered} of {n_claimed}", ">= 9 of 10", is_met)


def measure_start(bench: Bench) -> None:
    plain, recorded = [], []
    command = [sys.executable, "-c", "pass"]
    for _ in range(max(5, bench.rounds // 2)):
        for times, words in ((plain, command), (recorded, [*marey(bench.recording), *command])):
            began = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True)
            times.append(time.perf_counter() - began)
    added = 1e3 * (statistics.median(recorded) - statistics.median(plain))
    bench.results.put("marey run python -c pass, added", f"{added:.1f} ms", "<= 60 ms", added <= 60)


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("--rounds", type=int, help="pairs of blocks (60)")
    parser.add_argument("--peers", action="store_true", help="other tools as well")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"{', '.join(PROGRAMS)}, claimed, start")
    options = parser.parse_args()
    names = options.programs or [*PROGRAMS, "claimed", "start"]
    unknown = [name for name in names if name not in (*PROGRAMS, "claimed", "start")]
    if unknown:
        parser.error(f"unknown program: {unknown[0]}")
    rounds = options.rounds or (10 if options.quick else 60)
    bench = Bench(Path(options.dir).resolve(), Results(options.results), rounds)
    measure_programs(bench, [name for name in names if name in PROGRAMS], options.peers)
    if "claimed" in names:
        measure_claims(bench, 2 if options.quick else 10)
    if "start" in names:
        measure_start(bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
