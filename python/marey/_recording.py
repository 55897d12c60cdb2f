"""Recordings as tables. The reader library is loaded with the first recording, not in programs that only record."""

from __future__ import annotations

import os

from marey._report import Report, settings_of
from marey._table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal, Optional, Union, overload

    from marey import _tools
    from marey._diagnosis import Diagnosis
    from marey._page import Page
    from marey._report import Setting

    Path = Union[str, os.PathLike[str]]
    GpuTable = Literal[
        "devices",
        "kernels",
        "shapes",
        "copies",
        "streams",
        "ranges",
        "launch_bound",
        "iterations",
        "gaps",
        "warnings",
    ]

    MemoryTable = Literal[
        "pools",
        "phases",
        "categories",
        "modules",
        "stacks",
        "growth",
        "fragmentation",
        "resident",
        "live",
        "notes",
    ]

    CallsBy = Literal["function", "signature", "shape", "path", "thread", "total", "note"]
    CallsSort = Literal["self", "total", "calls", "percall", "name"]
    SamplesBy = Literal[
        "function",
        "line",
        "file",
        "module",
        "thread",
        "process",
        "rank",
        "stack",
        "contact",
        "wait",
        "gil",
        "audit",
        "total",
        "note",
    ]


def load(
    path: Union[Path, Sequence[Path]],
    *,
    filter: Optional[str] = None,
    max_depth: int = 0,
    data: Optional[str] = None,
    process: Union[str, int, None] = None,
) -> Recording:
    """Open a recording, or several that are merged (ranks, repeats).

    Each may instead be a file of another tool, or a folder of such files: see marey.import_trace(). `filter` keeps the
    names that match a shell pattern; a string without wildcards matches anywhere. `max_depth` hides ranges that are
    nested deeper, which still count; 0 shows all. `data` names the range in which an iteration waits for data.
    `process` keeps some processes: a PID, "worker" (of a data loader), "worker0", "main" (all others), or a part of a
    command.
    """
    return Recording(path, filter=filter, max_depth=max_depth, data=data, process=process)


def memory_report(path: Path, *, stacks: int = 0) -> dict[str, Table]:
    """Return the tables of Recording.memory() for a memory snapshot or trace, by name.

    A snapshot of torch's CUDA allocator (a pickle, from torch.cuda.memory._dump_snapshot), or a trace of torch.profiler
    with profile_memory=True. `stacks` is their maximum number; 0: 20.
    """
    from marey import _tools

    settings = settings_of({"limit": stacks or None})
    return Report("memory", _tools.report_files("memory", (os.fspath(path),), settings)).tables


class Recording:
    """One recording, or several that are merged. Made by marey.load(path).

    Events are read when the first table is accessed; memory grows with names and threads, not with events.
    """

    def __init__(
        self,
        path: Union[Path, Sequence[Path]],
        *,
        filter: Optional[str] = None,
        max_depth: int = 0,
        data: Optional[str] = None,
        process: Union[str, int, None] = None,
    ) -> None:
        """Open the recordings at `path`; see marey.load()."""
        from marey import _tools

        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        if not paths:
            raise ValueError("marey.load needs at least one recording")
        self._paths = tuple(os.fspath(p) for p in paths)
        self._process = None if process is None else str(process)
        self._native = _tools.Recording(self._paths, self._process)
        self._reports: dict[tuple[str, ...], Report] = {}
        self._filter = filter
        self._settings: dict[str, Setting] = {"filter": filter, "depth": max_depth or None, "data": data}

    def table(self, name: str) -> Table:
        """Return a table by name; the properties below are the names."""
        return self._ranges()[name]

    def _ranges(self, sort: Optional[str] = None) -> Report:
        return self._report("ranges", **self._settings, sort=sort)

    @property
    def ranges(self) -> Table:
        """One row per name: count, total, self, mean, quantiles, share."""
        return self.table("ranges")

    @property
    def tree(self) -> Table:
        """One row per path of names, depth first, children by decreasing time."""
        return self.table("tree")

    @property
    def threads(self) -> Table:
        """One row per thread and name."""
        return self.table("threads")

    @property
    def ranks(self) -> Table:
        """One row per rank and name."""
        return self.table("ranks")

    @property
    def rank_spread(self) -> Table:
        """The whole iteration, then one row per name: its median, spread and extremes over ranks."""
        return self.table("rank_spread")

    @property
    def rank_times(self) -> Table:
        """One row per rank, the slowest first: difference from the median, how often it is slow, and in which range."""
        return self.table("rank_times")

    @property
    def rank_outliers(self) -> Table:
        """One row per rank and name that is an outlier among ranks, the largest difference first."""
        return self.table("rank_outliers")

    @property
    def rank_hosts(self) -> Table:
        """One row per machine, the slowest first, compared with the other machines; empty for a single machine."""
        return self.table("rank_hosts")

    @property
    def processes(self) -> Table:
        """One row per process: command, times, cost of measuring, how it ended."""
        return self.table("processes")

    @property
    def async_ranges(self) -> Table:
        """Like ranges, for async ranges, which may end on another thread."""
        return self.table("async")

    @property
    def counters(self) -> Table:
        """One row per counter: count, minimum, mean, maximum, last."""
        return self.table("counters")

    @property
    def marks(self) -> Table:
        """One row per mark, with its count."""
        return self.table("marks")

    @property
    def iterations(self) -> Table:
        """The whole iteration, then one row per name: its time per iteration, without warm-up."""
        return self.table("iterations")

    @property
    def iteration_ranks(self) -> Table:
        """One row per process with iterations: duration, count, how often it was the slowest."""
        return self.table("iteration_ranks")

    @property
    def throughput(self) -> Table:
        """One row: iterations and samples per second, the share of waiting for data."""
        return self.table("throughput")

    @property
    def phases(self) -> Table:
        """One row per phase: count, duration, iterations, share of the steady part, or of the run without steps."""
        return self.table("phases")

    @property
    def steady(self) -> Table:
        """One row per range name: self time in the steady part, from the end of warm-up or of the first step."""
        return self.table("steady")

    @property
    def outliers(self) -> Table:
        """Outlier iterations, and the range that took longer in them."""
        return self.table("outliers")

    @property
    def kernels(self) -> Table:
        """One row per name and kind of GPU activity: count, total, mean, quantiles, share, streams, devices."""
        return self.table("kernels")

    @property
    def copies(self) -> Table:
        """One row per name of a GPU copy or memset: direction, bytes, times, bytes per second."""
        return self.table("copies")

    @property
    def gpu_ranges(self) -> Table:
        """One row per range that launched GPU activity: count, GPU time, and self GPU time of its own launches."""
        return self.table("gpu_ranges")

    def epochs(self, by: str = "epoch", *, first: bool = False) -> Table:
        """Return the times of epochs.

        By "epoch": one row each, with the time of the slowest rank. By "rank": one row for each epoch and rank, with
        its phases; these and `other_ns` add up to its duration. "average": over epochs, first the slowest rank of
        each, then rank by rank. "phase": over epochs and ranks. "note": notes on the figures.

        The first epoch of each process is not part of averages, unless `first` is set. MareyError if the program marked
        no epochs.
        """
        return self._report("epochs", first=first).by(by)

    def epoch_report(self, *, first: bool = False) -> str:
        """Return the same as text: the time of an epoch, the slowest rank, and tables over all ranks."""
        return self._report("epochs", first=first).text(short=True)

    def energy(self, by: str = "run", *, group: int = 0, co2: float = 0.0, pue: float = 1.0) -> Table:
        """Return joules, watts and utilization.

        By "run", "epoch", "iteration", "range", "phase", "device", "rank" or "node". "repeat" is mean and interval over
        runs, "note" notes on the figures. `plus_minus_j` is the uncertainty; it is None for windows that are too short.
        Iterations are in groups of `group`; 0: as many as are long enough. `co2`, grams per kWh, and `pue`, the PUE of
        the data center, fill `co2_g`.

        MareyError if no energy was recorded.
        """
        return self._report("energy", group=group, co2=co2, pue=pue, filter=self._filter).by(by)

    def memory(self, table: MemoryTable = "pools", *, stacks: int = 0) -> Table:
        """Return a table of memory use, as in `marey report --memory`.

        "pools": the peak of each process or device, and its source. "phases": the maximum in each phase. "categories",
        "modules", "stacks": live memory at the peak. "growth": what grows with each iteration, and whether that looks
        like a leak. "fragmentation", "resident" (every reading), "live" (live memory over time), "notes". `stacks` is
        their maximum number; 0: 20. For CUDA snapshots and torch traces, use marey.memory_report().

        MareyError if no memory data was recorded.
        """
        return self._report("memory", filter=self._filter, limit=stacks or None)[table]

    def calls(
        self,
        by: CallsBy = "function",
        *,
        callers: Optional[str] = None,
        callees: Optional[str] = None,
        filter: Optional[str] = None,
        sort: CallsSort = "self",
        subtract: bool = False,
        startup: bool = False,
    ) -> Table:
        """Return a table of the call profile, as in `marey report --calls`.

        "function": one row per function, counted as in cProfile. "signature": one row per function and argument
        signature. "shape": functions with several signatures, and the time per element. "path": the exact call paths,
        depth first. "thread", "total" (one row), "note". `callers` or `callees`, a name or a pattern, return the
        callers or callees of that function instead, with `by="signature"` one row per argument signature. `filter`
        selects functions by name. `subtract` removes the cost of measuring from the times. Imports at module level are
        excluded unless `startup` is given.

        For a recording without calls, the table has its samples, with times and no counts (None), or its ranges, as for
        an imported profile. MareyError without any of these.
        """
        report = self._report(
            "calls",
            by=by if by == "signature" else None,
            callers=callers,
            callees=callees,
            filter=filter,
            sort=sort,
            subtract=subtract,
            startup=startup,
        )
        return report["callers"] if callers is not None else report["callees"] if callees is not None else report.by(by)

    def samples(
        self,
        by: SamplesBy = "function",
        *,
        library: Optional[str] = None,
        native: bool = False,
        sort: Optional[str] = None,
        filter: Optional[str] = None,
        **chosen: Union[str, int, bool, None],
    ) -> Table:
        """Return a table of stack samples, as in `marey report --samples`.

        One row per "function", "line", "file", "module", "thread", "process", "rank", "stack" or "wait"; "contact" has
        the functions where `library` is entered, and their callers; "gil" the holders of the interpreter lock; "audit"
        the quality of the samples. `native` shows native frames as functions; by default their time counts for the
        Python frame around them. Rows are sorted by `sort` ("self", "total", "samples", "name"), and filtered by
        `filter`.

        These arguments select samples: `mode` ("wall", "cpu", "gil", "exception"), `idle` (all threads, all the time),
        `range`, `iterations` ("slow", "10..20"), `epochs`, `phase`, `thread`, `rank` and `process` (a PID, "main",
        "worker", "worker0", a part of a command). Imports at start-up count with `startup=True`.
        """
        chosen.setdefault("process", self._process)
        report = self._report("samples", library=library, native=native, sort=sort, filter=filter, **chosen)
        return report.by(by)

    def gpu(self, table: GpuTable = "kernels") -> Table:
        """Return a table of GPU activity, as in `marey report --gpu`.

        "devices": how long each was busy, and waited for the host. "kernels": activity by name; "shapes": kernels by
        name, grid and block; "copies": bytes and bandwidth; "streams". "ranges": activity launched in each range, its
        GPU time, launch time and queue time. "launch_bound": where GPUs wait for the host, with a verdict.
        "iterations": the same by iteration. "gaps": the longest idle gaps. "warnings".
        """
        return self._report("gpu", filter=self._filter)[table]

    def diagnosis(self) -> Diagnosis:
        """Return why the program is slow: steps, shares and findings, as "diagnosis" of `marey report --json`.

        docs/formats/diagnosis.md describes the keys. `marey.load(path).diagnosis()["findings"]` is a list, the most
        important finding first.
        """
        import json

        found: Diagnosis = json.loads(self._report("diagnosis").json())
        return found

    @property
    def workers(self) -> Table:
        """One row per data loader worker: its rank and number, batches, busy time, its share."""
        return self.table("workers")

    @property
    def open(self) -> Table:
        """Ranges without an end."""
        return self.table("open")

    @property
    def sites(self) -> Table:
        """One row per call site: name, category, colour, source location."""
        return self.table("sites")

    @property
    def cost(self) -> dict[str, int]:
        """The cost of measuring: events, time in the program, time of the flush thread, bytes, loss."""
        return self._ranges().cost

    @property
    def lost_events(self) -> int:
        """How many events were not recorded because memory or disk budgets were spent."""
        return self.cost["lost_events"]

    @property
    def warnings(self) -> list[str]:
        """Messages about missing or doubtful data in the files."""
        return self._native.warnings()

    def _report(self, analysis: str, **settings: Setting) -> Report:
        """Return a report, created once per set of settings."""
        key = (analysis, *settings_of(settings))
        if key not in self._reports:
            self._reports[key] = Report(analysis, self._native.analyze(analysis, key[1:]))
        return self._reports[key]

    if TYPE_CHECKING:

        @overload
        def report(self, tables: str, **settings: Setting) -> Report: ...
        @overload
        def report(
            self,
            tables: Union[list[str], tuple[str, ...], None] = None,
            *,
            sort: Optional[str] = None,
            limit: int = 0,
            width: int = 0,
            gpu: bool = False,
        ) -> str: ...

    def report(self, tables: Union[str, Iterable[str], None] = None, **settings: Any) -> Union[str, Report]:
        """Return the report of an analysis: tables, notes, cost and text. `settings` are options: `first=True`.

        docs/reference/analyses.md lists the names. Without a name, returns the text of `marey report`: processes, the
        requested tables, loss and cost; `gpu` adds the tables of `marey report --gpu`.
        """
        if isinstance(tables, str):
            return self._report(tables, **{**(self._settings if tables == "ranges" else {}), **settings})
        return self._text(tables, **settings)

    def _text(
        self,
        tables: Optional[Iterable[str]],
        *,
        sort: Optional[str] = None,
        limit: int = 0,
        width: int = 0,
        gpu: bool = False,
    ) -> str:
        return self._ranges(sort)._native.write("text", _names(tables), limit, width, False, self._section(gpu))

    def _section(self, gpu: bool) -> Optional[_tools.Report]:
        return self._report("gpu", filter=self._filter)._native if gpu else None

    def report_json(
        self,
        tables: Optional[Iterable[str]] = None,
        *,
        sort: Optional[str] = None,
        limit: int = 0,
        gpu: bool = False,
    ) -> str:
        """Return the text of `marey report --json`."""
        return self._ranges(sort)._native.write("json", _names(tables), limit, 0, False, self._section(gpu))

    def export(
        self,
        format: str,
        path: Path,
        *,
        by: Optional[str] = None,
        baseline: Optional[Recording] = None,
        calls: bool = False,
        samples: Union[bool, Mapping[str, Union[str, int, bool, None]]] = False,
    ) -> None:
        """Write a file for another tool, in one of the formats that `marey.export_formats()` lists.

        Formats that sum the time of each path take `by` ("thread" or "rank"), which becomes the outermost frame, and
        `baseline`, another recording to compare with. `calls` exports the call profile instead of ranges. `samples`
        exports stack samples: True, or a selection as in samples(), {"iterations": "slow"}.
        """
        from marey import _tools
        from marey._replace import replacing

        known = {entry["name"]: entry for entry in _tools.export_formats if entry["missing"] is None}
        if format not in known:
            raise ValueError(f"no format {format!r}; there are {', '.join(known)}")
        wanted = None if samples is False else settings_of({} if samples is True else samples)
        before = None if baseline is None else baseline._native
        for leftover in (os.path.realpath(path) + suffix for suffix in (known[format]["leftovers"] or "").split()):
            if os.path.exists(leftover) and os.path.getsize(leftover) > 0:
                raise FileExistsError(f"{leftover} is left from an earlier file and would damage the new one")
        with replacing(path, "wb") as file:
            self._native.export(format, file.fileno(), self._filter, by, before, calls, wanted)

    def to_html(self, path: Path, *, title: Optional[str] = None, max_ranges: int = 0) -> None:
        """Write the page of `marey report --html`: overview, timeline, iterations, flame graph, tables in one file.

        Beyond `max_ranges` (0: ten million), short ranges are merged with their neighbours.
        """
        from marey._page import write_page

        write_page(path, lambda fd: self._native.page(fd, title, max_ranges, settings_of(self._settings)))

    def page(self, *, title: Optional[str] = None, max_ranges: int = 0) -> Page:
        """Return the same page for a notebook, which shows it below the cell."""
        from marey._page import make_page

        return make_page(lambda fd: self._native.page(fd, title, max_ranges, settings_of(self._settings)))

    def _repr_html_(self) -> str:
        """Show the ranges in a notebook. The names come from the measured program, so everything is escaped."""
        import html

        table = self.ranges._native.write("html", 0, None, 20)
        return f"<p>{html.escape(repr(self))}</p>{table}"

    def __repr__(self) -> str:
        return f"<marey.Recording {', '.join(self._paths)}>"

    def __str__(self) -> str:
        return self.report()


def _names(tables: Optional[Iterable[str]]) -> Optional[str]:
    if tables is None or isinstance(tables, str):
        return tables
    return ",".join(tables)
