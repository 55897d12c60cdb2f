"""Shared by the tests of the command line: the built program, programs to measure, and expected outputs.

The program is in $MAREY_BUILD, else build/dev. `pytest tests/cli --rewrite` rewrites the expected outputs; check the
difference before you commit it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built import BUILD, ROOT, Finished, cached

HERE = Path(__file__).parent

# Variables of a developer's shell, a launcher or a terminal that would change the test.
FOREIGN = (
    "MAREY",
    "MAREY_OPTIONS",
    "MAREY_RUN_ID",
    "MAREY_BOOT",
    "MAREY_PACKAGE_DIR",
    "MAREY_PYTHON",
    "RANK",
    "WORLD_SIZE",
    "NO_COLOR",
    "TORCHELASTIC_RUN_ID",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "COLUMNS",
    "TEARDOWN_CUPTI",
    "NVTX_INJECTION64_PATH",
    "CUDA_INJECTION64_PATH",
    "CUDA_VISIBLE_DEVICES",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the expected outputs in tests/cli/expected anew")


@pytest.fixture(scope="session")
def program() -> Path:
    path = BUILD / "cli" / "marey"
    if not path.exists():
        pytest.fail(f"{path} is not there; build it first, or set MAREY_BUILD to the build directory")
    return path


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of commands."""
    return {
        **{name: value for name, value in os.environ.items() if name not in FOREIGN},
        "MAREY_PYTHON": sys.executable,
    }


@pytest.fixture
def marey(program: Path, tmp_path: Path, environment: dict[str, str]) -> Callable[..., Finished]:
    """Run `marey ARGS...` in the test's directory; `env` adds to the environment."""

    def run(*args: object, env: dict[str, str] | None = None, **more: Any) -> Finished:
        more.setdefault("capture_output", "stdout" not in more)
        more.setdefault("text", True)
        more.setdefault("timeout", 60)
        command = [str(program), *map(str, args)]
        variables = {**environment, **(env or {})}
        return subprocess.run(command, cwd=tmp_path, env=variables, check=False, **more)

    return run


@pytest.fixture(scope="session")
def build_dir() -> Path:
    return BUILD


@pytest.fixture(scope="session")
def build_setting() -> Callable[[str], str]:
    return cached


@pytest.fixture
def start(program: Path, tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.Popen]:
    """Start `marey ARGS...` in the background, with pipes for its outputs."""

    def popen(*args: object, **more: Any) -> subprocess.Popen:
        command = [str(program), *map(str, args)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes, **more)

    return popen


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build a program in this folder like a user would, with the library's sanitizers."""

    def build(source: str, *flags: str) -> Path:
        path = tmp_path_factory.mktemp("program") / Path(source).stem
        libraries = BUILD / "core"
        sanitizers = cached("MAREY_SANITIZE")
        command = [cached("CMAKE_C_COMPILER") or "cc", "-O1", "-D_GNU_SOURCE", str(HERE / source), "-o", str(path)]
        command += [f"-I{ROOT / 'include'}", f"-L{libraries}", "-lmarey", f"-Wl,-rpath,{libraries}", *flags]
        command += [f"-fsanitize={sanitizers}"] if sanitizers else []
        subprocess.run(command, check=True)
        return path

    return build


@pytest.fixture(scope="session")
def emit(compiled: Callable[..., Path]) -> Path:
    """The program of emit.c."""
    return compiled("emit.c")


@pytest.fixture
def recording(marey: Callable[..., Finished], emit: Path, tmp_path: Path) -> Path:
    """run.marey: five times inner inside outer, payloads, and a range without an end."""
    assert marey("run", "--only", "ranges", "-q", "-o", "run.marey", "--", emit, 5, "payload", "open").returncode == 0
    return tmp_path / "run.marey"


@pytest.fixture
def stand_in(
    tmp_path_factory: pytest.TempPathFactory, build_setting: Callable[[str], str]
) -> Callable[[str, str], dict[str, str]]:
    """A library under NVIDIA's name, made from C; the LD_LIBRARY_PATH that holds all that a test made."""
    folder = tmp_path_factory.mktemp("libraries")

    def build(name: str, source: str) -> dict[str, str]:
        file = folder / "stand_in.c"
        file.write_text(source)
        compiler = build_setting("CMAKE_C_COMPILER") or "cc"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / name), str(file)], check=True)
        return {"LD_LIBRARY_PATH": str(folder)}

    return build


@pytest.fixture
def expected(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with expected/NAME.txt."""

    def compare(name: str, text: str) -> None:
        path = HERE / "expected" / f"{name}.txt"
        if request.config.getoption("--rewrite"):
            path.write_text(text)
        assert path.exists(), f"{path} is not there; --rewrite writes it"
        assert text == path.read_text()

    return compare
