"""The command line. It is written in C; this module executes it."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Execute the program `marey` of this package. Returns only if that fails."""
    os.environ.setdefault("MAREY_PYTHON", sys.executable)  # for commands that need Python packages
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "marey")
    try:
        os.execv(program, ["marey", *sys.argv[1:]])
    except OSError as error:
        print(f"marey: cannot start {program}: {error.strerror}; reinstall the package marey", file=sys.stderr)
    return 2
