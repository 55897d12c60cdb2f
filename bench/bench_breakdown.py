#!/usr/bin/env python3
"""Speed and memory of `marey breakdown` and `marey report --path` on traces of PyTorch's profiler.

    bench_breakdown.py [--quick] [--dir DIR] [--results FILE]

kineto_trace writes the trace: reproducible, with sizes and kinds of events as in a real job. Each round breaks it down
uncompressed, gzipped, and with Holistic Trace Analysis, in rotating order. Figures are CPU time, user and system, of
all threads, so they are per core and hardly depend on other processes; bytes are uncompressed. The critical path is
that of the imported trace, whose reading is not part of it: a range, a launch or GPU activity is an event. The last
figure is the memory for a trace of 2 GB.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

from bench_results import Results, median_with_interval, options_of

BUILD = Path(os.environ["MAREY_BUILD"])
RANK, WORLD_SIZE = 0, 8
MB = 1_000_000


def make_trace(path: Path, megabytes: int) -> Path:
    words = [BUILD / "bench" / "kineto_trace", megabytes, RANK, WORLD_SIZE, path]
    subprocess.run([str(word) for word in words], check=True)
    return path


def pack(path: Path) -> Path:
    packed = path.with_suffix(".json.gz")
    with path.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as into:
        shutil.copyfileobj(source, into, 1 << 20)
    return packed


class Run:
    """One `marey breakdown`, or another command: its output, CPU time and memory."""

    def __init__(self, path: Path, *words: str) -> None:
        command = [str(BUILD / "cli" / "marey"), *(words or ["breakdown"]), str(path), "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        answer = process.stdout.read()
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"bench: {' '.join(command)} ended with status {process.returncode}")
        self.answer: dict[str, Any] = json.loads(answer)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_mb = usage.ru_maxrss * 1024 / MB

    def gpu_span(self) -> dict[str, Any]:
        return next(device for device in self.answer["devices"] if device["window"] == "gpu_span")


def run_peer(path: Path) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).with_name("hta_peer.py")), str(path)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)


class Rounds:
    """Results of each round, by subject."""

    def __init__(self, plain: Path, packed: Path, has_peer: bool) -> None:
        self.plain, self.packed, self.has_peer = plain, packed, has_peer
        self.cpu_s: dict[str, list[float]] = {"plain": [], "packed": [], "peer": []}
        self.peer: dict[str, float] = {}
        self.ours: dict[str, Any] = {}

    def measure(self, what: str) -> None:
        if what == "peer":
            self.peer = run_peer(self.plain)
            self.cpu_s[what].append(self.peer["cpu_s"])
        else:
            run = Run(self.plain if what == "plain" else self.packed)
            self.ours = run.gpu_span()
            self.cpu_s[what].append(run.cpu_s)

    def run(self, n: int) -> None:
        names = ["plain", "packed"] + ["peer"] * self.has_peer
        for turn in range(n):
            for i in range(len(names)):
                self.measure(names[(turn + i) % len(names)])


def put_speed(results: Results, rounds: Rounds) -> None:
    size = rounds.plain.stat().st_size / MB
    for what, words, bar in (("plain", "uncompressed", 300), ("packed", "packed by gzip", 150)):
        low, mid, high = median_with_interval([size / seconds for seconds in rounds.cpu_s[what]])
        measured = f"{mid:.0f} MB/s per core ({low:.0f} to {high:.0f})"
        results.put(f"breakdown of Kineto JSON, {words}", measured, f">= {bar} MB/s", mid >= bar)


def put_against_peer(results: Results, rounds: Rounds) -> None:
    what, bar = "breakdown, against Holistic Trace Analysis", 20
    if not rounds.has_peer:
        results.put(what, "not installed", f">= {bar} x faster")
        return
    ratios = [theirs / ours for theirs, ours in zip(rounds.cpu_s["peer"], rounds.cpu_s["plain"])]
    low, mid, high = median_with_interval(ratios)
    seconds = statistics.median(rounds.cpu_s["peer"])
    measured = f"{mid:.0f} x faster ({low:.0f} to {high:.0f}); it takes {seconds:.1f} s"
    results.put(what, measured, f">= {bar} x faster", mid >= bar)
    ours = rounds.ours
    print(
        f"  compute: {ours['compute'] / 1e3:.0f} us by marey, {rounds.peer['compute_us']:.0f} us by HTA, which rounds "
        f"times down to microseconds; overlap: {100 * ours['hidden_comm'] / ours['comm_total']:.2f} % and "
        f"{rounds.peer['overlap_percent']:.2f} %"
    )


def put_path(results: Results, plain: Path, n_rounds: int) -> None:
    recording, bar = plain.with_suffix(".marey"), 2
    n_events = plain.read_bytes().count(b'"ph": "X"')
    shutil.rmtree(recording, ignore_errors=True)
    words = [str(BUILD / "cli" / "marey"), "import", str(plain), "-o", str(recording)]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    runs = [Run(recording, "report", "--path") for _ in range(n_rounds)]
    for step in runs[0].answer["steps"]:
        sides = ("device_ns", "host_ns", "between_ns", "unexplained_ns")
        assert sum(step[side] for side in sides) == step["length_ns"]
    low, mid, high = median_with_interval([n_events / run.cpu_s / 1e6 for run in runs])
    measured = f"{mid:.2f} M events/s per core ({low:.2f} to {high:.2f})"
    results.put("critical path of a recording", measured, f">= {bar} M events/s", mid >= bar)


def put_memory(results: Results, folder: Path, megabytes: int) -> None:
    path = make_trace(folder / "large.json", megabytes)
    try:
        run = Run(path)
    finally:
        path.unlink()
    measured = f"{run.peak_mb:.0f} MB, {megabytes / run.cpu_s:.0f} MB/s per core"
    results.put(f"breakdown, memory for {megabytes / 1000:g} GB of JSON", measured, "<= 1000 MB", run.peak_mb <= 1000)


def main() -> None:
    options = options_of(__doc__).parse_args()
    folder, results = Path(options.dir), Results(options.results)
    has_peer = util.find_spec("hta") is not None
    if not has_peer:
        print("  left out: HolisticTraceAnalysis is not installed")
    plain = make_trace(folder / "trace.json", 20 if options.quick else 100)
    rounds = Rounds(plain, pack(plain), has_peer)
    rounds.run(2 if options.quick else 7)
    put_speed(results, rounds)
    put_against_peer(results, rounds)
    put_path(results, plain, 3 if options.quick else 7)
    put_memory(results, folder, 200 if options.quick else 2000)


if __name__ == "__main__":
    main()
