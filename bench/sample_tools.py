"""For bench_sample.py: targets that count their work, and the profilers that sample them."""

from __future__ import annotations

import abc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent
SAMPLING = ROOT / "tests" / "sampling"
sys.path.insert(0, str(SAMPLING))

from call_grammar import Grammar, Stack  # noqa: E402
from sampled_stacks import from_pyspy, read_austin  # noqa: E402

PATIENCE_S = 60


def targets_python() -> str:
    """The newest CPython of pyenv, else this one; MAREY_TARGET_PYTHON overrides it."""
    if "MAREY_TARGET_PYTHON" in os.environ:
        return os.environ["MAREY_TARGET_PYTHON"]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [path for path in versions.glob("3.*/bin/python") if re.fullmatch(r"3\.\d+\.\d+", path.parts[-3])]
    found.sort(key=lambda path: tuple(map(int, path.parts[-3].split("."))))
    return str(found[-1]) if found else sys.executable


def put_on_processor(pid: int, i: int) -> None:
    """The i-th CPU core, if there are two."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) > 1:
        os.sched_setaffinity(pid, {allowed[i]})


class Target:
    """One of tests/sampling/targets on the first core, and the speed that it reports."""

    def __init__(self, name: str, *arguments: object, python: Optional[str] = None, pin: bool = True) -> None:
        self.script = SAMPLING / "targets" / f"{name}.py"
        command = [python or targets_python(), str(self.script), "600", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if pin:
            put_on_processor(self.process.pid, 0)
        self.lines: list[tuple[float, list[str]]] = []
        self.ticks: list[tuple[float, int]] = []
        self.is_ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        if not self.is_ready.wait(PATIENCE_S):
            raise RuntimeError(f"{name} does not start")
        self.pid = self.process.pid

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "ready":
                self.is_ready.set()
            elif words[0] == "tick" and len(words) == 3:  # the last line of a killed target may be incomplete
                self.ticks.append((float(words[1]), int(words[2])))
            else:
                self.lines.append((time.perf_counter(), words))
        self.is_ready.set()

    def words(self, first: str) -> list[list[str]]:
        """Its lines with this first word."""
        return [words for _, words in list(self.lines) if words[0] == first]

    def speed(self, begin: float, end: float) -> float:
        """Rounds per second between two times of perf_counter(), possibly without a line in between."""
        deadline = time.perf_counter() + PATIENCE_S
        while not self.ticks or self.ticks[-1][0] < end:
            if time.perf_counter() > deadline:
                raise RuntimeError(f"{self.script.name} makes no progress")
            time.sleep(0.01)
        return (self._rounds_at(end) - self._rounds_at(begin)) / (end - begin)

    def _rounds_at(self, moment: float) -> float:
        ticks = list(self.ticks)
        i = next(i for i, tick in enumerate(ticks) if tick[0] >= moment)
        (t0, n0), (t1, n1) = ticks[max(i - 1, 0)], ticks[i]
        return n1 if t1 == t0 else n0 + (n1 - n0) * (moment - t0) / (t1 - t0)

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


class Watched(NamedTuple):
    """Results and cost of one run of a profiler."""

    stacks: Counter[Stack]
    seconds: float  # wall time of the whole run
    cpu_s: float
    rss_mb: float
    status: int
    said: str
    facts: dict[str, Any]  # counts reported by the tool

    def rounds(self, n_threads: int) -> float:
        return sum(self.stacks.values()) / n_threads


class PeakMemory(threading.Thread):
    """The peak memory of a process, read while it runs, because wait4's value includes the process that forked it."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak_kb = pid, 0

    def run(self) -> None:
        while True:
            try:
                text = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
            except OSError:
                return
            found = re.search(r"VmHWM:\s*(\d+)", text)
            if not found:
                return
            self.peak_kb = int(found[1])
            time.sleep(0.05)


class Tool(abc.ABC):
    """A profiler: its command line and the reader of its output."""

    name = ""

    @abc.abstractmethod
    def command(self, pid: int, rate: float, seconds: float, out: Path) -> list[str]:
        """The command that samples `pid` into `out`."""

    @abc.abstractmethod
    def read(self, out: Path, said: str) -> tuple[Counter[Stack], dict[str, Any]]:
        """The count of each stack, and other reported facts."""

    def start(self, pid: int, rate: float, seconds: float, out: Path) -> subprocess.Popen[str]:
        if out.is_dir():
            shutil.rmtree(out)
        else:
            out.unlink(missing_ok=True)
        command = self.command(pid, rate, seconds, out)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        put_on_processor(process.pid, 1)
        return process

    def finish(self, process: subprocess.Popen[str], seconds: float) -> tuple[str, float, float]:
        """Wait for it, and interrupt it if it is late; return its output, CPU time and peak memory."""
        late = threading.Timer(seconds + 1, process.send_signal, (signal.SIGINT,))
        hopeless = threading.Timer(seconds + 20, process.kill)
        rss = PeakMemory(process.pid)
        for helper in (late, hopeless, rss):
            helper.start()
        assert process.stdout
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for helper in (late, hopeless):
            helper.cancel()
        return said, usage.ru_utime + usage.ru_stime, rss.peak_kb / 1024

    def watch(self, pid: int, rate: float, seconds: float, out: Path) -> Watched:
        begin = time.perf_counter()
        process = self.start(pid, rate, seconds, out)
        said, cpu_s, rss_mb = self.finish(process, seconds)
        took = time.perf_counter() - begin
        try:
            stacks, facts = self.read(out, said)
        except (OSError, ValueError, KeyError) as error:
            raise RuntimeError(f"{self.name}: {error}: {said[-500:]}") from error
        return Watched(stacks, took, cpu_s, rss_mb, process.returncode, said, facts)


class PySpy(Tool):
    def __init__(self, program: str, *options: str) -> None:
        self.program, self.options = program, options
        self.name = " ".join(["py-spy", *options])

    def command(self, pid: int, rate: float, seconds: float, out: Path) -> list[str]:
        numbers = ["--rate", str(int(rate)), "--duration", str(max(int(seconds), 1))]
        words = ["--format", "raw", "--idle", "--output", str(out), *self.options]
        return [self.program, "record", "--pid", str(pid), *numbers, *words]

    def read(self, out: Path, said: str) -> tuple[Counter[Stack], dict[str, Any]]:
        errors = re.search(r"Errors: (\d+)", said)
        return from_pyspy(out.read_text(encoding="utf-8")), {"rejected": int(errors[1]) if errors else 0}


class Austin(Tool):
    name = "austin"

    def __init__(self, program: str) -> None:
        self.program = program

    def command(self, pid: int, rate: float, seconds: float, out: Path) -> list[str]:
        interval = f"{max(int(1e6 / rate), 1)}us"
        return [self.program, "-i", interval, "-x", str(max(int(seconds), 1)), "-p", str(pid), "-o", str(out)]

    def read(self, out: Path, said: str) -> tuple[Counter[Stack], dict[str, Any]]:
        errors = re.search(r"(\d+)/(\d+)", re.sub(r"\x1b\[[0-9;]*m", "", said))
        return read_austin(out), {"rejected": int(errors[1]) if errors else 0}


def starts(program: str) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def program_beside_python(name: str) -> Optional[str]:
    """A peer's program: from MAREY_AUSTIN or MAREY_PY_SPY, in this Python's environment, or in the build folder."""
    folders = [Path(sys.executable).parent, ROOT / "build" / "peers" / "bin"]
    named = os.environ.get(f"MAREY_{name.upper().replace('-', '_')}")
    candidates = [named] if named else [str(folder / name) for folder in folders]
    return next((candidate for candidate in candidates if starts(candidate)), None)


def grammar_of(target: Target) -> Grammar:
    return Grammar(target.script)


class Marey(Tool):
    """marey attach with options; marey export and marey report read its recording."""

    name = "marey"

    def __init__(self, *options: str) -> None:
        self.program = str(Path(os.environ.get("MAREY_BUILD", ROOT / "build" / "bench")) / "cli" / "marey")
        self.options = options

    def command(self, pid: int, rate: float, seconds: float, out: Path) -> list[str]:
        numbers = ["--rate", str(rate), "--duration", str(seconds), "-o", str(out)]
        return [self.program, "attach", str(pid), "-q", *numbers, *self.options]

    def ask(self, *arguments: object) -> str:
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"marey {arguments[0]}: {done.stderr[-500:]}")
        return done.stdout

    def tables(self, out: Path, *options: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("report", out, "--samples", "--json", *options))
        return found

    def read(self, out: Path, said: str) -> tuple[Counter[Stack], dict[str, Any]]:
        text = self.ask("export", out, "-q", "--to", "pyspy", "--idle", "-o", "-")
        return from_pyspy(text), dict(self.tables(out)["audit"][0])


# ---- slowdown of a target ----


def slowdowns(target: Target, ways: dict[str, tuple[Tool, float]], rounds: int, out: Path) -> dict[str, list[float]]:
    """Return the slowdown of the target in percent by mode and round: without, with, with, without."""
    window = 0.4
    losses: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        order = ["", *ways, *reversed(ways), ""]
        speeds: dict[str, list[float]] = {}
        for name in order:
            process = None
            if name:
                tool, rate = ways[name]
                process = tool.start(target.pid, rate, 60, out)
                time.sleep(0.3)
            begin = time.perf_counter()
            time.sleep(window)
            speeds.setdefault(name, []).append(target.speed(begin, begin + window))
            if process:
                process.send_signal(signal.SIGINT)
                ways[name][0].finish(process, 1)
        still = sum(speeds[""]) / 2
        for name in ways:
            losses[name].append(100 * (1 - sum(speeds[name]) / 2 / still))
    return losses
