"""Shared by the fault tests: the faulty programs, and the checker of their recordings."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import pytest
from accidents import PATIENCE_S


@pytest.fixture(scope="session")
def build() -> Path:
    folder = os.environ.get("MAREY_BUILD")
    if not folder:
        pytest.fail("MAREY_BUILD names no build folder; tools/test sets it")
    return Path(folder)


@pytest.fixture(scope="session")
def program(build: Path) -> Callable[..., list[str]]:
    """The command line of a faulty program: program("endless", path, 3)."""

    def command(name: str, *args: object) -> list[str]:
        return [str(build / "tests" / "faults" / f"fault_{name}"), *map(str, args)]

    return command


@pytest.fixture(scope="session")
def tool(build: Path) -> str:
    """The command line tool."""
    return str(build / "cli" / "marey")


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command to its end; `status` None accepts any."""

    def run_command(
        command: list[str], *, status: Optional[int] = 0, env: Optional[dict[str, str]] = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
            **options,
        )
        if status is not None:
            assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    return run_command


Check = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def check(program: Callable[..., list[str]], run: Run) -> Check:
    """The content of a recording, from fault_check; opening finalizes it."""

    def check_recording(path: Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run(program("check", path)).stdout)
        return found

    return check_recording
