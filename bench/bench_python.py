#!/usr/bin/env python3
"""Cost of a range in Python, compared with alternatives.

    bench_python.py [--quick] [--dir DIR] [--results FILE]

Each candidate is a loop of one statement, compiled separately, so that names are local and lookups are those of user
code. All candidates run in each round, in rotating order, on one core; the time of an empty loop in the same round is
subtracted, and the rest is divided by that of a pair of time.perf_counter_ns() calls. The figure is the median of these
ratios. A peer that is not installed is skipped with a message.
"""

from __future__ import annotations

import contextlib
import cProfile
import os
import shutil
import statistics
import sys
import time
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, Callable

from bench_results import Results, median_with_interval, options_of

import marey

# CPU time of this thread, independent of other programs.
LOOP = """
def loop(n, {names}):
    clock = thread_time_ns
    started = clock()
    for _ in repeat(None, n):
        {statement}
    return clock() - started
"""


@dataclass
class Candidate:
    """A statement to be timed, with its names and a context around it."""

    name: str
    statement: str
    names: dict[str, Any] = field(default_factory=dict)
    around: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    share: int = 1  # divides the number of iterations for a slow peer
    minus: str = "empty loop"  # the baseline to subtract
    ns: list[float] = field(default_factory=list)

    def compile(self) -> Callable[[int], int]:
        scope: dict[str, Any] = {"thread_time_ns": time.thread_time_ns, "repeat": repeat}
        names = ", ".join(f"{name}={name}" for name in self.names)
        exec(LOOP.format(names=names or "_unused=None", statement=self.statement), {**scope, **self.names}, scope)
        return scope["loop"]


class Recordings:
    """Recordings for the candidates that need one, with default options."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "python.marey"

    @contextlib.contextmanager
    def on(self, **options: Any) -> Any:
        shutil.rmtree(self.path, ignore_errors=True)
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, Recordings.all_cpus)  # the flush thread inherits it and must not share this core
        marey.start(self.path, **options)
        os.sched_setaffinity(0, allowed)
        try:
            yield
        finally:
            marey.stop()

    all_cpus = os.sched_getaffinity(0)


# ---- candidates ----


PAIR = "perf_counter_ns pair"
CALL = "a call of an empty function"
WITHOUT_NVTX = "marey: with on a range, enabled, nvtx=0"
WRAPPER_OFF = "marey: NVTXRangeWrapper push and pop, disabled"
WRAPPER_ORDERED = "marey: NVTXRangeWrapper push and pop, ordered"
WRAPPER_RECORDED = "marey: NVTXRangeWrapper push and pop, ordered, recorded"
STOPWATCH_OFF = "marey: Stopwatch start and end, disabled, bound methods"
STOPWATCH_OFF_OBTAINED = "marey: Stopwatch() obtained for each, disabled"
STOPWATCH_ON = "marey: Stopwatch start and end, enabled"
STOPWATCH_RECORDED = "marey: Stopwatch start and end, enabled, recorded"
STOPWATCH_BLOCK = "marey: with sw(name), enabled"
NVTX = "nvtx.annotate, kept, without a tool"
NVTX_LITERAL = 'nvtx.annotate("literal") without a tool'
TORCH_OFF = "record_function, profiler off"
TORCH_ON = "record_function, profiler on"
VIZTRACER = "viztracer log_event, tracing"


def nothing_to_decorate() -> Callable[[], None]:
    def empty() -> None:
        pass

    return empty


def ours(recordings: Recordings) -> list[Candidate]:
    region = marey.range("bench")
    decorated = marey.range("bench function")(nothing_to_decorate())
    plain = nothing_to_decorate()
    on = recordings.on
    with_region, with_literal = "with region: pass", 'with marey.range("bench literal"): pass'
    return [
        Candidate("marey: with on a range, enabled", with_region, {"region": region}, on),
        Candidate("marey: with on a range, disabled", with_region, {"region": region}),
        Candidate('marey: with marey.range("literal"), enabled', with_literal, {"marey": marey}, on),
        Candidate('marey: with marey.range("literal"), disabled', with_literal, {"marey": marey}),
        Candidate("marey: push and pop, enabled", 'push("bench push"); pop()', {"push": marey.push, "pop": marey.pop}, on),
        Candidate(CALL, "f()", {"f": plain}),
        Candidate("marey: decorator, enabled", "f()", {"f": decorated}, on, minus=CALL),
        Candidate("marey: decorator, disabled", "f()", {"f": decorated}, minus=CALL),
    ]


def ours_with_nvtx(recordings: Recordings) -> list[Candidate]:
    """Return the range with nvtx=0, and the range wrapper, if they are built."""
    candidates = []
    if has_option("nvtx"):
        region = {"region": marey.range("bench")}
        candidates += [Candidate(WITHOUT_NVTX, "with region: pass", region, lambda: recordings.on(nvtx=0))]
    if hasattr(marey, "NVTXRangeWrapper"):
        wrapper = marey.NVTXRangeWrapper()

        @contextlib.contextmanager
        def ordered(recording: Callable[[], Any] = contextlib.nullcontext) -> Any:
            with recording():
                wrapper.enable(False, False, True)
                try:
                    yield
                finally:
                    wrapper.disable()

        statement = 'wrapper.range_push("bench wrapper"); wrapper.range_pop("bench wrapper")'
        candidates += [
            Candidate(WRAPPER_OFF, statement, {"wrapper": wrapper}),
            Candidate(WRAPPER_ORDERED, statement, {"wrapper": wrapper}, ordered),
            Candidate(WRAPPER_RECORDED, statement, {"wrapper": wrapper}, lambda: ordered(recordings.on)),
        ]
    return candidates


def ours_with_stopwatch(recordings: Recordings) -> list[Candidate]:
    """Return a pair of start and end of the stopwatch, as users write it."""
    if not hasattr(marey, "Stopwatch"):
        return []
    stopwatch = marey.Stopwatch()

    @contextlib.contextmanager
    def on(recording: Callable[[], Any] = contextlib.nullcontext) -> Any:
        with recording():
            stopwatch.enable()
            try:
                yield
            finally:
                stopwatch.reset()

    bound = {"start": stopwatch.start_meas, "end": stopwatch.end_meas}
    pair = 'start("bench stopwatch"); end("bench stopwatch")'
    obtained = 'Stopwatch().start_meas("bench stopwatch"); Stopwatch().end_meas("bench stopwatch")'
    return [
        Candidate(STOPWATCH_OFF, pair, bound),
        Candidate(STOPWATCH_OFF_OBTAINED, obtained, {"Stopwatch": marey.Stopwatch}),
        Candidate(STOPWATCH_ON, pair, bound, on),
        Candidate(STOPWATCH_RECORDED, pair, bound, lambda: on(recordings.on)),
        Candidate(STOPWATCH_BLOCK, 'with sw("bench stopwatch"): pass', {"sw": stopwatch}, on),
    ]


def has_option(name: str) -> bool:
    return any(line.split("=")[0].strip() == name for line in marey.options_help().splitlines())


def standard_library() -> list[Candidate]:
    @contextlib.contextmanager
    def profiling() -> Any:
        profile = cProfile.Profile()
        profile.enable()
        try:
            yield
        finally:
            profile.disable()

    clock = time.perf_counter_ns
    return [
        Candidate("empty loop", "pass", minus=""),
        Candidate(PAIR, "now(); now()", {"now": clock}),
        Candidate("contextlib.nullcontext, kept", "with c: pass", {"c": contextlib.nullcontext()}),
        Candidate("cProfile on an empty function", "f()", {"f": nothing_to_decorate()}, profiling, 4, CALL),
    ]


def peer_nvtx() -> list[Candidate]:
    import nvtx

    return [
        Candidate(NVTX, "with a: pass", {"a": nvtx.annotate("bench")}, share=4),
        Candidate(NVTX_LITERAL, 'with annotate("bench literal"): pass', {"annotate": nvtx.annotate}, share=4),
    ]


def peer_torch() -> list[Candidate]:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise each profile prints two lines
    import torch

    torch.set_num_threads(1)
    names = {"record_function": torch.profiler.record_function}
    statement = 'with record_function("bench"): pass'

    def profiler() -> Any:
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])

    return [
        Candidate(TORCH_OFF, statement, names, share=16),
        Candidate(TORCH_ON, statement, names, profiler, share=256),
    ]


def peer_viztracer() -> list[Candidate]:
    import viztracer

    tracer = viztracer.VizTracer(verbose=0, tracer_entries=100_000)

    @contextlib.contextmanager
    def tracing() -> Any:
        tracer.start()
        try:
            yield
        finally:
            tracer.stop()
            tracer.clear()

    names = {"log_event": tracer.log_event}
    return [Candidate(VIZTRACER, 'with log_event("bench"): pass', names, tracing, share=256)]


def collect(recordings: Recordings) -> list[Candidate]:
    candidates = standard_library() + ours(recordings) + ours_with_nvtx(recordings) + ours_with_stopwatch(recordings)
    for peer in (peer_nvtx, peer_torch, peer_viztracer):
        try:
            candidates += peer()
        except ImportError as error:
            print(f"  left out: {peer.__name__.removeprefix('peer_')} is not installed ({error})")
    return candidates


# ---- rounds ----


def run_rounds(candidates: list[Candidate], n_rounds: int, n: int) -> None:
    loops = [candidate.compile() for candidate in candidates]
    for turn in range(n_rounds):
        for i in range(len(candidates)):
            k = (turn + i) % len(candidates)
            turns = max(n // candidates[k].share, 256)
            with candidates[k].around():
                loops[k](turns // 8)
                candidates[k].ns.append(loops[k](turns) / turns)


class Figures:
    """Results: a candidate's cost by round, and ratios of two."""

    def __init__(self, candidates: list[Candidate]) -> None:
        self.by_name = {candidate.name: candidate for candidate in candidates}

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def net(self, name: str) -> list[float]:
        candidate = self.by_name[name]
        if not candidate.minus:
            return candidate.ns
        return [a - b for a, b in zip(candidate.ns, self.by_name[candidate.minus].ns)]

    def ratio(self, name: str, to: str) -> tuple[float, float, float]:
        return median_with_interval([a / b for a, b in zip(self.net(name), self.net(to))])

    def difference(self, name: str, to: str) -> tuple[float, float, float]:
        return median_with_interval([a - b for a, b in zip(self.net(name), self.net(to))])


def print_all(figures: Figures, n_rounds: int) -> None:
    print(f"{n_rounds} rounds in rotating order; what it would cost without is subtracted from each")
    print(f"  {'':46} {'min ns':>9} {'median ns':>9} {'x the pair':>24}")
    for name in figures.by_name:
        ns = figures.net(name)
        low, mid, high = figures.ratio(name, PAIR)
        print(f"  {name:46} {min(ns):9.1f} {statistics.median(ns):9.1f} {mid:9.2f} ({low:.2f} to {high:.2f})")


# ---- results ----


def put_against_pair(results: Results, figures: Figures) -> None:
    results.put("Python perf_counter_ns pair", f"{statistics.median(figures.net(PAIR)):.1f} ns")
    for name, bar in (
        ("marey: with on a range, enabled", 0.5),
        ("marey: with on a range, disabled", 0.4),
        ('marey: with marey.range("literal"), enabled', 1.5),
        ('marey: with marey.range("literal"), disabled', None),
    ):
        low, mid, high = figures.ratio(name, PAIR)
        measured = f"{mid:.2f} x the pair ({low:.2f} to {high:.2f}), {statistics.median(figures.net(name)):.1f} ns"
        results.put(
            name.replace("marey:", "Python", 1),
            measured,
            f"<= {bar} x the pair" if bar else "",
            mid <= bar if bar else None,
        )


def put_times(results: Results, figures: Figures) -> None:
    for name, bar in (
        ("marey: decorator, enabled", 35),
        ("marey: decorator, disabled", None),
        ("marey: push and pop, enabled", 33),
    ):
        low, mid, high = median_with_interval(figures.net(name))
        measured = f"{mid:.1f} ns ({low:.1f} to {high:.1f})"
        results.put(
            name.replace("marey:", "Python", 1), measured, f"<= {bar} ns" if bar else "", mid <= bar if bar else None
        )


def put_nvtx(results: Results, figures: Figures) -> None:
    what, bar = "Python with on a range, what NVTX adds without a tool", "<= 5 ns"
    if WITHOUT_NVTX in figures:
        low, mid, high = figures.difference("marey: with on a range, enabled", WITHOUT_NVTX)
        results.put(what, f"{mid:.2f} ns ({low:.2f} to {high:.2f})", bar, mid <= 5)
    else:
        results.put(what, "not built", bar)


def put_pairs(results: Results, figures: Figures) -> None:
    """Add rows for the range wrapper and the stopwatch."""
    for name, bar, of_pair in (
        (WRAPPER_OFF, 30, False),
        (WRAPPER_ORDERED, 0.6, True),
        (WRAPPER_RECORDED, 0.6, True),
        (STOPWATCH_OFF, 30, False),
        (STOPWATCH_OFF_OBTAINED, None, False),
        (STOPWATCH_ON, 0.6, True),
        (STOPWATCH_RECORDED, None, True),
        (STOPWATCH_BLOCK, None, True),
    ):
        what, bar_text = name.replace("marey:", "Python", 1), f"<= {bar} x the pair" if of_pair else f"<= {bar} ns"
        if bar is None:
            bar_text = ""
        if name not in figures:
            results.put(what, "not built", bar_text)
            continue
        ns, ratio = median_with_interval(figures.net(name)), figures.ratio(name, PAIR)
        measured = f"{ratio[1]:.2f} x the pair ({ratio[0]:.2f} to {ratio[2]:.2f}), {ns[1]:.1f} ns"
        results.put(what, measured, bar_text, None if bar is None else (ratio if of_pair else ns)[1] <= bar)


def put_with_tool(results: Results, recordings: Recordings, n_rounds: int, n: int) -> None:
    """Measure ranges with a tool that only counts; must be last, because a tool cannot be removed."""
    tool = Path(os.environ.get("MAREY_BUILD", "")) / "bench" / "nvtx_counter.so"
    what = "  Python with on a range, with a tool that only counts"
    if not has_option("nvtx") or not tool.exists():
        results.put(what, "not built")
        return
    os.environ["NVTX_INJECTION64_PATH"] = str(tool)
    on = "with a tool, enabled"
    with_region, region = "with region: pass", {"region": marey.range("bench")}
    candidates = [Candidate("empty loop", "pass", minus=""), Candidate(on, with_region, region, recordings.on)]
    run_rounds(candidates, n_rounds, n)
    results.put(what, f"{statistics.median(Figures(candidates).net(on)):.1f} ns")


def put_against_peers(results: Results, figures: Figures) -> None:
    """Compare `with` on a range with its peers: kept with kept, literal with literal, off with off."""
    kept, literal = "with on a range", 'with marey.range("literal")'
    for peer, form, state, bar in (
        (NVTX, kept, "enabled", 4),
        (NVTX, kept, "disabled", None),
        (NVTX_LITERAL, literal, "enabled", 4),
        (TORCH_OFF, kept, "disabled", None),
        (TORCH_ON, kept, "enabled", 10),
        (VIZTRACER, kept, "enabled", 30),
    ):
        what = f"Python {form}, {state}, against {peer}"
        bar_text = f">= {bar} x faster" if bar else ""
        if peer not in figures:
            results.put(what, "not installed", bar_text)
            continue
        low, mid, high = figures.ratio(peer, f"marey: {form}, {state}")
        measured = (
            f"{mid:.1f} x faster ({low:.1f} to {high:.1f}) than its {statistics.median(figures.net(peer)):.0f} ns"
        )
        results.put(what, measured, bar_text, mid >= bar if bar else None)


def main() -> int:
    arguments = options_of(__doc__).parse_args()

    os.sched_setaffinity(0, {min(Recordings.all_cpus)})
    recordings = Recordings(Path(arguments.dir))
    candidates = collect(recordings)
    n_rounds, n = (15, 1 << 16) if arguments.quick else (25, 1 << 18)
    run_rounds(candidates, n_rounds, n)
    figures = Figures(candidates)
    print_all(figures, n_rounds)
    results = Results(arguments.results)
    put_against_pair(results, figures)
    put_times(results, figures)
    put_against_peers(results, figures)
    put_nvtx(results, figures)
    put_with_tool(results, recordings, 5, n)
    put_pairs(results, figures)
    shutil.rmtree(Path(arguments.dir) / "python.marey", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
