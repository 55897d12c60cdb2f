"""Does it scale, how far, and why not further: runs with different numbers of workers, as `marey scale` tells it."""

from __future__ import annotations

import os

from marey._table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Iterable
    from typing import Optional, Union

    from marey import _tools
    from marey._page import Page

    Path = Union[str, os.PathLike[str]]
    Runs = Union[Path, tuple[Optional[str], Path], tuple[Optional[str], Path, Optional[str]]]

PICTURES = ("epoch-time", "speedup", "efficiency", "step-breakdown", "energy", "utilization", "throughput")
ITWINAI_PICTURES = (
    "absolute_epoch_time",
    "relative_epoch_time_speedup",
    "gpu_energy_plot",
    "utilization_plot",
    "computation_vs_other_plot",
    "computation_vs_communication_plot",
)


class Scaling:
    """The answer of marey.scale(). Prints as `marey scale` does; times in tables are seconds."""

    def __init__(self, tables: dict[str, _tools.Table], native: object) -> None:
        """Wrap what the extension found."""
        self._tables = {name: Table(table) for name, table in tables.items()}
        self._native = native

    @property
    def summary(self) -> list[str]:
        """Whether it scales, how far and why it stops: a text for each series."""
        import json

        return list(json.loads(self.to_json())["summary"])

    @property
    def points(self) -> Table:
        """A row for each series and number of workers: time_s, speedup, efficiency with intervals, and more."""
        return self._tables["points"]

    @property
    def fits(self) -> Table:
        """What Amdahl's law and the universal scalability law make of each series."""
        return self._tables["fits"]

    @property
    def forecast(self) -> Table:
        """What these say of other numbers of workers."""
        return self._tables["forecast"]

    @property
    def best(self) -> Table:
        """The best number of workers for time, for energy and for their product."""
        return self._tables["best"]

    @property
    def runs(self) -> Table:
        """A row for each run that was read."""
        return self._tables["runs"]

    @property
    def notes(self) -> list[str]:
        """What to know when reading it."""
        return list(self._tables["notes"]["text"])

    def to_json(self) -> str:
        """Give the text of `marey scale --json`."""
        return self._drawn("json")

    def to_markdown(self) -> str:
        """Give the text of `marey scale --markdown`."""
        return self._drawn("markdown")

    def to_html(self, path: Path) -> None:
        """Write the page of `marey scale --html`: pictures and tables in one file, which needs nothing else."""
        self.page().save(path)

    def page(self) -> Page:
        """Give the same page for a notebook, which shows it below the cell."""
        from marey._page import Page

        return Page(self._drawn("html"))

    def picture(self, name: str) -> str:
        """Give one picture as SVG: "speedup", "step-breakdown", or another of `marey scale --pictures`.

        A ValueError for a name that no picture has, a MareyError when these runs do not have what it shows.
        """
        if name not in PICTURES and name not in ITWINAI_PICTURES:
            raise ValueError(f"no picture {name!r}; there are {', '.join(PICTURES + ITWINAI_PICTURES)}")
        return self._drawn(name)

    def _drawn(self, what: str) -> str:
        from marey import _tools

        return _tools.scale_drawn(self._native, what)

    def __repr__(self) -> str:
        return self._drawn("text").rstrip("\n")


def scale(
    *runs: Runs,
    experiment: Optional[str] = None,
    strategy: Optional[str] = None,
    workers: int = 0,
    measure: Optional[str] = None,
    kind: Optional[str] = None,
    with_first: bool = False,
    forecast: Iterable[int] = (),
) -> Scaling:
    """Tell whether runs with different numbers of workers scale, how far, and what holds them back.

    Each of `runs` is a recording, a folder of recordings or of traces, a CSV of measurements, or a folder of itwinai's
    CSV files; or a tuple of the series' name and such a path, and of a name that a CSV has in notes. `experiment`,
    `strategy` and `workers` are taken instead of what the data say.
    `measure` is "epoch" or "step", `kind` "strong" or "weak"; by default the data tell. `with_first` counts first
    epochs too, which are warm-up otherwise. `forecast` are numbers of workers to forecast.
    """
    import tempfile

    from marey import _tools

    with tempfile.TemporaryDirectory(prefix="marey-itwinai-") as folder:
        converted: list[str] = []

        def convert(path: bytes) -> str:
            from marey.itwinai import write_measurements

            converted.append(os.path.join(folder, f"{len(converted)}.csv"))
            write_measurements(os.fsdecode(path), converted[-1])
            return converted[-1]

        named = tuple((*run, None)[:3] if isinstance(run, tuple) else (None, run, None) for run in runs)
        wanted = (experiment, strategy, workers, measure, kind, with_first, tuple(forecast))
        return Scaling(*_tools.scale(named, *wanted, convert))
