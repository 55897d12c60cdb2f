"""Where the tree and the build under test lie."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BUILD = Path(os.environ.get("MAREY_BUILD", ROOT / "build" / "dev")).resolve()

Finished = subprocess.CompletedProcess


def cached(name: str) -> str:
    """A setting of the build."""
    found = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found.group(1) if found else ""


needs_sqlite = pytest.mark.skipif(cached("SQLITE_FOUND") != "1", reason="this build has no SQLite")
