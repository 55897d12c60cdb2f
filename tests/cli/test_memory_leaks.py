"""marey report --memory only suspects a leak if growth continues to the end."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built import BUILD, Finished, cached

pytestmark = pytest.mark.skipif(bool(cached("MAREY_SANITIZE")), reason="a sanitizer replaces malloc")

KINDS = {"steady": True, "stops": False, "fills": False, "startup": False, "sawtooth": False, "flat": False}


def growth_of(
    marey: Callable[..., Finished], *program: object, env: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    command = ("run", "-q", "--force", "-o", "run.marey", "--memory", "--memory-sample", 1 << 16, "--")
    done = marey(*command, *program, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(marey("report", "--memory", "--json", "run.marey").stdout)["growth"]


def suspected(rows: list[dict[str, Any]]) -> set[str]:
    return {row["what"] for row in rows if row["is_suspected"]}


@pytest.mark.parametrize("how", ["steps", "time"])
@pytest.mark.parametrize("kind", KINDS)
def test_of_a_program_in_c(marey: Callable[..., Finished], compiled: Callable[..., Path], kind: str, how: str) -> None:
    rows = growth_of(marey, compiled("grow.c", "-O0"), kind, how)
    assert {row["what"] for row in rows} >= {"live"}
    if not KINDS[kind]:
        assert suspected(rows) == set()
        return
    assert {"live", "stack"} <= suspected(rows)
    assert all(row["stack"].startswith("planted_growth (") for row in rows if row["is_suspected"] and row["stack"])
    resident = [row for row in rows if row["what"] == "resident"]
    assert [row["is_suspected"] for row in resident] == [True] * len(resident)
    assert resident or how == "steps"  # readings are too few in a short run


SCRIPT = """
    import sys, time
    kind, held = sys.argv[1], []
    rounds = 10 if kind == "imports" else 80
    def planted_growth():
        held.append(bytearray(b"x") * 400_000)
    if kind == "imports":
        import slow_package
    for i in range(rounds):
        if kind == "steady" or kind == "stops" and i < rounds // 2 or kind == "sawtooth":
            planted_growth()
        if kind == "sawtooth" and i % 16 == 15:
            held.clear()
        time.sleep(0.02)
"""
# An import that takes longer than the program itself, and keeps what it made.
PACKAGE = """
    import time
    kept = []
    for i in range(150):
        kept.append(bytearray(b"x") * 400_000)
        time.sleep(0.02)
"""


@pytest.mark.parametrize("kind, leaks", [("steady", True), ("stops", False), ("sawtooth", False), ("imports", False)])
def test_of_a_program_in_python(marey: Callable[..., Finished], tmp_path: Path, kind: str, leaks: bool) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(SCRIPT))
    (tmp_path / "slow_package.py").write_text(textwrap.dedent(PACKAGE))
    rows = growth_of(marey, sys.executable, "program.py", kind, env={"PYTHONPATH": str(BUILD / "python")})
    assert suspected(rows) >= {"live", "stack", "resident"} if leaks else suspected(rows) == set()
    if leaks:
        assert any("planted_growth (program.py" in (row["stack"] or "") for row in rows if row["is_suspected"])
