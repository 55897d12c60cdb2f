"""A table of a recording: typed columns with units, for people, for pandas, for files."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    import os
    from collections.abc import Iterator
    from typing import Any, Optional, Union

    import pandas

    from marey import _tools

    Cell = Union[str, int, float, bool, None]
    Row = dict[str, Cell]


NOTEBOOK_ROWS = 100
"""The number of rows that a notebook shows; the others are counted below."""


class Table:
    """Rows and named columns.

    `table["total_ns"]` is a column as a list; iterating gives rows as dicts, and `table.row(name="forward")` finds one.
    Printing shows times in readable units; the values themselves have the unit in `units`.
    """

    def __init__(self, native: _tools.Table, tree: Optional[str] = None) -> None:
        """Wrap a table of the reader; `tree` is a column to print indented by depth."""
        self._native = native
        self._tree = tree
        described = native.columns
        self._columns = [name for name, _, _ in described]
        self._units = {name: unit for name, _, unit in described}
        self._cells: dict[str, list[Cell]] = {}

    @property
    def name(self) -> str:
        """The table's name."""
        return self._native.name

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column: "ns", "bytes", "share" (0 to 1), "count", "unix_ns", or "" for none."""
        return dict(self._units)

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[Row]:
        cells = [self[name] for name in self._columns]
        return (dict(zip(self._columns, row)) for row in zip(*cells))

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self._units:
            raise KeyError(f"no column {column!r}; there are {', '.join(self._columns)}")
        if column not in self._cells:
            self._cells[column] = self._native.column(self._columns.index(column))
        return self._cells[column]

    def row(self, **cells: Cell) -> Row:
        """Return the first row with these cells: `recording.ranges.row(name="forward")`."""
        for row in self:
            if all(row[column] == value for column, value in cells.items()):
                return row
        wanted = ", ".join(f"{column}={value!r}" for column, value in cells.items())
        raise KeyError(f"no row with {wanted} in table {self.name}")

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas.DataFrame; needs pandas."""
        import pandas

        return pandas.DataFrame({name: self[name] for name in self._columns}, columns=self._columns)

    def to_csv(self, path: Optional[Union[str, os.PathLike[str]]] = None) -> Optional[str]:
        """Write CSV with a header line to `path`, or return it."""
        text = self._native.write("csv", 0, None, 0)
        if path is None:
            return text
        from marey._replace import replacing

        with replacing(path, encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)
        return None

    def to_json(self) -> str:
        """Return the table as a JSON list of objects."""
        return self._native.write("json", 0, None, 0)

    def __repr__(self) -> str:
        return self._native.write("text", 0, self._tree, 0).rstrip("\n")

    def _repr_html_(self) -> str:
        """Show it in a notebook. Names come from the measured program, so everything is escaped."""
        return self._native.write("html", 0, None, NOTEBOOK_ROWS)
