"""Shared by the tests of sampling: marey runs in the test's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from watching import MAREY, Marey


@pytest.fixture
def marey(tmp_path: Path) -> Marey:
    if not Path(MAREY).exists():
        pytest.fail(f"{MAREY} is not there; build it first, or set MAREY_BUILD to the build folder")
    return Marey(tmp_path)
