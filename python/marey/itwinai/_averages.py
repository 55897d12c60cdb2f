"""itwinai's computation fraction, from recordings and from its files of averages.

It sums the self device time in torch's key_averages(), and returns the share of rows named by PyTorch. There are rows
for each kernel, for the operator that launched it, with the same time, and for the device's copy of each annotation, so
time counts two or three times. marey.breakdown() counts it once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Optional

from marey._table import Table
from marey.itwinai._events import database
from marey.itwinai._files import AVERAGES, Cell, Failure, Path, count, make_table, number, read

WARNING = (
    "computation_fraction is itwinai's old measure: an approximation that ignores overlap, counts time two or "
    "three times, and cannot be compared across frameworks or strategies"
)
_OF_FILES = (
    "files of averages do not distinguish rows of the device and of the host, so double counts in them "
    "cannot be removed without the trace"
)

_COMPUTATION = re.compile(r"aten::|\sat::|c10::|autograd::")
_COMMUNICATION = re.compile(
    r"nccl:(all_reduce|broadcast|reduce|all_gather|gather|reduce_scatter)|cudaStream(WaitEvent|Synchronize)"
)
_STEPS = "ProfilerStep*"
_NOTHING = 1e-10  # itwinai adds this to avoid division by zero
_MAX_US = 1e15

FRACTIONS = ("computation_fraction", "computation_vs_communication")
_FRACTION_COLUMNS = (
    "strategy:text, num_gpus:integer, rank:integer, computation_fraction:share, computation_vs_communication:share, "
    "rows:integer"
)
_AVERAGE_COLUMNS = (
    "name:text, node_id:integer, self_cuda_time_total:number, cuda_time_total:number, cuda_time_total_str:text, "
    "calls:integer, strategy:text, num_gpus:integer, global_rank:integer"
)


class Average(NamedTuple):
    """The columns of averages that the fractions need."""

    name: str
    self_us: float
    strategy: str
    num_gpus: int
    rank: Optional[int]


# ---- fractions ----


def is_computation(name: str) -> bool:
    """Whether itwinai counts the time of this name as computation."""
    return _COMPUTATION.search(name) is not None


def is_communication(name: str) -> bool:
    """Whether itwinai counts the time of this name as communication; it may count as computation, too."""
    return _COMMUNICATION.search(name) is not None


def fractions_of_rows(rows: Iterable[Average]) -> Table:
    """Return a row per strategy and number of GPUs over all ranks, with rank None, then one per rank."""
    sums: dict[tuple[str, int, Optional[int]], list[float]] = defaultdict(lambda: [0.0] * 5)
    for row in rows:
        for rank in {None, row.rank}:
            total = sums[row.strategy, row.num_gpus, rank]
            total[0] += row.self_us
            total[1] += row.self_us * is_computation(row.name)
            total[2] += row.self_us * is_communication(row.name)
            total[3] += row.self_us * (row.name == _STEPS)
            total[4] += 1
    table: list[list[Cell]] = []
    for key, (whole, computation, communication, steps, n) in sums.items():
        shares: list[Optional[float]] = [None, None]
        if whole > 0:
            shares[0] = computation / (whole - steps + _NOTHING)
            shares[1] = computation / (computation + communication + _NOTHING)
        table.append([*key, *shares, int(n)])
    table.sort(key=lambda row: row[2] is not None)
    return make_table("legacy", _FRACTION_COLUMNS, table)


def fractions_of_files(paths: Iterable[Path], in_part: Optional[Callable[[str], None]] = None) -> tuple[Table, int]:
    """Return the fractions of files or folders of averages, and the number of ignored rows.

    Raises Failure for a path without averages. For a damaged file, calls `in_part` with a message, or raises Failure
    without `in_part`.
    """
    kept: list[Average] = []
    n_dropped = 0
    for path in paths:
        n_before = n_dropped + len(kept)
        for _, _, row in read([path], AVERAGES, in_part=in_part):
            us, n_gpus = number(row, "self_cuda_time_total", _MAX_US), count(row, "num_gpus")
            if not row["strategy"] or us is None or n_gpus is None:
                n_dropped += 1
            else:
                kept.append(Average(row["name"] or "", us, row["strategy"], n_gpus, count(row, "global_rank")))
        if in_part is None and n_dropped + len(kept) == n_before:
            raise Failure(f"{path} has no averages written by itwinai")
    return fractions_of_rows(kept), n_dropped


def fractions(recordings: Sequence[Path]) -> Table:
    """Return the fractions of recordings or traces."""
    table = averages(recordings)
    columns = ("name", "self_cuda_time_total", "strategy", "num_gpus", "global_rank")
    return fractions_of_rows(map(Average._make, zip(*(table[column] for column in columns))))


def notes(is_of_files: bool, n_dropped: int) -> list[str]:
    """Return notes to show with any fraction."""
    dropped = f"{n_dropped} rows without a strategy, a number of GPUs or a time are ignored"
    return [WARNING, *([_OF_FILES] if is_of_files else []), *([dropped] if n_dropped != 0 else [])]


# ---- averages of recordings ----

# Rows that torch excludes from its averages, and categories of other tools in traces.
_LEFT_OUT = {"[memory]", "[OutOfMemory]", "aten::is_leaf", "aten::output_nr", "aten::_version"} | {
    f"profiler::_record_function_{end}" for end in ("enter", "enter_new", "exit")
}
_OTHER_CATEGORIES = {"python_function", "overhead", "Trace"}

# Each: process, place, name, category, calls, self time, total time. A range has the time of the GPU activity launched
# in it, which is self time of the innermost range that is not a CUDA runtime call.
_QUERIES = (
    "SELECT e.process, 'host', s.name, s.category, count(*), 0, 0 FROM range e JOIN site s ON s.id = e.site"
    " GROUP BY e.process, s.id",
    "WITH RECURSIVE up(range, ns, is_innermost) AS (SELECT l.range, w.duration_ns, 1 FROM gpu_work w"
    " JOIN launch l USING (process, correlation) WHERE w.kind IN ('kernel', 'copy', 'set')"
    " UNION ALL SELECT r.parent, up.ns,"
    " up.is_innermost AND (s.category LIKE '%runtime%' OR s.category LIKE '%driver%') FROM up"
    " JOIN range r ON r.id = up.range JOIN site s ON s.id = r.site WHERE r.parent IS NOT NULL)"
    " SELECT r.process, 'host', s.name, s.category, 0, sum(up.ns * up.is_innermost), sum(up.ns) FROM up"
    " JOIN range r ON r.id = up.range JOIN site s ON s.id = r.site WHERE NOT"
    " (up.is_innermost AND (s.category LIKE '%runtime%' OR s.category LIKE '%driver%')) GROUP BY r.process, s.id",
    "SELECT e.process, iif(e.kind = 'annotation', 'annotation', 'device'), s.name, s.category, count(*),"
    " sum(e.duration_ns), sum(e.duration_ns) FROM gpu_work e JOIN site s ON s.id = e.site"
    " WHERE e.kind IN ('kernel', 'copy', 'set') AND e.device >= 0 OR e.kind = 'annotation' AND e.duration_ns > 0"
    " GROUP BY e.process, s.id, e.kind = 'annotation'",
)


def averages(recordings: Sequence[Path], strategy: str = "unknown") -> Table:
    """Return the rows of torch's key_averages(), with the columns of itwinai's files, the largest self time first.

    num_gpus is the number of ranks of the job if known, else the number of processes with a GPU.
    """
    sums: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    with database(recordings) as events:
        processes = events.execute("SELECT id, rank, world_size FROM process ORDER BY id").fetchall()
        with_gpu = {process for (process,) in events.execute("SELECT id FROM process WHERE has_streams")}
        for query in _QUERIES:
            for process, place, name, category, *values in events.execute(query):
                if name in _LEFT_OUT or category in _OTHER_CATEGORIES:
                    continue
                key = (process, _STEPS if name.startswith("ProfilerStep#") else name, place)
                sums[key] = [a + b for a, b in zip(sums[key], values)]
    chosen = [row for row in processes if row["id"] in with_gpu] or processes
    place_of = {row["id"]: (i, row) for i, row in enumerate(chosen)}
    table: list[tuple[Cell, ...]] = []
    for (process, name, _), (calls, self_ns, total_ns) in sums.items():
        if process in place_of and calls != 0:
            i, row = place_of[process]
            rank = i if row["rank"] is None else row["rank"]
            times = (self_ns / 1e3, total_ns / 1e3, _time_text(total_ns / 1e3))
            table.append((name, -1, *times, calls, strategy, row["world_size"] or len(chosen), rank))
    table.sort(key=lambda row: -float(row[2] or 0))
    return make_table("averages", _AVERAGE_COLUMNS, table)


def _time_text(us: float) -> str:
    """Format a time as torch does."""
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= limit:
            return f"{us / limit:.3f}{unit}"
    return f"{us:.3f}us"
