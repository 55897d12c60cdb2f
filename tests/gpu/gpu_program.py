"""Shared by the programs of this folder, which need a GPU, print what holds, and exit with 0, 1, or 77 to skip."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any, NoReturn

SKIP = 77
FAILURES: list[str] = []


def skip(reason: str) -> NoReturn:
    """End, because this cannot run here."""
    print(f"not here: {reason}")
    sys.exit(SKIP)


def has_driver() -> bool:
    """Whether CUDA may work here. Much quicker than importing torch; loads nothing where a GPU's device file exists."""
    if next(Path("/dev").glob("nvidia*"), None) is not None:
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def import_torch() -> Any:
    """Return torch, if it has a GPU."""
    if not has_driver():
        skip("there is no CUDA driver")
    try:
        import torch
    except ImportError:
        skip("torch is not installed")
    if not torch.cuda.is_available():
        skip("torch sees no GPU")
    return torch


def check(what: str, holds: bool) -> None:
    """Print whether a statement holds, and store failures."""
    print(f"{'holds' if holds else 'DOES NOT HOLD'}: {what}")
    if not holds:
        FAILURES.append(what)
