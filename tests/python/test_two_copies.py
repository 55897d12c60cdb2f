"""Two copies of libmarey in one process: they share one switchboard, or one sentence names both."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import marey

LIBRARY = "libmarey.so.0"


@pytest.fixture
def system_copy(tmp_path):
    """What a system's libmarey beside a wheel's is: the same library as another file."""
    folder = tmp_path / "usr" / "lib"
    folder.mkdir(parents=True)
    return Path(shutil.copy(Path(marey.get_library_dir()) / LIBRARY, folder / LIBRARY))


@pytest.fixture
def vendored(tmp_path):
    """A copy of the whole package inside another project."""
    target = tmp_path / "vendor" / "marey"
    shutil.copytree(Path(marey.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def names_both(text, *paths):
    sentences = [line for line in text.splitlines() if "two copies" in line]
    return len(sentences) == 1 and all(str(path) in sentences[0] for path in paths)


@pytest.mark.parametrize("mode", ["RTLD_LOCAL", "RTLD_GLOBAL"])
def test_a_system_library_after_the_package(run_python, tmp_path, system_copy, mode):
    done = run_python(f"""
        import ctypes, marey
        other = ctypes.CDLL({str(system_copy)!r}, mode=ctypes.{mode})
        other.marey_enabled.restype = ctypes.c_int
        marey.start("run.marey")
        with marey.range("ours"):
            pass
        marey.stop()
    """)
    assert names_both(done.stderr, system_copy, Path(marey.get_library_dir()) / LIBRARY)
    assert marey.load(tmp_path / "run.marey").ranges["name"] == ["ours"]


@pytest.mark.parametrize("mode", ["RTLD_LOCAL", "RTLD_GLOBAL"])
def test_a_system_library_before_the_package(run_python, system_copy, mode):
    """The loader gives the package the copy that is there by its SONAME; if not, one sentence says so."""
    done = run_python(f"""
        import ctypes
        other = ctypes.CDLL({str(system_copy)!r}, mode=ctypes.{mode})
        import marey
        other.marey_library_path.restype = ctypes.c_char_p
        shared = other.marey_library_path().decode() == marey._native.library_path()
        try:
            marey.start("run.marey")
            started = True
        except marey.MareyError as error:
            started = False
            print(error)
        print("shared" if shared else "apart", bool(other.marey_enabled()) == started)
    """)
    if "shared True" in done.stdout:
        assert done.stderr == ""
    else:
        assert names_both(done.stderr, system_copy, marey._native.library_path())
        assert "MAREY_EDUPLICATE" in done.stdout


def test_a_vendored_package_beside_the_installed_one(run_python, tmp_path, vendored):
    done = run_python(f"""
        import importlib.util, os, sys
        import marey

        spec = importlib.util.spec_from_file_location(
            "marey._native", {str(vendored)!r} + "/" + os.path.basename(marey._native.__file__))
        theirs = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(theirs)
        except ImportError as error:
            print("refused", error)
            raise SystemExit
        marey.start("run.marey")
        if theirs.enabled():
            with theirs.range("theirs"), marey.range("ours"):
                pass
            print("shared")
        else:
            print("apart")
        marey.stop()
    """)
    if "shared" in done.stdout:
        assert done.stderr == ""
        assert sorted(marey.load(tmp_path / "run.marey").ranges["name"]) == ["ours", "theirs"]
    else:
        assert names_both(done.stderr, vendored, marey.get_library_dir())


def test_the_same_library_by_its_path_is_no_second_copy(run_python, tmp_path):
    done = run_python(f"""
        import ctypes, marey
        same = ctypes.CDLL({str(Path(marey.get_library_dir()) / LIBRARY)!r}, mode=ctypes.RTLD_LOCAL)
        marey.start("run.marey")
        assert same.marey_enabled() == 1
        marey.stop()
        assert same.marey_enabled() == 0
    """)
    assert done.stderr == ""
