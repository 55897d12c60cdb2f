"""Metrics for TensorBoard, written with the package tensorboard; torch is not needed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from marey._logging import Path, Point, place
from marey._needs import need


class TensorBoardLogger:
    """Event files below `folder`: metrics as scalars, params for the tab HPARAMS, artifacts as text with their path.

    With several ranks each is a separate run, `FOLDER/worker_R`.
    """

    def __init__(
        self, folder: Path = "marey_logs/tensorboard", *, rank: Optional[int] = None, world_size: Optional[int] = None
    ) -> None:
        """Log into a folder, which is created with the first line."""
        need("marey.loggers.TensorBoardLogger", "tensorboard")
        rank, n_ranks = place(rank, world_size)
        self._folder = os.path.join(os.fspath(folder), f"worker_{rank}") if n_ranks > 1 else os.fspath(folder)
        self._writer: Any = None

    def open(self) -> None:
        """Import the package and create a file."""
        if self._writer is None:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter

            self._writer = EventFileWriter(self._folder, max_queue_size=1000)

    def log_points(self, points: Sequence[Point]) -> None:
        """Write a batch to disk."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        for point in points:
            values = [Summary.Value(tag=name, simple_value=value) for name, value in point.metrics.items()]
            self._put(Summary(value=values), point.unix_ns, point.step)
        self._writer.flush()

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Write the numbers of one step."""
        self.log_points([Point(time.time_ns(), step, metrics)])

    def log_params(self, params: Mapping[str, object]) -> None:
        """Write the settings of the run."""
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        plain = {k: v if isinstance(v, (bool, int, float, str)) else str(v) for k, v in params.items()}
        self._put(hparams_pb(plain), time.time_ns(), 0)
        self._writer.flush()

    def log_artifact(self, path: Path, name: Optional[str] = None) -> None:
        """Write the path of the file; event files cannot contain files."""
        from tensorboard.plugins.text.summary_v2 import text_pb

        tag = "/".join(part for part in ("artifacts", name, os.path.basename(path)) if part)
        self._put(text_pb(tag, os.path.abspath(path)), time.time_ns(), 0)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _put(self, summary: Any, unix_ns: int, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self.open()
        self._writer.add_event(Event(wall_time=unix_ns / 1e9, step=int(step), summary=summary))
