"""Is B faster than A, and by how much? For recordings and stats, as in `marey compare`, and for callables."""

from __future__ import annotations

import os

from marey._report import Report, settings_of
from marey._table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable, Sequence
    from typing import Optional, Union

    from marey import _tools
    from marey._page import Page
    from marey._table import Row

    Path = Union[str, os.PathLike[str]]
    Paths = Union[Path, Sequence[Path]]

SAMPLE_NS = 200_000
"""Calls are timed together until they last this long: the clock and the loop then cost a thousandth of it."""


class Comparison(Table):
    """The ranges of marey.compare(): name, a_ns, b_ns, change_percent, low_percent, high_percent, verdict, and more.

    The largest effect on the whole iteration comes first. Prints like `marey compare`.
    """

    def __init__(self, native: _tools.Report) -> None:
        """Wrap a report of the reader."""
        self.report = Report("compare", native)
        super().__init__(next(table for name, _, table in native.tables() if name == "ranges"))
        self._report_native = native

    @property
    def iteration(self) -> Optional[Row]:
        """The row of the whole iteration; None if the runs have no iterations."""
        return next(iter(self.report["iteration"]), None)

    @property
    def program(self) -> Table:
        """Wall and CPU time of the programs, if they ran under `marey run`: `(wall time)`, `(CPU time)`."""
        return self.report["program"]

    @property
    def functions(self) -> Table:
        """Self times of functions, if both sides were sampled or have call profiles; the largest change first."""
        return self.report["functions"]

    @property
    def only(self) -> Table:
        """Ranges that are only on one side, and such functions with at least 1 % of their program's time."""
        return self.report["only"]

    @property
    def runs(self) -> Table:
        """One row per run that was read."""
        return self.report["runs"]

    @property
    def warnings(self) -> list[str]:
        """Caveats: different machines, single runs, runs that did not alternate."""
        return list(self.report["warnings"]["text"])

    def to_markdown(self) -> str:
        """Return the output of `marey compare --markdown`."""
        return self.report.markdown()

    def to_json(self) -> str:
        """Return the output of `marey compare --json`."""
        return self.report.json()

    def to_html(self, path: Path, *, title: Optional[str] = None) -> None:
        """Write the page of `marey compare --html`: verdicts with their intervals, and distributions of times."""
        from marey._page import write_page

        write_page(path, lambda fd: self._report_native.page(fd, title))

    def page(self, *, title: Optional[str] = None) -> Page:
        """Return the same page for a notebook, which shows it below the cell."""
        from marey._page import make_page

        return make_page(lambda fd: self._report_native.page(fd, title))

    def __repr__(self) -> str:
        return self.report.text().rstrip("\n")


def compare(
    a: Paths,
    b: Paths,
    *,
    filter: Optional[str] = None,
    smallest_percent: float = 1.0,
    skip: int = 0,
    idle: bool = False,
    startup: bool = False,
) -> Comparison:
    """Compare recordings, traces of other tools (see marey.import_trace()) or files of stats, range by range.

    Each side is a path or several, which are repeats; so are the runs that `marey run --repeat` puts into one
    recording. `filter` keeps the matching ranges. An interval that contains 0 and lies within `smallest_percent` is
    "same", a wider one is "unsure". `skip` excludes that many iterations at the start of each run, in addition to
    marked warm-up. Functions exclude idle processes and imports at start-up, unless `idle` or `startup` is given.
    """
    from marey import _tools

    if not 0 < smallest_percent < 1000:
        raise ValueError(f"smallest_percent must be above 0, not {smallest_percent!r}")
    sides = [(side, path) for side, given in (("A", a), ("B", b)) for path in _paths(given)]
    settings = settings_of(
        {
            "filter": filter,
            "smallest": smallest_percent,
            "skip": skip or None,
            "idle": idle,
            "startup": startup,
        }
    )
    paths, groups = tuple(path for _, path in sides), tuple(side for side, _ in sides)
    return Comparison(_tools.report_files("compare", paths, settings, groups))


def _paths(paths: Paths) -> list[bytes]:
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return [os.fsencode(path) for path in listed]


class FunctionComparison:
    """The result of marey.compare_functions(): g compared with f. Prints as a sentence.

    `verdict` is "faster", "slower", "same" (no difference shown) or "unsure"; `change_percent` with `low_percent` and
    `high_percent`, its 95 % interval; `a_ns` and `b_ns` medians of one call; `times_a` and `times_b` each round's.
    """

    def __init__(self, times_a: list[float], times_b: list[float], smallest_percent: float) -> None:
        """Compare pairs of times."""
        from marey import _tools

        self.times_a, self.times_b = times_a, times_b
        self.rounds = len(times_a)
        found = _tools.compare_pairs(times_a, times_b, smallest_percent)
        self.verdict, self.change_percent, self.low_percent, self.high_percent = found[:4]
        self.a_ns, self.b_ns, self.reason = found[4:]

    @property
    def is_precise(self) -> bool:
        """Whether no more rounds are needed: the interval is known to a tenth of the change, or is narrow."""
        width = self.high_percent - self.low_percent
        return width <= 0.2 or width <= abs(self.change_percent) / 5

    def __repr__(self) -> str:
        bounds = f"{self.low_percent:+.2f} to {self.high_percent:+.2f} %"
        if self.verdict in ("faster", "slower"):
            text = f"the second is {abs(self.change_percent):.2f} % {self.verdict} ({bounds})"
        elif self.verdict == "same":
            text = f"no difference shown ({bounds})"
        else:
            text = f"undecided ({bounds}): {self.reason}"
        return f"<{text}; {self.a_ns:.4g} ns and {self.b_ns:.4g} ns, {self.rounds} rounds>"


def compare_functions(
    f: Callable[[], object],
    g: Callable[[], object],
    setup: Optional[Callable[[], object]] = None,
    *,
    seconds: float = 5.0,
    max_rounds: int = 10_000,
    smallest_percent: float = 1.0,
    sync: Optional[Callable[[], object]] = None,
) -> FunctionComparison:
    """Run two callables alternately (f g, g f, f g, ...) and decide whether `g` is faster than `f`.

    `setup` runs before each call and is not timed. Without `setup`, several short calls are timed together. `sync` runs
    at the end of each timed interval: torch.cuda.synchronize for GPU work. It runs for `seconds`, or until the interval
    is narrow, which is checked after 32 rounds, 64, 128 and so on. Garbage collection is deferred.
    """
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, not {seconds!r}")
    if max_rounds < 6:
        raise ValueError(f"max_rounds must be at least 6, not {max_rounds!r}")
    import gc
    from time import perf_counter_ns

    timers = (_Timer(f, setup, sync), _Timer(g, setup, sync))
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for timer in timers:
            timer.warm_up()
        times: tuple[list[float], list[float]] = ([], [])
        end, look_at = perf_counter_ns() + int(seconds * 1e9), 32
        while len(times[0]) < max_rounds and (perf_counter_ns() < end or len(times[0]) < 6):
            first = len(times[0]) % 2
            for which in (first, 1 - first):
                times[which].append(timers[which].time())
            if len(times[0]) == look_at:
                look_at *= 2
                if FunctionComparison(*times, smallest_percent).is_precise:
                    break
        return FunctionComparison(*times, smallest_percent)
    finally:
        if was_enabled:
            gc.enable()


class _Timer:
    """One of the two callables."""

    def __init__(
        self, call: Callable[[], object], setup: Optional[Callable[[], object]], sync: Optional[Callable[[], object]]
    ) -> None:
        self._call, self._setup, self._sync = call, setup, sync
        self._n_calls = 1

    def warm_up(self) -> None:
        """Call it three times, then determine how many calls a sample needs."""
        shortest = min(self.time() for _ in range(3))
        if self._setup is None and shortest < SAMPLE_NS:
            self._n_calls = int(SAMPLE_NS / max(shortest, 10)) + 1
            self.time()

    def time(self) -> float:
        """Nanoseconds of one call."""
        from time import perf_counter_ns

        if self._setup is not None:
            self._setup()
        call, sync = self._call, self._sync
        begin = perf_counter_ns()
        for _ in range(self._n_calls):
            call()
        if sync is not None:
            sync()
        return (perf_counter_ns() - begin) / self._n_calls
