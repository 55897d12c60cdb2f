"""The names of the phases of a training step, and how each becomes a range.

`marey run` loads this file without the package around it, so it must not import the package.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_native = sys.modules["marey._native"]

NAMES = ("data", "forward", "backward", "optimizer", "recompute", "evaluate", "checkpoint", "logging")


def unknown(name: str) -> ValueError:
    """The error for a name that is not a phase."""
    return ValueError(
        f"{name!r} is not a phase of training: the phases are {', '.join(NAMES)}; use marey.range for others"
    )


def make(name: str) -> tuple[Any, str]:
    """Return the range of a phase, and its name in torch's traces."""
    if name not in NAMES:
        raise unknown(name)
    return _native.range(name, category="phase"), f"marey:{name}"


_native.phase_vocabulary(make)
