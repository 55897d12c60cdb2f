"""Computation, communication, other: the activity of devices in each nanosecond, as `marey breakdown` prints it."""

from __future__ import annotations

import os

from marey._report import Report, settings_of
from marey._table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Sequence
    from typing import Optional, Union

    Path = Union[str, os.PathLike[str]]
    Paths = Union[Path, Sequence[Path]]


class Breakdown:
    """The result of marey.breakdown(). Prints as `marey breakdown` does; times in tables are whole nanoseconds."""

    def __init__(self, report: Report) -> None:
        """Wrap a report "breakdown"."""
        self._tables = report.tables
        self._text, self._json = report.text(), report.json()

    @property
    def summary(self) -> dict[str, dict[str, Optional[float]]]:
        """Computation, communication and other of all devices: each with "ns", "seconds" and "share" (0 to 1).

        None is unknown: a process without GPU activity in which no communication was recorded.
        """
        table = self._tables["summary"]
        return {
            part: {"ns": ns, "seconds": None if ns is None else ns / 1e9, "share": share}
            for part, ns, share in zip(table["part"], table["ns"], table["share"])
        }

    @property
    def devices(self) -> Table:
        """A row for each device and window: span_ns, compute_ns, exposed_comm_ns, idle_ns, atoms, and more."""
        return self._tables["devices"]

    @property
    def by(self) -> Optional[Table]:
        """A row for each step, range, stream or process group, by the argument `by`."""
        return self._tables.get("by")

    @property
    def idle(self) -> Table:
        """Why devices were idle."""
        return self._tables["idle"]

    @property
    def collectives(self) -> Table:
        """Collectives of the ranks: wait, transfer, bandwidth, straggler."""
        return self._tables["collectives"]

    @property
    def rules(self) -> Table:
        """What each rule matched."""
        return self._tables["rules"]

    @property
    def warnings(self) -> list[str]:
        """Notes on the figures."""
        return list(self._tables["warnings"]["text"])

    def table(self, name: str) -> Table:
        """Any of its tables: also idle_by_operator, idle_by_step, collective_ranks, and legacy if requested."""
        if name not in self._tables:
            raise KeyError(f"no table {name!r}; there are {', '.join(self._tables)}")
        return self._tables[name]

    def _add(self, name: str, table: Table, note: str) -> None:
        import json

        self._tables[name] = table
        self._text += f"{name}\n{table}\nnote: {note}\n"
        extended = {**json.loads(self._json), name: {"warnings": [note], "rows": list(table)}}
        self._json = json.dumps(extended, indent=2) + "\n"

    def to_json(self) -> str:
        """Return the output of `marey breakdown --json`."""
        return self._json

    def __repr__(self) -> str:
        return self._text.rstrip("\n")


def breakdown(
    path: Paths,
    *,
    by: Optional[str] = None,
    rules: Optional[Path] = None,
    window: Optional[str] = None,
    legacy: bool = False,
) -> Breakdown:
    """Break down recordings, PyTorch profiler traces, or folders of them, by the activity of their devices.

    Several paths are several ranks. `by` adds a table: "step", "range", "stream" or "process-group". `rules` is a file
    of rules that precede marey's own. `window` is the time that the summary covers: "gpu_span" (the default) or
    "steps". `legacy` adds a table of that name: itwinai's computation_fraction, which counts time two and three times.
    """
    from marey import _tools

    paths = tuple(os.fspath(each) for each in ([path] if isinstance(path, (str, os.PathLike)) else path))
    settings = settings_of({"by": by, "rules": None if rules is None else os.fspath(rules), "window": window})
    made = Breakdown(Report("breakdown", _tools.report_files("breakdown", paths, settings)))
    if legacy:
        from marey.itwinai._averages import WARNING, fractions

        made._add("legacy", fractions(paths), WARNING)
    return made
