"""Switch a tool on and off between blocks of steps in one process, so that both see the same machine and memory.

A program calls `step()` at the start of each of its steps. That does nothing unless BENCH_ALTERNATE is set, as
bench_auto.py does: "KIND,STEPS,FILE". Each block of STEPS steps is one line of FILE: 1 or 0 for on or off, wall time
and CPU time in ns. Two blocks are a pair, in random order.

KIND     the tool is off when
marey    the sampling process is stopped, and the hooks only call the wrapped functions
parent   the sampling process is stopped; for samplers that started this program
always   torch.profiler does not run; when on, it records each step
cycle    the same; when on, it waits, warms up, and records three steps
viz      viztracer's tracer does not run
none     never: both kinds of blocks are the same
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_kind, _, _rest = os.environ.get("BENCH_ALTERNATE", "").partition(",")
_steps, _, _path = _rest.partition(",")
_chance = random.Random(1)


def _sampler() -> int:
    """The process that started this program: the nearest ancestor that is not Python, or is py-spy."""
    pid = os.getppid()
    while pid > 1:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        if name in ("marey", "py-spy", "austin"):
            return pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    raise RuntimeError("no sampler started this program")


class _Parent:
    def __init__(self) -> None:
        self.pid = _sampler()

    def switch(self, is_on: bool) -> None:
        os.kill(self.pid, signal.SIGCONT if is_on else signal.SIGSTOP)

    def step(self) -> None:
        """Nothing to do."""


class _Marey(_Parent):
    def switch(self, is_on: bool) -> None:
        super().switch(is_on)
        hooks = sys.modules.get("marey._auto")
        if hooks is not None:
            if not hasattr(self, "when_on"):
                self.when_on: Callable[[], bool] = hooks.is_compiling
            hooks.is_compiling = self.when_on if is_on else _always


def _always() -> bool:
    return True


class _Torch:
    def __init__(self) -> None:
        self.profiler: Any = None

    def switch(self, is_on: bool) -> None:
        from torch.profiler import profile, schedule

        if self.profiler is not None:
            self.profiler.stop()
            self.profiler = None
        if is_on:
            when = schedule(wait=1, warmup=1, active=3) if _kind == "cycle" else None
            self.profiler = profile(schedule=when)
            self.profiler.start()

    def step(self) -> None:
        if self.profiler is not None and _kind == "cycle":
            self.profiler.step()


class _Viz:
    def __init__(self) -> None:
        from viztracer import VizTracer

        self.tracer = VizTracer(verbose=0)

    def switch(self, is_on: bool) -> None:
        if is_on:
            self.tracer.start()
        else:
            self.tracer.stop()
            self.tracer.clear()

    def step(self) -> None:
        """Nothing to do."""


class _None:
    def switch(self, is_on: bool) -> None:
        """Nothing to do."""

    step = _Parent.step


_TOOLS = {"marey": _Marey, "parent": _Parent, "always": _Torch, "cycle": _Torch, "viz": _Viz, "none": _None}


class _Blocks:
    def __init__(self) -> None:
        self.tool: Any = _TOOLS[_kind]()
        self.left = 0
        self.order: list[bool] = []
        self.is_on = True
        self.began = (0, 0)

    def step(self) -> None:
        if self.left > 0:
            self.left -= 1
            self.tool.step()
            return
        ended = (time.perf_counter_ns(), time.process_time_ns())
        if self.began[0]:
            with open(_path, "a", encoding="utf-8") as out:
                out.write(f"{self.is_on:d} {ended[0] - self.began[0]} {ended[1] - self.began[1]}\n")
        if not self.order:
            first = _chance.random() < 0.5
            self.order = [not first, first]
        self.is_on = self.order.pop()
        self.tool.switch(self.is_on)
        self.left = int(_steps) - 1
        self.began = (time.perf_counter_ns(), time.process_time_ns())
        self.tool.step()

    def end(self) -> None:
        self.tool.switch(True)


def _nothing() -> None:
    """Not measured."""


step = _nothing
if _kind:
    _blocks = _Blocks()
    step = _blocks.step


def end() -> None:
    """Leave the tool on, so that it can finish."""
    if _kind:
        _blocks.end()
