"""Shared by the loggers: the protocol of a logger, its data points, and the run it belongs to."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional, Protocol, Union

from marey._printable import printable
from marey._window import who_am_i

Path = Union[str, "os.PathLike[str]"]


class Logger(Protocol):
    """The methods of a logger. All calls come from one thread, which is not the training thread.

    A logger may have two more methods. `open()` is called once, before anything else, and may be slow.
    `log_points(points)` is then called instead of log_metrics(), with all points since the last call.
    """

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Numbers of one step, or of one epoch, by name."""

    def log_params(self, params: Mapping[str, object]) -> None:
        """Settings of the run; each name once."""

    def log_artifact(self, path: Path, name: Optional[str] = None) -> None:
        """A file of the run; `name` is the folder that shows it."""

    def close(self) -> None:
        """Write the rest."""


class Point(NamedTuple):
    """The arguments of log_metrics(), and its time."""

    unix_ns: int
    step: int
    metrics: Mapping[str, float]


def place(rank: Optional[int], world_size: Optional[int]) -> tuple[int, int]:
    """Return the arguments, completed from torch.distributed and the launcher."""
    known = who_am_i()
    rank = known[0] if rank is None else rank
    world_size = max(known[1], rank + 1) if world_size is None else world_size
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is none of {world_size}: ranks count from 0")
    return rank, world_size


def tell(sentence: str) -> None:
    """Warn. In the loggers' thread nothing catches exceptions, so a warning turned into an error is printed."""
    try:
        warnings.warn(printable(sentence), RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        print(f"marey: {printable(sentence)}", file=sys.stderr)


def log_each(logger: Logger, points: Sequence[Point]) -> None:
    """Pass points one by one to a logger without log_points()."""
    for point in points:
        logger.log_metrics(point.metrics, point.step)
