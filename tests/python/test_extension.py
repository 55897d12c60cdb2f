"""examples/extension: a package of another's, with ranges in C and CUDA, built against this kymo as its users would."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kymo

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
        import kymo, runpy
        kymo.start("run.kymo", check=True)
        with kymo.range("script"):
            runpy.run_path({str(SOURCES / "try_it.py")!r}, run_name="__main__")
        kymo.stop()
    """, env=with_extension)  # fmt: skip
    tree = kymo.load(tmp_path / "run.kymo").tree
    assert list(zip(tree["depth"], tree["name"], tree["count"])) == [
        (0, "script", 1),
        (1, "try", 3),
        (2, "smooth", 3),
        (3, "mean", 3),
    ]


def test_exactly_one_libkymo_is_loaded(with_extension, run_python):
    done = run_python("""
        import smooth, kymo
        maps = [line.rstrip() for line in open("/proc/self/maps") if "libkymo.so" in line]
        print(*{line.split(maxsplit=5)[5] for line in maps}, sep="\\n")
        print(kymo.get_library_dir())
    """, env=with_extension)  # fmt: skip
    *loaded, library_dir = done.stdout.splitlines()
    assert len(loaded) == 1
    assert Path(loaded[0]).resolve().parent == Path(library_dir, "libkymo.so.0").resolve().parent
    assert done.stderr == "", "a second copy would be told"


def test_a_range_ends_also_when_the_extension_raises(with_extension, run_python, tmp_path):
    run_python("""
        import array, kymo, smooth
        kymo.start("run.kymo")
        one, two = array.array("d", [1.0]), array.array("d", [1.0, 2.0])
        for _ in range(3):
            try:
                smooth.cpu(one, two, 1)
            except ValueError:
                kymo.mark("refused")
        kymo.stop()
    """, env=with_extension)  # fmt: skip
    recording = kymo.load(tmp_path / "run.kymo")
    assert recording.ranges.row(name="smooth")["count"] == 3
    assert recording.marks.row(name="refused")["count"] == 3
    assert len(recording.open) == 0


def test_the_cuda_variant_is_compiled_where_there_is_nvcc(with_extension, run_python):
    """A GPU is not needed for that: without one the call says so, and its ranges end."""
    if shutil.which("nvcc") is None:
        pytest.skip("no CUDA compiler (nvcc) here")
    done = run_python("""
        import array, kymo, smooth
        values = array.array("d", [1.0, 2.0, 6.0])
        out = array.array("d", bytes(24))
        kymo.start("run.kymo")
        try:
            smooth.cuda(values, out, 1)
            print("gpu", list(out))
        except ValueError as error:
            print("none", error)
        kymo.stop()
        print(kymo.load("run.kymo").ranges.row(name="mean on the GPU")["count"])
    """, env=with_extension)  # fmt: skip
    answer, count = done.stdout.splitlines()
    assert answer.startswith("none ") or answer == "gpu [1.5, 3.0, 4.0]"
    assert count == "1"
