"""Exports warn about omitted data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import marey

MAX_OPEN = 2**20  # MAREY__MAX_OPEN of core/analyze/walk/lane_replay.h


def test_an_export_warns_of_ranges_nested_too_deep(record: Any, tmp_path: Path) -> None:
    with record(policy="block") as path:
        for _ in range(MAX_OPEN + 3):
            marey.push("deep")
        for _ in range(MAX_OPEN + 3):
            marey.pop()
    with pytest.warns(RuntimeWarning, match="ranges left out, nested too deep: 3"):
        marey.load(path).export("csv", tmp_path / "events.csv")
