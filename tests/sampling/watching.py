"""Running targets, sampling them with marey, and its output."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

from call_grammar import Grammar, Stack
from sampled_stacks import from_pyspy

HERE = Path(__file__).parent
TARGETS = HERE / "targets"
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("MAREY_BUILD", ROOT / "build" / "dev")).resolve()
MAREY = str(BUILD / "cli" / "marey")
# Sanitizers and busy machines slow everything down; nothing here measures speed.
PATIENCE_S = 60


def find_pythons() -> dict[str, str]:
    """Every installed CPython from 3.10 on, by version: pyenv's, the system's, and those in MAREY_PYTHONS."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [Path(path) for path in os.environ.get("MAREY_PYTHONS", "").split(":") if path]
    found: dict[str, str] = {}
    for path in [*pyenv.glob("3.*/bin/python"), Path("/usr/bin/python3"), *named, Path(sys.executable)]:
        with contextlib.suppress(OSError):
            said = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=False).stdout
            version = re.match(r"Python 3\.(\d+)\.\S+", said)
            if version and int(version[1]) >= 10:
                found.setdefault(said.split()[1], str(path))
    return dict(sorted(found.items(), key=lambda item: [int(n) for n in re.findall(r"\d+", item[0])]))


PYTHONS = find_pythons()
OLDEST, NEWEST = next(iter(PYTHONS)), list(PYTHONS)[-1]


class Target:
    """A running script of the folder targets, and its output lines."""

    def __init__(self, name: str, *arguments: object, command: Optional[list[str]] = None, **options: Any) -> None:
        self.script = TARGETS / f"{name}.py"
        words = [*(command or [sys.executable]), str(self.script), "600", *map(str, arguments)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **options)
        self.lines: list[list[str]] = []
        self.is_ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.pid = self.process.pid

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.split())
            self.is_ready.set()
        self.is_ready.set()

    def wait_until_ready(self) -> Target:
        assert self.is_ready.wait(PATIENCE_S), f"{self.script.name} does not start"
        assert self.lines, f"{self.script.name} ended with {self.process.wait()} before it was ready"
        return self

    def said(self, word: str) -> list[list[str]]:
        """The lines so far that begin with `word`, without it."""
        return [line[1:] for line in self.lines if line[0] == word]

    def wait_for_more(self, word: str, n: int = 2) -> None:
        """Wait for `n` more lines that begin with `word`, as a sign of progress."""
        before = len(self.said(word))
        wait_until(lambda: len(self.said(word)) >= before + n, f"{self.script.name} does not go on")

    def state(self) -> str:
        return thread_states(self.pid).get(self.pid, "gone")

    @property
    def grammar(self) -> Grammar:
        return Grammar(self.script)

    def planted_line(self) -> int:
        lines = self.script.read_text(encoding="utf-8").splitlines()
        return next(i for i, line in enumerate(lines, 1) if line.endswith("# planted"))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.join()


def wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.01)


def thread_states(pid: int) -> dict[int, str]:
    """The letter of each thread: R, S, T stopped by a signal, t by a tracer."""
    states = {}
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states[int(stat.parent.name)] = stat.read_text(errors="replace").rpartition(")")[2].split()[0]
    return states


def tracers(pid: int) -> set[int]:
    """The tracer of a thread of this process."""
    found = set()
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):
            match = re.search(r"TracerPid:\s*(\d+)", status.read_text(errors="replace"))
            found.add(int(match[1]) if match else 0)
    return found - {0}


@contextlib.contextmanager
def running(name: str, *arguments: object, **options: Any) -> Iterator[Target]:
    target = Target(name, *arguments, **options)
    try:
        yield target.wait_until_ready()
    finally:
        target.end()


class Marey:
    """The command line in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.n = 0

    def run(
        self, *arguments: object, status: Optional[int] = 0, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        command = [*before, MAREY, *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=PATIENCE_S,
            check=False,
        )
        if status is not None:
            assert done.returncode == status, (
                f"{command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done

    def start(self, *arguments: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [*before, MAREY, *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.folder, text=True, errors="replace", **pipes)

    def new_recording(self) -> Path:
        self.n += 1
        return self.folder / f"{self.n}.marey"

    def attach(self, pid: int, *options: object, seconds: float = 1) -> Path:
        """Sample `pid` and return the recording."""
        recording = self.new_recording()
        self.run("attach", pid, "-q", "-o", recording, "--duration", seconds, *options)
        return recording

    def stacks(self, recording: Path, *options: object) -> Counter[Stack]:
        """All samples of a recording, including idle threads."""
        return from_pyspy(self.run("export", recording, "-q", "--to", "pyspy", "--idle", "-o", "-", *options).stdout)

    def report(self, recording: Path, *options: object) -> dict[str, Any]:
        """The tables of the samples."""
        found: dict[str, Any] = json.loads(self.run("report", recording, "--samples", "--json", *options).stdout)
        return found

    def now(self, *pids: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("stacks", *pids, "--json").stdout)
        return found


def functions_in(stacks: Counter[Stack]) -> set[str]:
    return {frame.function for stack in stacks for frame in stack}
