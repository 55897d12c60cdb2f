#!/usr/bin/env python3
"""Overhead of marey in a training by transformers' Trainer, compared with torch.profiler at the same settings.

    bench_train.py [--quick] [--dir DIR] [--results FILE] [PART...]

Needs torch and transformers; without them it prints a message and exits with 77. Trains a small GPT-2, on the GPU if
there is one. The overhead of `always` is less than the difference of two trainings or two steps, so the tool is active
in every other step of one training, and neighboring steps are compared: of a tiny model, which shows microseconds and
also leaves the caches cold, and of the normal one. Start and end of a recording and the flush thread are measured
separately and added. Other tools are compared in two processes (train_server.py), one with the tool and one without,
that alternate steps, so both see the same state of the machine, and effects that persist after a step do not reach the
other one. They first train without any tool, for reference. Without a GPU, times are CPU times of all threads of a
process, including those of the tool; with a GPU, they are wall times, with a synchronization at each step's end. Waits
of single steps are wall times and need an idle machine.

    always     steps with the tool on, for a run of 200: phases by marey.hf.Callback, operators by torch.profiler
    window     20 recorded steps with operators and shapes: engine="marey" of ProfCallback; torch.profiler used
               directly, with its data discarded, or saved as a trace while the training waits
    ends       repeated windows of one step: costs of their start and end while earlier windows are exported
    memory     10,000 steps of a tiny model, without and with such windows
"""

from __future__ import annotations

import collections
import gzip
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Optional

from bench_results import Interval, Results, median_with_interval, options_of

HERE = Path(__file__).parent
PARTS = ("always", "window", "ends", "memory")
FIRST = 20  # warm-up steps
WINDOW = (FIRST, 5, 20, 1)
REPEATED = (20, 4, 1, 0)
SELDOM = (95, 4, 1, 0)
RUN = 200  # steps of the run for the bar of `always`
MEBIBYTE_KB = 1024

Schedule = tuple[int, int, int, int]
Answer = dict[str, Any]


class Server:
    """A training process with one tool."""

    def __init__(self, tool: str, folder: Path, n_steps: int, schedule: Schedule, turns: str = "-") -> None:
        """Start it; `turns` has the pipes for alternation."""
        self.tool = tool
        self.log = folder / f"{tool.replace(' ', '_')}.log"
        command = [sys.executable, str(HERE / "train_server.py"), tool, str(folder), str(n_steps)]
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*command, ",".join(map(str, schedule)), turns],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[] if turns == "-" else [int(fd) for fd in turns.split(",")[1:]],
                text=True,
            )

    def begin(self, word: str) -> None:
        """Make it train: "off" without the tool, "on" with it."""
        assert self.process.stdin is not None
        print(word, file=self.process.stdin, flush=True)

    def answer(self) -> Answer:
        """Wait for the result."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.tool} ended: {self.log.read_text(encoding='utf-8')[-2000:]}")
        answer: Answer = json.loads(line)
        return answer

    def end(self) -> None:
        """End it."""
        self.process.communicate()


class Pair:
    """Two processes, one with a tool and one without, and their results round by round."""

    def __init__(self, tool: str, folder: Path, n_steps: int, schedule: Schedule, n_rounds: int, clock: str) -> None:
        """Measure."""
        there, back = os.pipe(), os.pipe()
        servers = (
            Server(tool, folder, n_steps, schedule, f"1,{back[0]},{there[1]}"),
            Server("none", folder, n_steps, schedule, f"0,{there[0]},{back[1]}"),
        )
        for fd in (*there, *back):
            os.close(fd)
        self.clock = clock
        before = [self._train(servers, "off") for _ in range(max(n_rounds // 3, 2))]
        self.by = statistics.median(ratio for one in before for ratio in self._ratios(*one))
        self.rounds = [self._train(servers, "on") for _ in range(n_rounds)]
        for server in servers:
            server.end()

    def _train(self, servers: tuple[Server, Server], word: str) -> tuple[Answer, Answer]:
        for server in servers:
            server.begin(word)
        with_tool, without = (server.answer() for server in servers)
        return with_tool, without

    def _ratios(self, with_tool: Answer, without: Answer) -> list[float]:
        steps = f"{self.clock}_steps"
        return [a / b for a, b in zip(with_tool[steps][FIRST:], without[steps][FIRST:])]

    def added_to_step(self) -> Interval:
        """The overhead of a step as a share, from the medians of the rounds."""
        return median_with_interval([statistics.median(self._ratios(*one)) / self.by - 1 for one in self.rounds])

    def added_to_run(self) -> Interval:
        """The overhead of the whole training as a share, including start and end."""
        key = f"{self.clock}_ns"
        return median_with_interval([one[key] / self.by / other[key] - 1 for one, other in self.rounds])

    def added_ms(self, first: int, last: int) -> list[float]:
        """The total overhead of the steps first..last-1 in milliseconds, by rounds."""
        key = f"{self.clock}_steps"
        return [(sum(one[key][first:last]) / self.by - sum(other[key][first:last])) / 1e6 for one, other in self.rounds]

    def step_ms(self) -> float:
        """A step without the tool."""
        key = f"{self.clock}_steps"
        return statistics.median(t for _, other in self.rounds for t in other[key][FIRST:]) / 1e6

    def windows(self) -> list[list[dict[str, float]]]:
        """The waits of the training for each window in milliseconds, by rounds; keys as in train_server.py."""
        return [
            [{key.replace("_ns", "_ms"): ns / 1e6 for key, ns in window.items()} for window in one["windows"]]
            for one, _ in self.rounds
        ]


def has_gpu() -> bool:
    asked = [sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def percent(interval: Interval) -> str:
    low, middle, high = (100 * value for value in interval)
    return f"{middle:+.2f} % ({low:+.2f} to {high:+.2f})"


def milliseconds(interval: Interval) -> str:
    low, middle, high = interval
    return f"{middle:.2f} ms ({low:.2f} to {high:.2f})"


# ---- always on ----


def by_turns(tool: str, folder: Path, n_steps: int, n_rounds: int) -> list[Answer]:
    server = Server(tool, folder, n_steps, WINDOW)
    answers = []
    for _ in range(n_rounds):
        server.begin("on")
        answers.append(server.answer())
    server.end()
    return answers


def neighbours(answer: Answer) -> list[tuple[int, int]]:
    """Pairs of neighboring steps with and without the tool, after the warm-up."""
    return list(zip(answer["with_ns"], answer["without_ns"]))[FIRST // 2 :]


def measure_always(results: Results, folder: Path, n_rounds: int, n_steps: int, clock: str) -> None:
    answers = by_turns("by turns marey", folder, n_steps, n_rounds)
    pairs = [pair for answer in answers for pair in neighbours(answer)]
    tiny = [pair for one in by_turns("tiny by turns marey", folder, 5 * n_steps, n_rounds) for pair in neighbours(one)]
    step = statistics.median(without for _, without in pairs)
    tiny_step = statistics.median(without for _, without in tiny)
    added = median_with_interval([float(with_tool - without) for with_tool, without in tiny])
    edges = statistics.median(ns for answer in answers for ns in answer["edges_ns"])
    thread = statistics.median(one["thread_ns"] / sum(one["with_ns"] + one["without_ns"]) for one in answers)
    low, middle, high = ((ns + edges / RUN) / step + thread for ns in added)
    what = f"Trainer, {RUN} steps of {step / 1e6:.1f} ms, marey.hf.Callback"
    results.put(what, percent((low, middle, high)), "<= 0.5 %", middle <= 0.005)
    low, middle, high = (ns / 1e3 for ns in added)
    words = f"{middle:+.1f} us ({low:+.1f} to {high:+.1f}) to {tiny_step / 1e6:.1f} ms"
    results.put("  of it a step, by steps of a tiny model", words)
    results.put("  of it begin and end, and the thread", f"{edges / 1e6:.1f} ms, and {100 * thread:.3f} %")
    same = median_with_interval([(with_tool - without) / without for with_tool, without in pairs])
    results.put("  a step, by its own neighbours", f"{percent(same)}, {len(pairs)} pairs")
    theirs = Pair("always torch", folder, n_steps, WINDOW, max(n_rounds // 4, 2), clock)
    results.put(f"Trainer, {n_steps} steps, torch.profiler", percent(theirs.added_to_run()))
    results.put("Trainer, a step, torch.profiler", percent(theirs.added_to_step()))


# ---- a window ----


def content_of(folder: str, n_steps: int) -> str:
    """The number of events of each kind per step in the trace of a window."""
    for path in Path(folder).rglob("*.pt.trace.json*"):
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            found = collections.Counter(event.get("cat") for event in json.load(file)["traceEvents"])
        names = {"cpu_op": "operators", "kernel": "kernels"}
        return "".join(f", {found[key] / n_steps:.0f} {name}" for key, name in names.items() if found[key])
    return ""


def measure_window(results: Results, folder: Path, n_rounds: int, clock: str) -> None:
    wait, warmup, active, _ = WINDOW
    names = {
        "window marey": 'engine="marey"',
        "window torch.profiler": "torch.profiler, thrown away",
        "saved torch.profiler": "torch.profiler, saved",
    }
    added: dict[str, float] = {}
    for tool, name in names.items():
        pair = Pair(tool, folder, wait + warmup + active + 5, WINDOW, n_rounds, clock)
        # From the step whose end prepares the window to the first one after it.
        interval = median_with_interval([t / active for t in pair.added_ms(wait - 1, wait + warmup + active + 1)])
        added[tool] = interval[1]
        content = content_of(pair.rounds[-1][0]["folder"], active)
        results.put(f"a recorded step, {name}", f"{milliseconds(interval)} to {pair.step_ms():.1f} ms{content}")
    for tool in tuple(names)[1:]:
        times = added[tool] / max(added["window marey"], 1e-6)
        results.put(f'engine="marey" against {names[tool]}', f"{times:.1f} x less", ">= 3 x", times >= 3)


# ---- the ends of windows ----


def p99(answer: Answer, is_all: bool) -> float:
    """Of all steps, or only of those outside of windows and warm-ups, during which windows are exported."""
    wait, warmup, active, _ = REPEATED
    steps = answer["wall_steps"]
    chosen = sorted(
        took for i, took in enumerate(steps) if i >= FIRST and (is_all or i % (wait + warmup + active) < wait)
    )
    return float(chosen[min(int(len(chosen) * 0.99), len(chosen) - 1)]) / 1e6


def put_waits(results: Results, what: str, waits_ms: list[float]) -> None:
    words = f"{statistics.median(waits_ms):.2f} ms, at most {max(waits_ms):.2f}"
    results.put(what, words, "<= 1 ms", statistics.median(waits_ms) <= 1)


def measure_ends(results: Results, folder: Path, n_rounds: int, n_steps: int) -> None:
    ours = Pair("ends marey", folder, n_steps, REPEATED, n_rounds, "wall")
    for is_all in (False, True):
        later = median_with_interval([p99(one, is_all) / ours.by - p99(other, is_all) for one, other in ours.rounds])
        plain = statistics.median(p99(other, is_all) for _, other in ours.rounds)
        words = f"{milliseconds(later)} to {plain:.2f} ms"
        if is_all:
            results.put('p99 of all steps, every 25th recorded, engine="marey"', words)
        else:
            results.put('p99 of steps while windows are exported, engine="marey"', words, "<= 1 ms", later[1] <= 1)
    saved = [window for windows in ours.windows() for window in windows]
    put_waits(results, 'end of a window, engine="marey"', [window["wait_ms"] for window in saved])
    put_waits(results, 'beginning of a window, engine="marey"', [window["begin_ms"] for window in saved])
    later_ones = [window["prepare_ms"] for windows in ours.windows() for window in windows[1:]]
    put_waits(results, 'beginning of a warm-up, engine="marey"', later_ones)
    firsts = [windows[0]["prepare_ms"] for windows in ours.windows() if windows]
    put_waits(results, "the first one, beside which a recording begins", firsts)
    theirs = Pair("ends torch", folder, n_steps, REPEATED, max(n_rounds // 2, 1), "wall")
    saved = [window for windows in theirs.windows() for window in windows]
    torch_ms = statistics.median(window["engine_ms"] for window in saved)
    results.put('end of a window, engine="torch": torch', f"{torch_ms:.1f} ms")
    ours_ms = [window["wait_ms"] - window["engine_ms"] for window in saved]
    put_waits(results, 'end of a window, engine="torch": marey on top', ours_ms)


# ---- memory ----


def measure_memory(results: Results, folder: Path, n_steps: int) -> None:
    """Growth after the first fifth of the steps."""
    names = {
        "tiny none": "no tool",
        "tiny always marey": "marey.hf.Callback",
        "tiny ends marey": 'windows, engine="marey"',
        "tiny ends torch": 'windows, engine="torch"',
        "tiny saved torch.profiler": "windows, torch.profiler by hand",
    }
    for tool, name in names.items():
        server = Server(tool, folder, n_steps, SELDOM)
        server.begin("on")
        resident = server.answer()["rss_kb"]
        server.end()
        settled = resident[len(resident) // 5 :]
        grown = (statistics.median(settled[-5:]) - statistics.median(settled[:5])) / MEBIBYTE_KB
        words = f"{grown:+.1f} MiB to {settled[0] / MEBIBYTE_KB:.0f} MiB"
        bar = ("<= 4 MiB", grown <= 4) if "marey" in tool else ()
        results.put(f"memory, {n_steps:,} steps, {name}", words, *bar)


class GpuResults(Results):
    """A table that marks rows as measured on the GPU."""

    def put(self, what: str, measured: str, bar: str = "", met: Optional[bool] = None) -> None:
        """Add the mark to each row."""
        super().put(f"{what}, on the GPU", measured, bar, met)


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS) + "; all by default")
    arguments = parser.parse_args()
    missing = [name for name in ("torch", "transformers", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not here: {', '.join(missing)} not installed")
        return 77
    is_gpu = has_gpu()
    results = (GpuResults if is_gpu else Results)(arguments.results)
    clock = "wall" if is_gpu else "cpu"
    folder = Path(tempfile.mkdtemp(prefix="train-", dir=arguments.dir))
    parts = arguments.parts or PARTS
    is_quick = arguments.quick
    try:
        if "always" in parts:
            measure_always(results, folder, 2 if is_quick else 8, 60 if is_quick else 200, clock)
        if "window" in parts:
            measure_window(results, folder, 1 if is_quick else 6, clock)
        if "ends" in parts:
            measure_ends(results, folder, 1 if is_quick else 4, 100 if is_quick else 200)
        if "memory" in parts:
            measure_memory(results, folder, 1000 if is_quick else 10_000)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
