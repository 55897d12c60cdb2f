"""Traces and profiles of other tools as recordings."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Sequence
    from typing import Optional, Union

    from marey._recording import Recording

    Path = Union[str, os.PathLike[str]]


def import_trace(paths: Union[Path, Sequence[Path]], into: Path, *, format: Optional[str] = None) -> Recording:
    """Read files of other tools into the new recording `into`, and open it.

    Supported are traces of torch.profiler (Kineto) and other Chrome traces, including viztracer's, py-spy's raw and
    other collapsed stacks, files of austin and speedscope, and pstats; all may be gzipped. Several files, or a folder
    of them, are the ranks of one run. `format` sets the format if it cannot be detected: "kineto", "speedscope",
    "pstats", "austin" or "collapsed". marey.load() reads such files as well, without writing a recording.
    """
    from marey import _tools
    from marey._recording import Recording

    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    _tools.import_trace(tuple(os.fspath(path) for path in listed), os.fspath(into), format)
    return Recording(into)
