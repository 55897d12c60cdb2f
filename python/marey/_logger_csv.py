"""Metrics as CSV files, without additional packages.

marey_append_csv() in <marey/report.h> writes the lines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Optional

from marey._logging import Path, Point, place

METRICS = (("unix_ns", "integer"), ("rank", "integer"), ("step", "integer"), ("name", "text"), ("value", "number"))
PARAMS = (("unix_ns", "integer"), ("rank", "integer"), ("name", "text"), ("value", "text"))
ARTIFACTS = (("unix_ns", "integer"), ("rank", "integer"), ("name", "text"), ("path", "text"))


class CSVLogger:
    """`FOLDER/metrics.csv`, one line per number; `params.csv` and `artifacts.csv` if there are any.

    With several ranks each has its own files, `rankR_metrics.csv` and so on, because not every file system of a
    cluster lets two machines append to one file. Existing lines are kept: a resumed run appends.
    """

    def __init__(
        self, folder: Path = "marey_logs", *, rank: Optional[int] = None, world_size: Optional[int] = None
    ) -> None:
        """Log into a folder, which is created with the first line."""
        self._folder = os.fspath(folder)
        self._rank, n_ranks = place(rank, world_size)
        self._prefix = f"rank{self._rank}_" if n_ranks > 1 else ""

    def path(self, kind: str = "metrics") -> str:
        """The file of metrics, params or artifacts."""
        return os.path.join(self._folder, f"{self._prefix}{kind}.csv")

    def open(self) -> None:
        """Create the folder and load the extension."""
        from marey import _tools  # noqa: F401

        os.makedirs(self._folder, exist_ok=True)

    def log_points(self, points: Sequence[Point]) -> None:
        """Write a batch."""
        rows = [
            (point.unix_ns, self._rank, int(point.step), str(name), float(value))
            for point in points
            for name, value in point.metrics.items()
        ]
        self._append("metrics", METRICS, rows)

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Write the numbers of one step."""
        self.log_points([Point(time.time_ns(), step, metrics)])

    def log_params(self, params: Mapping[str, object]) -> None:
        """Write the settings of the run."""
        now = time.time_ns()
        self._append("params", PARAMS, [(now, self._rank, str(name), str(value)) for name, value in params.items()])

    def log_artifact(self, path: Path, name: Optional[str] = None) -> None:
        """Write the path of the file; it is not copied."""
        self._append("artifacts", ARTIFACTS, [(time.time_ns(), self._rank, name, os.path.abspath(path))])

    def close(self) -> None:
        """Do nothing: all lines are written."""

    def _append(self, kind: str, columns: tuple[tuple[str, str], ...], rows: Sequence[tuple[object, ...]]) -> None:
        from marey import _tools

        os.makedirs(self._folder, exist_ok=True)
        _tools.append_csv(self.path(kind), columns, list(rows))  # type: ignore[arg-type]
