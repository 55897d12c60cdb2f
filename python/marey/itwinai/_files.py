"""CSV files that itwinai 0.2 to 0.3.3 wrote with pandas: finding them, and reading their rows."""

from __future__ import annotations

import csv
import gzip
import math
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, NamedTuple, Optional, Union

from marey._printable import printable
from marey._table import Table

Path = Union[str, "os.PathLike[str]"]
Row = dict[str, Optional[str]]
Cell = Union[str, int, float, None]


class Failure(Exception):
    """An error with a message for the user."""


def say(sentence: object) -> None:
    """Print a message to stderr as the program does."""
    print(f"marey: {printable(sentence)}", file=sys.stderr)


def caller() -> str:
    """Return the path of the program `marey`, the parent process."""
    return f"/proc/{os.getppid()}/exe"


class OtherFile(Failure):
    """The header is that of another kind of file."""


class Kind(NamedTuple):
    """A kind of file: its name in messages, and its required columns."""

    name: str
    columns: tuple[str, ...]


AVERAGES = Kind("averages", ("name", "self_cuda_time_total", "strategy", "num_gpus"))
EPOCHS = Kind("epoch times", ("epoch_id", "time", "name", "nodes"))
POWER = Kind("GPU power", ("sample_idx", "power", "strategy", "num_global_gpus", "probing_interval"))


# ---- files to rows ----


def read(
    paths: Iterable[Path], *kinds: Kind, in_part: Optional[Callable[[str], None]] = None
) -> Iterator[tuple[str, Kind, Row]]:
    """Yield path, kind and row, for each row of these files and of CSV files in folders at any depth.

    Other kinds of files in folders are skipped. A damaged file raises Failure, or calls `in_part` with the message.
    """
    for given in paths:
        path = os.fspath(given)
        is_folder = os.path.isdir(path)
        for file in _csv_files(path) if is_folder else [path]:
            try:
                for kind, row in _rows(file, kinds):
                    yield file, kind, row
            except OtherFile:
                if not is_folder:
                    raise
            except Failure as failure:
                if in_part is None:
                    raise
                in_part(str(failure))


def is_csv(path: str) -> bool:
    """Whether the path is named like a CSV file, or is a folder with one."""
    return path.endswith((".csv", ".csv.gz")) or any(True for _ in _csv_files(path))


def _csv_files(folder: str) -> Iterator[str]:
    """The entries of a folder by name, without links, which may form cycles."""
    for inner, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(inner, name)
            is_csv = name.endswith((".csv", ".csv.gz")) and not name.startswith(".")
            if is_csv and os.path.isfile(path) and not os.path.islink(path):
                yield path


def _open(path: str) -> IO[str]:
    with open(path, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    how = {"newline": "", "encoding": "utf-8-sig", "errors": "replace"}
    return gzip.open(path, "rt", **how) if is_packed else open(path, **how)  # type: ignore[call-overload,no-any-return]


def _rows(path: str, kinds: Sequence[Kind]) -> Iterator[tuple[Kind, Row]]:
    what = f"{path} is not a file of {kinds[-1].name} written by itwinai"
    try:
        with _open(path) as file:
            rows = csv.DictReader(file, strict=True)
            columns = rows.fieldnames
            if columns is None:
                raise OtherFile(f"{what}: it is empty")
            for kind in kinds:
                if set(kind.columns) <= set(columns):
                    yield from ((kind, row) for row in rows)
                    return
            missing = next(name for name in kinds[-1].columns if name not in columns)
            raise OtherFile(f"{what}: its first line has no column {missing}")
    except csv.Error as error:
        why = "it ends within quotes" if "end of data" in str(error) else str(error)
        raise Failure(f"{what}: {why}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Failure(f"{path} cannot be read to its end: {error}") from error
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error


def number(row: Row, column: str, most: float = math.inf) -> Optional[float]:
    """Return a finite number of at most this magnitude; None for anything else."""
    try:
        value = float(row.get(column) or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= most else None


def count(row: Row, column: str) -> Optional[int]:
    """Return a non-negative integer. pandas writes 4.0 if other rows have no value."""
    value = number(row, column, 1e9)
    return int(value) if value is not None and value >= 0 and value == int(value) else None


# ---- tables ----


def make_table(name: str, columns: str, rows: Iterable[Sequence[Cell]]) -> Table:
    """Make a table like those of a recording; a column is "name:kind" or "name:kind:title"."""
    from marey import _tools

    described = tuple(tuple(column.split(":")) for column in columns.split(", "))
    return Table(_tools.make_table(name, described, [tuple(row) for row in rows]))
