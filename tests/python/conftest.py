"""Shared by the tests of the Python package."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import pytest
from nvtx_calls import Calls, read_calls

# A recording of the whole test run would swallow those of the tests.
for _variable in ("MAREY", "MAREY_OPTIONS", "NVTX_INJECTION64_PATH"):
    os.environ.pop(_variable, None)

import marey  # noqa: E402

PACKAGES = {
    "needs_torch": ("torch", "torch is not installed; tools/torch installs it where an index has a small one"),
    "needs_numba": ("numba", "numba is not installed; tools/setup test installs it where an index is at hand"),
    "needs_pandas": ("pandas", "pandas is not installed; tools/setup test installs it where an index is at hand"),
    "needs_mlflow": ("mlflow", "mlflow is not installed; tools/setup test installs it from 3.11 on"),
    "needs_tensorboard": ("tensorboard", "tensorboard is not installed; tools/setup test installs it from 3.11 on"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a package that is not here; `-rs` lists each with its reason."""
    for marker, (package, reason) in PACKAGES.items():
        if importlib.util.find_spec(package) is not None:
            continue
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def switched_off() -> Iterator[None]:
    """Restore the process, so that a recording does not continue in the next test."""
    yield
    marey.NVTXRangeWrapper().reset()
    marey.reset()


Record = Callable[..., "contextlib.AbstractContextManager[Path]"]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Record what a block does: `with record(check=True) as path:`, then marey.load(path)."""

    @contextlib.contextmanager
    def recording(name: str = "run.marey", **options: object) -> Iterator[Path]:
        path = tmp_path / name
        marey.start(path, **options)
        try:
            yield path
        finally:
            marey.stop()

    return recording


RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run a script in a separate interpreter: run_python(source, env={...}, flags=["-S"])."""

    def run(
        source: str,
        *,
        env: Optional[dict[str, str]] = None,
        flags: tuple[str, ...] = (),
        command: Optional[list[str]] = None,
        check: bool = True,
        timeout: int = 120,
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source))
        done = subprocess.run(
            [*(command or []), sys.executable, *flags, str(script)],
            env={**os.environ, **(env or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def nvtx_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the build has the NVTX tool, the stand-ins for CUDA's libraries and the program in C.

    By a link, because LD_PRELOAD cannot hold a path with a space in it.
    """
    folder = Path(os.environ.get("MAREY_BUILD", "")) / "tests" / "nvtx"
    if not (folder / "cuda" / "libcudart.so.12").exists():
        pytest.skip("MAREY_BUILD names no build with tests/nvtx; tools/test sets it")
    link = tmp_path_factory.mktemp("nvtx") / "build"
    link.symlink_to(folder.resolve())
    return link


@pytest.fixture
def nvtx_tool(nvtx_build: Path) -> Path:
    tool = nvtx_build / "nvtx_listener.so"
    if not tool.exists():
        pytest.skip("no NVTX tool was built, because NVTX's headers were not found")
    return tool


Listen = Callable[..., Calls]


@pytest.fixture
def listen(run_python: RunPython, nvtx_build: Path, tmp_path: Path) -> Listen:
    """Run a script and read what it called: listen(source, tool=nvtx_tool, cuda=True, env={...}).

    With `cuda`, the stand-in for CUDA's runtime is loaded beforehand, as a library that uses the GPU would have done.
    """

    def run(
        source: str,
        *,
        tool: Optional[Path] = None,
        cuda: bool = False,
        env: Optional[dict[str, str]] = None,
        **options: Any,
    ) -> Calls:
        log = tmp_path / "calls"
        environment = {"MAREY_TEST_NVTX_LOG": str(log), "MAREY_TEST_NVTX_TOOL": str(tool), **(env or {})}
        if tool is not None:
            environment.setdefault("NVTX_INJECTION64_PATH", str(tool))
        if cuda:
            environment["LD_PRELOAD"] = str(nvtx_build / "cuda" / "libcudart.so.12")
        done = run_python(source, env=environment, **options)
        return Calls(read_calls(log), done)

    return run


BuildExtension = Callable[[str, str], Path]


@pytest.fixture
def build_extension(tmp_path: Path) -> BuildExtension:
    """Compile a C extension that uses libmarey as a user's would: with get_include() and get_library_dir()."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler here")

    def build(name: str, source: str) -> Path:
        file = tmp_path / f"{name}.c"
        file.write_text(textwrap.dedent(source))
        module = tmp_path / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
        libraries = marey.get_library_dir()
        subprocess.run(
            [
                *(compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", str(file), "-o", str(module)),
                *("-I", marey.get_include(), "-isystem", sysconfig.get_paths()["include"]),
                *("-L", libraries, "-lmarey", f"-Wl,-rpath,{libraries}"),
            ],
            check=True,
        )
        return module

    return build


@pytest.fixture
def marey_command() -> list[str]:
    """The command line, as `python -m marey` finds it."""
    program = Path(marey.__file__).parent / "bin" / "marey"
    assert program.exists(), f"the package has no command line at {program}"
    return [str(program)]


# ---- dumps ----


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a dumper writes."""
    return tmp_path / "d"


@pytest.fixture
def dumper(folder: Path) -> Iterator[marey.TensorDumper]:
    """The dumper, on."""
    dumper = marey.TensorDumper(folder)
    yield dumper
    dumper.reset()


@pytest.fixture
def accvlab(folder: Path) -> Iterator[marey.TensorDumper]:
    """The dumper, on, with ACCV-Lab's layout."""
    dumper = marey.TensorDumper(folder, layout="accvlab")
    yield dumper
    dumper.reset()
