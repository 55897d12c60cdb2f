"""Reports of analyses: tables by name, notes, the cost of measuring, and the text that the command line prints."""

from __future__ import annotations

from marey._table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Iterator, Mapping
    from typing import Optional, Union

    from marey import _tools

    Setting = Union[str, int, float, bool, None]


class Report:
    """The result of an analysis.

    `report["ranks"]` is a table, `report.by("rank")` the same by its `--by` name, str(report) the text.
    """

    def __init__(self, name: str, native: _tools.Report) -> None:
        """Wrap a report of the reader."""
        self.name = name
        self._native = native
        self._by: dict[str, str] = {}
        self._tables: dict[str, Table] = {}
        for table, by, found in native.tables():
            self._tables[table] = Table(found, tree="name" if name == "ranges" and table == "tree" else None)
            if by is not None:
                self._by[by] = table

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by their names."""
        return dict(self._tables)

    @property
    def notes(self) -> list[str]:
        """Notes on the figures."""
        return self._native.notes()

    @property
    def cost(self) -> dict[str, int]:
        """The cost of measuring: events, time in the program, time of the flush thread, bytes, loss."""
        return self._native.cost()

    def by(self, word: str) -> Table:
        """Return the table that the option --by of the command line selects."""
        if word not in self._by:
            raise ValueError(f"{self.name} has no table by {word!r}; choose one of {', '.join(self._by)}")
        return self._tables[self._by[word]]

    def text(self, table: Optional[str] = None, *, limit: int = 0, width: int = 0, short: bool = False) -> str:
        """Return the text that the command line prints, or one table of it; `limit` rows of each, 0 for all."""
        return self._native.write("text", table, limit, width, short, None)

    def json(self) -> str:
        """Return all tables and notes as a JSON object."""
        return self._native.write("json", None, 0, 0, False, None)

    def csv(self, table: Optional[str] = None) -> str:
        """Return a table as CSV."""
        return self._native.write("csv", table, 0, 0, False, None)

    def markdown(self, table: Optional[str] = None) -> str:
        """Return the tables, or one of them, as Markdown."""
        return self._native.write("markdown", table, 0, 0, False, None)

    def __getitem__(self, table: str) -> Table:
        if table not in self._tables:
            raise KeyError(f"no table {table!r} of {self.name}; there are {', '.join(self._tables)}")
        return self._tables[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"<marey.Report {self.name}: {', '.join(self._tables)}>"

    def __str__(self) -> str:
        return self.text()


def settings_of(options: Mapping[str, Setting]) -> tuple[str, ...]:
    """Format keyword arguments as settings of an analysis: `first=True` as "first", `co2=380` as "co2=380"."""
    chosen = ((name.replace("_", "-"), value) for name, value in options.items() if value is not None)
    return tuple(name if value is True else f"{name}={value}" for name, value in chosen if value is not False)
