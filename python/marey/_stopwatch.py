"""Results of a Stopwatch: its report, tables and files, and the merged results of all ranks."""

from __future__ import annotations

import sys

from marey import _native
from marey._table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    import os
    from collections.abc import Callable, Iterator
    from typing import Any, Optional, Protocol, Union

    import pandas

    from marey import _tools

    Path = Union[str, os.PathLike[str]]

    class Writer(Protocol):
        """A target of print()."""

        def write(self, text: str, /) -> object: ...


TABLES = ("iteration", "iterations", "intervals", "threads", "gpu", "usage", "once", "outliers", "misuse", "series")
TABLES_OF_RANKS = ("ranks", "intervals", "iterations")


class StopwatchStats:
    """A snapshot of a stopwatch's results: `stats["iterations"]`, or `stats.iterations`, is a marey.Table.

    Times are nanoseconds; quantiles are within 0.8 % of the exact ones. Iterating gives the tables' names.
    """

    def __init__(self, tables: dict[str, _tools.Table]) -> None:
        """Wrap tables by their names."""
        self._natives = tables
        self._tables = {name: Table(native) for name, native in tables.items()}

    def __getitem__(self, table: str) -> Table:
        if table not in self._tables:
            raise KeyError(f"no table {table!r}; there are {', '.join(self._tables)}")
        return self._tables[table]

    def __getattr__(self, table: str) -> Table:
        if table.startswith("_") or table not in self._tables:
            raise AttributeError(f"no table {table!r}; there are {', '.join(self.keys())}")
        return self._tables[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def keys(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._tables)

    def to_json(self, path: Optional[Path] = None) -> Optional[str]:
        """Write all tables as one JSON object to `path`, or return it. `marey compare` reads such files."""
        from marey import _tools

        return _put(_tools.json_tables(list(self._natives.values())), path)

    def to_csv(self, path: Optional[Path] = None, table: str = "iterations") -> Optional[str]:
        """Write one table as CSV with a header line to `path`, or return it."""
        return self[table].to_csv(path)

    def to_pandas(self, table: str = "iterations") -> pandas.DataFrame:
        """Return one table as a pandas.DataFrame; needs pandas."""
        return self[table].to_pandas()

    def __repr__(self) -> str:
        shown = (f"{name}:\n{table!r}" for name, table in self._tables.items() if len(table) and name != "series")
        return "\n\n".join(shown) or "(nothing measured)"


def _put(text: str, path: Optional[Path]) -> Optional[str]:
    if path is None:
        return text
    from marey._replace import replacing

    with replacing(path, encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
    return None


# ---- methods of Stopwatch ----


def print_eval_times(file: Optional[Writer] = None) -> None:
    """Print the report to `file`, by default sys.stdout. Does nothing while the stopwatch is off."""
    stopwatch = _native.Stopwatch()
    if stopwatch.is_enabled:
        write_report(stopwatch.report(), file)


def write_report(text: str, file: Optional[Writer] = None) -> None:
    """Write a report like print()."""
    out = sys.stdout if file is None else file
    if out is None:
        return
    try:
        out.write(text)
    except UnicodeEncodeError:  # a terminal without µ
        encoding = getattr(out, "encoding", None) or "ascii"
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))


def stats() -> StopwatchStats:
    """Return a snapshot of the results."""
    from marey import _tools

    return StopwatchStats({name: _tools.stopwatch_table(name) for name in TABLES})


def to_json(path: Optional[Path] = None) -> Optional[str]:
    """Write all tables."""
    return stats().to_json(path)


def to_csv(path: Optional[Path] = None, table: str = "iterations") -> Optional[str]:
    """Write one table."""
    return _one(table).to_csv(path)


def to_pandas(table: str = "iterations") -> pandas.DataFrame:
    """Return one table."""
    return _one(table).to_pandas()


def _one(table: str) -> Table:
    from marey import _tools

    return Table(_tools.stopwatch_table(table))


# ---- ranks ----


def gather(group: Any = None, dst: Optional[int] = 0) -> Optional[StopwatchStats]:
    """Merge the results of all ranks; they are returned on rank `dst`, or on every rank if it is None.

    `group` is a process group of torch.distributed or a communicator of mpi4py. By default, torch.distributed is used
    if it is initialized, else mpi4py's COMM_WORLD if MPI runs. The table `ranks` has the minimum, mean and maximum time
    per iteration over the ranks, and the slowest rank.
    """
    from marey import _tools

    parts = _exchange(group)(_tools.stopwatch_pack, dst)
    if parts is None:
        return None
    merged = _tools.stopwatch_merge(parts)
    return StopwatchStats({name: _tools.stopwatch_merged_table(merged, name) for name in TABLES_OF_RANKS})


if TYPE_CHECKING:
    Exchange = Callable[[Callable[[int], bytes], Optional[int]], Optional[list[bytes]]]


def _exchange(group: Any) -> Exchange:
    """Determine how ranks communicate."""
    if hasattr(group, "allgather") and hasattr(group, "Get_rank"):
        return lambda pack, dst: _by_mpi(group, pack, dst)
    torch_distributed = sys.modules.get("torch.distributed")
    if torch_distributed is not None and torch_distributed.is_available() and torch_distributed.is_initialized():
        return lambda pack, dst: _by_torch(torch_distributed, group, pack, dst)
    mpi = sys.modules.get("mpi4py.MPI")
    if group is None and mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        return lambda pack, dst: _by_mpi(mpi.COMM_WORLD, pack, dst)
    raise _native.StateError(
        "gather() needs a job of several processes: call torch.distributed.init_process_group(), or import mpi4py.MPI, "
        "first"
    )


def _by_mpi(comm: Any, pack: Callable[[int], bytes], dst: Optional[int]) -> Optional[list[bytes]]:
    packed = pack(comm.Get_rank())
    return comm.allgather(packed) if dst is None else comm.gather(packed, root=dst)  # type: ignore[no-any-return]


def _by_torch(distributed: Any, group: Any, pack: Callable[[int], bytes], dst: Optional[int]) -> Optional[list[bytes]]:
    packed = pack(distributed.get_rank())
    parts: list[Any] = [None] * distributed.get_world_size(group)
    if dst is None:
        distributed.all_gather_object(parts, packed, group=group)
        return parts
    is_there = distributed.get_rank() == dst
    distributed.gather_object(packed, parts if is_there else None, dst=dst, group=group)
    return parts if is_there else None
