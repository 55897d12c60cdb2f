"""Shared by the tests of libmarey-mpi: each installed MPI, programs compiled with it, and their recordings.

Most tests run with each MPI that was found: Debian's Open MPI 4 and MPICH, which tools/setup installs, and Open MPI 5,
which the package openmpi of an index brings. One libmarey-mpi serves them all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import pytest
from mpi_jobs import BESIDE_PYTHON, CANDIDATES, HERE, ROOT, Mpi, Process

PATIENCE_S = 120

# Variables of a developer's shell or a launcher that would change the test.
FOREIGN = (
    "MAREY",
    "MAREY_OPTIONS",
    "MAREY_RUN_ID",
    "MAREY_PACKAGE_DIR",
    "LD_PRELOAD",
    "RANK",
    "WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
)


def is_here(mpi: Mpi) -> bool:
    return shutil.which(mpi.compiler) is not None and shutil.which(mpi.launcher) is not None


@pytest.fixture(params=CANDIDATES, scope="session")
def mpi(request: pytest.FixtureRequest) -> Mpi:
    found = CANDIDATES[request.param]
    if not is_here(found):
        pytest.skip(f"{found.compiler} and {found.launcher} are not here; tools/setup test installs what it can")
    return found


@pytest.fixture(scope="session")
def build() -> Path:
    folder = Path(os.environ.get("MAREY_BUILD", ROOT / "build" / "dev")).resolve()
    if not (folder / "core" / "libmarey-mpi.so").exists():
        pytest.fail(f"{folder} has no libmarey-mpi; build it first, or set MAREY_BUILD to the build directory")
    return folder


@pytest.fixture(scope="session")
def tool(build: Path) -> str:
    return str(build / "cli" / "marey")


@pytest.fixture(scope="session")
def compiled(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile a program with the MPI, once: compiled("every_message.c")."""
    folder = tmp_path_factory.mktemp(mpi.name)
    done: dict[tuple[str, ...], Path] = {}

    def program(source: str, *flags: str) -> Path:
        key = (source, *flags)
        if key not in done:
            path = folder / f"{Path(source).stem}{len(done)}"
            libraries = f"-Wl,-rpath,{BESIDE_PYTHON.parent / 'lib'}" if mpi.name == "wheel" else "-g"
            command = [mpi.compiler, "-O1", "-D_GNU_SOURCE", "-w", f"-I{ROOT / 'include'}", str(HERE / source), *flags]
            subprocess.run([*command, "-o", str(path), libraries, "-lm"], check=True, timeout=PATIENCE_S)
            done[key] = path
        return done[key]

    return program


@pytest.fixture
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    # Ranks that wait leave the CPU to the others, and to the tests that run beside.
    return {**kept, **as_root, "OMPI_MCA_mpi_yield_when_idle": "1"}


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run a command to its end in the test's folder; `status` None accepts any."""

    def run_command(
        command: list[str], *, status: Optional[int] = 0, env: Optional[dict[str, str]] = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            env={**environment, **(env or {})},
            cwd=options.pop("cwd", tmp_path),
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


Recorded = Callable[[Path], list[Process]]


@pytest.fixture
def recorded(build: Path, run: Run) -> Recorded:
    """The content of a recording, from communications.c: a list of processes."""

    def read(path: Path) -> list[Process]:
        found: list[Process] = json.loads(run([str(build / "tests" / "mpi" / "mpi_communications"), str(path)]).stdout)
        return found

    return read
