"""Scaling of runs with different numbers of workers, as in `marey scale`."""

from __future__ import annotations

import os

from marey._report import Report, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Iterable
    from typing import Optional, Union

    from marey._page import Page
    from marey._table import Table

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


class Scaling(Report):
    """The report of marey.scale(). Prints as `marey scale` does; times in tables are seconds."""

    @property
    def summary(self) -> list[str]:
        """Whether it scales, how far, and what limits it: one string per series."""
        import json

        return list(json.loads(self.to_json())["summary"])

    @property
    def points(self) -> Table:
        """One row per series and number of workers: time_s, speedup, efficiency with intervals, and more."""
        return self._tables["points"]

    @property
    def fits(self) -> Table:
        """Fits of Amdahl's law and the universal scalability law, for each series."""
        return self._tables["fits"]

    @property
    def forecast(self) -> Table:
        """Forecasts of these laws for other numbers of workers."""
        return self._tables["forecast"]

    @property
    def best(self) -> Table:
        """The best number of workers for time, for energy and for their product."""
        return self._tables["best"]

    @property
    def runs(self) -> Table:
        """One row per run."""
        return self._tables["runs"]

    def to_json(self) -> str:
        """Return the output of `marey scale --json`."""
        return self.json()

    def to_markdown(self) -> str:
        """Return the output of `marey scale --markdown`."""
        return self.markdown()

    def to_html(self, path: Path) -> None:
        """Write the page of `marey scale --html`: charts and tables in one self-contained file."""
        self.page().save(path)

    def page(self) -> Page:
        """Return the same page for a notebook, which shows it below the cell."""
        from marey._page import Page

        return Page(self._native.write("html", None, 0, 0, False, None))

    def picture(self, name: str) -> str:
        """Return one chart as SVG: "speedup", "step-breakdown", or another of `marey scale --pictures`.

        ValueError for an unknown name, MareyError when these runs lack the data.
        """
        if name not in PICTURES and name not in ITWINAI_PICTURES:
            raise ValueError(f"no chart {name!r}; there are {', '.join(PICTURES + ITWINAI_PICTURES)}")
        return self._native.write("svg", name, 0, 0, False, None)

    def __repr__(self) -> str:
        return self.text().rstrip("\n")


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
    """Analyse how runs with different numbers of workers scale, how far, and what limits them.

    Each of `runs` is a recording, a folder of recordings or of traces, a CSV of measurements, or a folder of itwinai's
    CSV files; or a tuple of a series name and such a path, and optionally a name for a CSV in notes. `experiment`,
    `strategy` and `workers` override the data. `measure` is "epoch" or "step", `kind` "strong" or "weak"; by default
    derived from the data. `with_first` includes first epochs, which are warm-up otherwise. `forecast` are numbers of
    workers to forecast.
    """
    from marey import _tools

    named = [(*run, None)[:3] if isinstance(run, tuple) else (None, run, None) for run in runs]
    settings = settings_of(
        {
            "experiment": experiment,
            "strategy": strategy,
            "workers": workers or None,
            "measure": measure,
            "kind": kind,
            "with-first": with_first,
            "forecast": ",".join(map(str, forecast)) or None,
        }
    )
    paths = tuple(os.fsencode(path) for _, path, _ in named)
    series, sources = tuple(run[0] for run in named), tuple(run[2] for run in named)
    return Scaling("scale", _tools.report_files("scale", paths, settings, series, sources, _convert))


def _convert(_: str, path: bytes, csv: bytes) -> None:
    """Write the measurements of itwinai's files at `path`."""
    from marey.itwinai import write_measurements

    write_measurements(os.fsdecode(path), os.fsdecode(csv))
