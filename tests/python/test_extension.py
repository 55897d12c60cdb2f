"""examples/extension: a package of another's, with ranges in C and CUDA, built against this marey as users would."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import marey

SOURCES = Path(__file__).parents[2] / "examples" / "extension"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The folder the extension was installed into, by pip, from a copy of its sources."""
    for tool in ("scikit_build_core", "pip"):
        if importlib.util.find_spec(tool) is None:
            pytest.skip(f"{tool} is not installed; tools/setup installs it where an index is at hand")
    if shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("extension")
    shutil.copytree(SOURCES, folder / "sources")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-build-isolation"]
    command += ["--no-index", "--no-deps", "--no-cache-dir", "--target", str(folder / "site"), str(folder / "sources")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture
def with_extension(installed) -> dict[str, str]:
    """An environment in which it can be imported."""
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{installed}:{before}" if before else str(installed)}


def test_ranges_of_python_and_of_the_extension_nest(with_extension, run_python, tmp_path):
    run_python(f"""
        import marey, runpy
        marey.start("run.marey", check=True)
        with marey.range("script"):
            runpy.run_path({str(SOURCES / "try_it.py")!r}, run_name="__main__")
        marey.stop()
    """, env=with_extension)  # fmt: skip
    tree = marey.load(tmp_path / "run.marey").tree
    assert list(zip(tree["depth"], tree["name"], tree["count"])) == [
        (0, "script", 1),
        (1, "try", 3),
        (2, "smooth", 3),
        (3, "mean", 3),
    ]


def test_exactly_one_libmarey_is_loaded(with_extension, run_python):
    done = run_python("""
        import smooth, marey
        maps = [line.rstrip() for line in open("/proc/self/maps") if "libmarey.so" in line]
        print(*{line.split(maxsplit=5)[5] for line in maps}, sep="\\n")
        print(marey.get_library_dir())
    """, env=with_extension)  # fmt: skip
    *loaded, library_dir = done.stdout.splitlines()
    assert len(loaded) == 1
    assert Path(loaded[0]).resolve().parent == Path(library_dir, "libmarey.so.0").resolve().parent
    assert done.stderr == "", "a second copy would be told"


def test_a_range_ends_also_when_the_extension_raises(with_extension, run_python, tmp_path):
    run_python("""
        import array, marey, smooth
        marey.start("run.marey")
        one, two = array.array("d", [1.0]), array.array("d", [1.0, 2.0])
        for _ in range(3):
            try:
                smooth.cpu(one, two, 1)
            except ValueError:
                marey.mark("refused")
        marey.stop()
    """, env=with_extension)  # fmt: skip
    recording = marey.load(tmp_path / "run.marey")
    assert recording.ranges.row(name="smooth")["count"] == 3
    assert recording.marks.row(name="refused")["count"] == 3
    assert len(recording.open) == 0


def test_the_cuda_variant_is_compiled_where_there_is_nvcc(with_extension, run_python):
    """A GPU is not needed for that: without one the call says so, and its ranges end."""
    if shutil.which("nvcc") is None:
        pytest.skip("no CUDA compiler (nvcc) here")
    done = run_python("""
        import array, marey, smooth
        values = array.array("d", [1.0, 2.0, 6.0])
        out = array.array("d", bytes(24))
        marey.start("run.marey")
        try:
            smooth.cuda(values, out, 1)
            print("gpu", list(out))
        except ValueError as error:
            print("none", error)
        marey.stop()
        print(marey.load("run.marey").ranges.row(name="mean on the GPU")["count"])
    """, env=with_extension)  # fmt: skip
    answer, count = done.stdout.splitlines()
    assert answer.startswith("none ") or answer == "gpu [1.5, 3.0, 4.0]"
    assert count == "1"
