#!/usr/bin/env python3
"""Rates, accuracy and cost of the sampling profiler, against py-spy and austin on the same targets at the same time.

    bench_sample.py [--quick] [--dir DIR] [--results FILE] [--parts B1,B5,...]

Parts are B1 to B8 and B10 to B15, all by default; docs/internals/limits.md describes them. Targets are the scripts of
tests/sampling/targets, run by the newest CPython of pyenv, or by MAREY_TARGET_PYTHON. Target and profiler have a CPU
core each. A peer that is missing or does not start is skipped with a message. A failing part is reported, and the
others continue.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Callable, Optional

from bench_results import Results, median_with_interval, options_of
from sample_tools import (
    ROOT,
    SAMPLING,
    Austin,
    Marey,
    PySpy,
    Stack,
    Target,
    Tool,
    Watched,
    grammar_of,
    program_beside_python,
    slowdowns,
)
from sampled_stacks import by_function, distance, floor
from watching import PYTHONS, thread_states, tracers

BUILD = Path(os.environ.get("MAREY_BUILD", ROOT / "build" / "bench"))
MAX_HZ = 1_000_000
NO_LIMIT = ("--max-slowdown", "100%")


class Bench:
    """State shared by all parts: the directory, durations, the peers, and the final table."""

    def __init__(self, folder: Path, results: Results, is_quick: bool) -> None:
        self.folder, self.results, self.is_quick = folder, results, is_quick
        self.out = folder / "sampled.marey"
        self.seconds = 1.0 if is_quick else 3.0
        self.rounds = 1 if is_quick else 2
        self.peers: dict[str, Tool] = {}
        py_spy, austin = program_beside_python("py-spy"), program_beside_python("austin")
        if py_spy:
            self.peers["py-spy"] = PySpy(py_spy)
        if austin:
            self.peers["austin"] = Austin(austin)
        self.py_spy = py_spy
        for name in ("py-spy", "austin"):
            if name not in self.peers:
                results.put(f"sampling: {name}", "not installed, or does not start here")

    def put(self, bar: str, what: str, measured: str, wants: str = "", met: Optional[bool] = None) -> None:
        self.results.put(f"{bar} {what}", measured, wants, met)

    def watch(self, tool: Tool, target: Target, rate: float, seconds: Optional[float] = None) -> Watched:
        return tool.watch(target.pid, rate, seconds or self.seconds, self.out)

    def peers_rates(self, target: Target, n_threads: int, rate: float) -> dict[str, tuple[float, float]]:
        """Rounds per second and CPU share of each peer."""
        found = {}
        for name, tool in self.peers.items():
            seen = self.watch(tool, target, rate, 2)
            found[name] = (seen.rounds(n_threads) / seen.seconds, seen.cpu_s / seen.seconds)
        return found


def against(own: float, peers: dict[str, float], unit: str = "times") -> str:
    """Format the ratio of our figure to each peer's."""
    words = [f"{own / value:.1f} {unit} {name}'s" for name, value in peers.items() if value > 0]
    return "; " + ", ".join(words) if words else ""


def percent(share: float) -> str:
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:.1f} %"


def cpu_line(own: float, peers: dict[str, tuple[float, float]], rate: float) -> str:
    """The CPU share, and that of the peers with their rates."""
    words = [f"{name} {percent(cpu)} for {hz:.0f} Hz" for name, (hz, cpu) in peers.items()]
    return f"{percent(own)} of a processor at {rate:.0f} Hz" + ("; " + ", ".join(words) if words else "")


def cpu_share(seen: Watched) -> float:
    return seen.cpu_s / seen.facts["seconds"]


def achieved(seen: Watched) -> float:
    return float(seen.facts["rounds"]) / float(seen.facts["seconds"])


# ---- speed ----


def rates(bench: Bench, bar: str, target: Target, n_threads: int, wants_hz: float, limits: dict[float, float]) -> None:
    """The maximum rounds per second, and the CPU share at several rates, alternating with the peers."""
    marey = Marey("--snapshot")
    fastest: list[float] = []
    peers: dict[str, list[float]] = {}
    for _ in range(bench.rounds):
        fastest.append(achieved(bench.watch(marey, target, MAX_HZ)))
        for name, (hz, _cpu) in bench.peers_rates(target, n_threads, MAX_HZ).items():
            peers.setdefault(name, []).append(hz)
    own, others = statistics.median(fastest), {name: statistics.median(hz) for name, hz in peers.items()}
    text = ", ".join(f"{name} {hz:.0f}" for name, hz in others.items())
    measured = f"{own:.0f} samples/s ({text}){against(own, others)}"
    bench.put(bar, "the most samples per second", measured, f">= {wants_hz:.0f}", own >= wants_hz)
    for rate, limit in limits.items():
        seen = [bench.watch(marey, target, rate) for _ in range(bench.rounds)]
        own_cpu = statistics.median(cpu_share(one) for one in seen)
        others_cpu = bench.peers_rates(target, n_threads, rate)
        bench.put(
            bar, f"at {rate:.0f} Hz", cpu_line(own_cpu, others_cpu, rate), f"<= {percent(limit)}", own_cpu <= limit
        )


def b1(bench: Bench) -> None:
    with Target("deep", 100) as target:
        rates(bench, "B1", target, 1, 150_000, {1000: 0.035, 100: 0.006})


def b2(bench: Bench) -> None:
    with Target("threads", 32) as target:
        rates(bench, "B2", target, 33, 12_000, {1000: 0.10})


def b3(bench: Bench) -> None:
    marey = Marey("--snapshot")
    for n, rate, limit in ((128, 1000.0, 0.30), (512, 200.0, 0.0)):
        with Target("threads", n) as target:
            seen = bench.watch(marey, target, rate)
            peers = bench.peers_rates(target, n + 1, rate) if limit else {}
            missed, cpu = seen.facts["missed"], cpu_share(seen)
            measured = f"{missed} of {seen.facts['asked']} missed, {cpu_line(cpu, peers, rate)}"
            wants = "0 missed" + (f", <= {percent(limit)}" if limit else "")
            bench.put(
                "B3", f"{n} threads at {rate:.0f} Hz", measured, wants, missed == 0 and (not limit or cpu <= limit)
            )


# ---- slowdown of the target ----


def losses(bench: Bench, bar: str, what: str, values: list[float], wants: Optional[float]) -> None:
    low, middle, high = median_with_interval(values)
    measured = f"{middle:.2f} % [{low:.2f}, {high:.2f}]"
    if wants is None:
        bench.put(bar, what, measured)
    else:
        bench.put(bar, what, measured, f"<= {wants} %", middle <= wants)


def b4(bench: Bench) -> None:
    ways: dict[str, tuple[Tool, float]] = {
        "snapshot": (Marey("--snapshot"), 1000),
        "exact": (Marey("--exact", *NO_LIMIT), 1000),
    }
    with Target("parked", 160) as target:
        found = slowdowns(target, ways, 2 if bench.is_quick else 8, bench.out)
        losses(bench, "B4", "164 threads at 1 kHz, slower by, snapshot", found["snapshot"], 1)
        losses(bench, "B4", "164 threads at 1 kHz, slower by, exact", found["exact"], 3)
        for name, rate in (("py-spy", 100.0), ("austin", 1000.0)):
            if name in bench.peers:
                found = slowdowns(target, {name: (bench.peers[name], rate)}, 2, bench.out)
                losses(bench, "B4", f"the same by {name} at {rate:.0f} Hz", found[name], None)


def b5(bench: Bench) -> None:
    """A million stacks of stopped threads in four targets, and the cost of stopping."""
    exact, n_each = Marey("--exact", *NO_LIMIT), 5_000 if bench.is_quick else 250_000
    total = impossible = rejected = 0
    for name in ("flat", "churn", "generators", "flutter"):
        with Target(name) as target:
            trial = achieved(bench.watch(exact, target, MAX_HZ, 0.5))
            seen = bench.watch(exact, target, MAX_HZ, n_each / trial)
        n, wrong, _why = grammar_of(target).judge(seen.stacks)
        total, impossible, rejected = total + n, impossible + wrong, rejected + seen.facts["rejected"]
        bench.put("B5", f"exact, {name}", f"{wrong} of {n} impossible, at {achieved(seen):.0f} samples/s")
    measured = f"{impossible} impossible, {rejected} rejected of {total}"
    bench.put("B5", "exact, all four", measured, "0 and 0 of a million", impossible == rejected == 0)
    with Target("flat") as target:
        b5_distance(bench, target)
        ways: dict[str, tuple[Tool, float]] = {"100 Hz": (exact, 100), "1 kHz": (exact, 1000)}
        found = slowdowns(target, ways, 2 if bench.is_quick else 8, bench.out)
    losses(bench, "B5", "exact at 100 Hz, the target slower by", found["100 Hz"], 0.5)
    losses(bench, "B5", "exact at 1 kHz, the target slower by", found["1 kHz"], 5)


def reference(bench: Bench, target: Target) -> Counter[Stack]:
    """Stacks of stopped threads, at a rate at which stops are independent."""
    return bench.watch(Marey("--exact", *NO_LIMIT), target, 2000).stacks


def b5_distance(bench: Bench, target: Target) -> None:
    one, other = reference(bench, target), reference(bench, target)
    usual, most = floor(one + other, sum(one.values()), sum(other.values()), rounds=100)
    far = distance(one, other)
    measured = f"{far:.4f}, by chance {usual:.4f} (99.5 of 100 under {most:.4f})"
    bench.put("B5", "distance of two exact runs of flat", measured, "that of chance", far <= most)


def b6(bench: Bench) -> None:
    """Snapshots: shares of impossible and rejected ones, and their distance from exact samples."""
    snapshot = Marey("--snapshot")
    peers: dict[str, Tool] = {name: tool for name, tool in bench.peers.items() if name != "py-spy"}
    if bench.py_spy:
        peers["py-spy --nonblocking"] = PySpy(bench.py_spy, "--nonblocking")
    for name, limit in (("flat", 0.04), ("churn", 0.04), ("deep", 0.0001)):
        with Target(name, *((30,) if name == "deep" else ())) as target:
            exact = reference(bench, target)
            seen = bench.watch(snapshot, target, 5000)
            words = [
                f"{peer} {wrong_share(bench.watch(tool, target, 1000, 2), target)}" for peer, tool in peers.items()
            ]
        n, wrong, _why = grammar_of(target).judge(seen.stacks)
        measured = f"{percent(wrong / n)} of {n} impossible; " + ", ".join(words)
        bench.put("B6", f"snapshot, {name}", measured, f"<= {percent(limit)}", wrong <= n * limit)
        rejected = seen.facts["rejected"] / max(seen.facts["samples"], 1)
        bench.put("B6", f"snapshot, {name}, rejected", percent(rejected), "<= 1 %", rejected <= 0.01)
        one, other = by_function(seen.stacks), by_function(exact)
        usual, most = floor(other, sum(one.values()), sum(other.values()), rounds=40)
        far = distance(one, other)
        measured = f"{far:.4f}, by chance {usual:.4f} (most {most:.4f})"
        bench.put("B6", f"snapshot, {name}, distance to exact", measured, "<= 2 x chance", far <= 2 * most)


def wrong_share(seen: Watched, target: Target) -> str:
    n, wrong, _why = grammar_of(target).judge(seen.stacks)
    return percent(wrong / n) if n else "nothing"


# ---- native frames, lines ----


def b7(bench: Bench) -> None:
    native = Marey("--native", *NO_LIMIT)
    with Target("gil", 8, pin=False) as target:
        seen = bench.watch(native, target, 1000)
    facts, hz = seen.facts, achieved(seen)
    mean_us, most_us = facts["stop_ns"] / max(facts["stops"], 1) / 1000, facts["stop_max_ns"] / 1000
    measured = f"{hz:.0f} Hz, {facts['missed']} missed; each stop {mean_us:.1f} us, the longest {most_us:.0f} us"
    bench.put("B7", "native frames of 8 threads at 1 kHz", measured, "1 kHz, <= 60 us", hz >= 990 and mean_us <= 60)
    with Target("training", python=sys.executable) as target:
        seen = bench.watch(native, target, 200)
    whole, cut, differ = native_shares(bench.out)
    share = percent(whole / max(whole + cut, 1))
    measured = f"{share} of {whole + cut} reach the thread's start; {differ} differ from Python's"
    bench.put("B7", "native stacks of a torch training", measured, ">= 98 %", whole >= 0.98 * (whole + cut))


def native_shares(out: Path) -> tuple[int, int, int]:
    """Counts of native stacks that are complete, incomplete, and that do not match Python's frame by frame."""
    done = subprocess.run([BUILD / "bench" / "sample_flags", out], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found["native"] - found["native_cut"], found["native_cut"], found["merge_mismatch"]


def b8(bench: Bench) -> None:
    """Line numbers of all instructions in each Python's standard library, by our decoder and by the interpreter."""
    checker = BUILD / "bench" / "bench_sampling_lines"
    total, wrong = 0, 0
    for version, python in PYTHONS.items():
        every = "50" if bench.is_quick else "3"
        command = [python, "-W", "ignore", str(SAMPLING / "line_oracle.py"), every]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as oracle:
            said = subprocess.run([checker], stdin=oracle.stdout, capture_output=True, text=True, check=False).stdout
        found = re.search(r"(\d+) instructions, (\d+) wrong", said)
        if not found:
            raise RuntimeError(f"lines of {version}: {said}")
        total, wrong = total + int(found[1]), wrong + int(found[2])
    measured = f"{wrong} of {total / 1e6:.1f} million instructions differ ({', '.join(PYTHONS)})"
    bench.put("B8", "lines, against the interpreter's own", measured, "none", wrong == 0 and total > 0)


# ---- children, the first sample, memory, files ----


def lives_of_children(bench: Bench, rate: float) -> tuple[list[float], list[float]]:
    """For children started during sampling: the share of their lives that samples span; milliseconds to the first
    one."""
    marey = Marey("--snapshot")
    with Target("children", 0.05, pin=False) as target:
        bench.watch(marey, target, rate)
        said = {int(words[1]): (float(words[2]) * 1e9, float(words[3]) * 1e9) for words in target.words("child")}
    spans: dict[int, tuple[float, float]] = {}
    for row in csv.DictReader(marey.ask("export", bench.out, "-q", "--to", "csv", "--idle", "-o", "-").splitlines()):
        if row["kind"] == "range":
            begin, end = int(row["start_ns"]), int(row["start_ns"]) + int(row["duration_ns"])
            low, high = spans.get(int(row["pid"]), (begin, end))
            spans[int(row["pid"])] = (min(low, begin), max(high, end))
    watched = min(low for low, _ in spans.values()), max(high for _, high in spans.values())
    shares, first_ms = [], []
    for pid, (born, ended) in said.items():
        if not watched[0] < born < ended < watched[1]:
            continue
        low, high = spans.get(pid, (ended, ended))
        shares.append((min(high, ended) - min(max(low, born), ended)) / (ended - born))
        first_ms.append((low + 0.5e9 / rate - born) / 1e6)  # samples are drawn from half a gap before on
    return shares, sorted(first_ms)


def b10(bench: Bench) -> None:
    shares, _ = lives_of_children(bench, 1000)
    share = statistics.mean(shares) if shares else 0
    # At a high rate, because the wait for the next round is not part of finding a child.
    _, first_ms = lives_of_children(bench, 4000)
    p99 = first_ms[int(len(first_ms) * 0.99)] if first_ms else float("inf")
    measured = f"{percent(share)} of the lives of {len(shares)} children of 50 ms at 1 kHz"
    measured += f"; the first sample at 4 kHz p99 {p99:.1f} ms late"
    bench.put("B10", "children", measured, ">= 95 %, <= 5 ms", share >= 0.95 and p99 <= 5)
    marey = Marey("--snapshot")
    with Target("workers", 64, pin=False) as target:
        seen = bench.watch(marey, target, 200)
    measured = f"{percent(cpu_share(seen))} of a processor, {seen.facts['missed']} of {seen.facts['asked']} missed"
    bench.put("B10", "64 workers at 200 Hz", measured, "<= 100 %", cpu_share(seen) <= 1)


def b11(bench: Bench) -> None:
    marey = Marey("--snapshot")
    with Target("deep", 30) as target:
        took = [time_of(marey, target.pid) for _ in range(5 if bench.is_quick else 21)]
        seen = bench.watch(marey, target, 1000)
        rss = {name: bench.watch(tool, target, 100, 1).rss_mb for name, tool in bench.peers.items()}
    low, middle, high = median_with_interval(took)
    measured = f"{middle:.0f} ms [{low:.0f}, {high:.0f}], from the start of marey stacks to its end"
    bench.put("B11", "attach to first sample", measured, "<= 50 ms", middle <= 50)
    text = ", ".join(f"{name} {mb:.1f}" for name, mb in rss.items())
    bench.put("B11", "peak memory at 1 kHz", f"{seen.rss_mb:.1f} MB ({text})", "<= 10 MB", seen.rss_mb <= 10)
    targets = [Target("threads", 200) for _ in range(8)]
    try:
        took = [time_of(marey, *(target.pid for target in targets), "--native") for _ in range(5)]
    finally:
        for target in targets:
            target.__exit__()
    middle = statistics.median(took)
    bench.put("B11", "marey stacks of 8 x 200 threads, native", f"{middle:.0f} ms", "<= 500 ms", middle <= 500)


def time_of(marey: Marey, *arguments: object) -> float:
    """Milliseconds of marey stacks."""
    begin = time.perf_counter()
    marey.ask("stacks", *arguments, "--json")
    return 1000 * (time.perf_counter() - begin)


def b12(bench: Bench) -> None:
    marey = Marey("--snapshot")
    with Target("threads", 32) as target:
        seen = bench.watch(marey, target, 1000, 5)
        n_bytes = sum(file.stat().st_size for file in bench.out.rglob("*") if file.is_file())
        n = sum(seen.stacks.values())
        bench.put("B12", "a sample of a thread takes", f"{n_bytes / n:.3f} bytes", "<= 1 byte", n_bytes <= n)
        process = marey.start(target.pid, 1000, 60, bench.out)
        time.sleep(6.5)
        process.kill()
        process.communicate()
    lost = 6.5 - marey.tables(bench.out)["audit"][0]["seconds"]
    bench.put("B12", "lost by kill -9, the start counted in", f"{lost:.1f} s", "<= 5 s", lost <= 5)


# ---- safety ----


def b13(bench: Bench) -> None:
    chance, n, n_tracing, n_bad = random.Random(13), 20 if bench.is_quick else 200, 0, 0
    exact = Marey("--exact", *NO_LIMIT)
    with Target("threads", 4) as target:
        for _ in range(n):
            process = exact.start(target.pid, 5000, 60, bench.out)
            time.sleep(chance.random() * 0.08)
            n_tracing += bool(tracers(target.pid))
            process.kill()
            process.communicate()
            n_bad += bool(tracers(target.pid)) or bool(set(thread_states(target.pid).values()) & {"t", "T"})
        before = len(target.ticks)
        time.sleep(0.3)
        goes_on = len(target.ticks) > before
    measured = f"{n_bad} times of {n}; {n_tracing} of them in the midst of a stop; the target goes on: {goes_on}"
    bench.put("B13", "a thread left stopped after kill -9", measured, "never", n_bad == 0 and goes_on and n_tracing > 0)


def b14(bench: Bench) -> None:
    with Target("flat") as target:
        facts = bench.watch(Marey("--snapshot"), target, 2000, 5).facts
    far = "too few samples were stopped for a distance"
    if facts["distance"] is not None:
        far = f"distance {facts['distance']:.4f} [{facts['distance_low']:.4f}, {facts['distance_high']:.4f}]"
    measured = f"missed {percent(facts['missed_share'])}, rejected {percent(facts['rejected_share'])}, {far}"
    bench.put("B14", "what a report says of itself", measured, "there", facts["distance"] is not None)


def b15(bench: Bench) -> None:
    """The tests of faults and unusual cases in tests/sampling; all must pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [str(path) for path in sorted(SAMPLING.glob("test_faults_*.py"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    last = done.stdout.strip().splitlines()[-1].strip("= ")
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout[-1000:] + done.stderr[-1000:])
    bench.put("B15", "accidents and odd places", last, "all pass", done.returncode == 0)


PARTS: dict[str, Callable[[Bench], None]] = {
    **{"B1": b1, "B2": b2, "B3": b3, "B4": b4, "B5": b5, "B6": b6, "B7": b7, "B8": b8},
    **{"B10": b10, "B11": b11, "B12": b12, "B13": b13, "B14": b14, "B15": b15},
}


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="B1,B2,... (default: all)")
    options = parser.parse_args()
    bench = Bench(Path(options.dir), Results(options.results), options.quick)
    failed = []
    for name in options.parts.split(","):
        began = time.perf_counter()
        try:
            PARTS[name](bench)
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"  ({name} took {time.perf_counter() - began:.0f} s)", flush=True)
    if failed:
        print(f"bench_sample: could not be measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
