"""What can be measured on this machine: `marey doctor` for programs."""

from __future__ import annotations

import os

from marey._table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from typing import Optional, Union

    from marey import _tools


class Findings(Table):
    """The table of marey.doctor(): subject, thing, state, value, amount, unit, advice. Prints like `marey doctor`."""

    def __init__(self, native: _tools.Table, text: str, can_record: bool) -> None:
        """Wrap the rows of the extension."""
        super().__init__(native)
        self._text = text
        self._can_record = can_record

    @property
    def can_record(self) -> bool:
        """Whether a recording could be made in the directory."""
        return self._can_record

    def __repr__(self) -> str:
        return self._text.rstrip("\n")


def doctor(
    path: Optional[Union[str, os.PathLike[str]]] = None, *, measure: bool = False, wait: float = 1.0
) -> Findings:
    """Check what can be measured here, at what resolution and cost, and what is missing.

    `path` is the directory for recordings, by default the current directory; a small one is made there and removed.
    `measure` also writes up to 64 MiB and reports the speed. `wait` is how many seconds libraries and interpreters, all
    together, may take to answer. An open recording is not affected.
    """
    from marey import _tools

    if not 0.001 <= wait <= 3600:
        raise ValueError(f"wait must be 0.001 to 3600 seconds, not {wait!r}")
    return Findings(*_tools.doctor(os.fspath(path) if path is not None else ".", measure, int(wait * 1000)))
