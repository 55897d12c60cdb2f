"""Contents of the package: files, types, versions."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import marey

PACKAGE = Path(marey.__file__).parent


def test_what_c_extensions_need_is_there():
    assert (Path(marey.get_include()) / "marey" / "marey.h").exists()
    library = Path(marey.get_library_dir())
    assert (library / "libmarey.so.0").exists()
    assert (library / "libmarey.so").exists()
    assert library.samefile(Path(marey._native.library_path()).parent)


def test_what_the_command_line_needs_is_there():
    assert (PACKAGE / "boot" / "sitecustomize.py").exists()
    assert (PACKAGE / "bin" / "marey").exists()


def test_the_version_is_the_librarys():
    header = (Path(marey.get_include()) / "marey" / "base.h").read_text()
    assert f'#define MAREY_VERSION "{marey.__version__}"' in header


def test_a_library_of_another_interface_is_refused(build_extension, run_python):
    """As when an older libmarey stands before the package's own in the search path."""
    older = build_extension("older", "int marey_abi(void);\nint marey_abi(void) { return 999; }\n")
    done = run_python("import marey", env={"LD_PRELOAD": str(older)}, check=False)
    assert done.returncode == 1
    assert "ImportError" in done.stderr and "interface 999" in done.stderr


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("module", ["_native", "_tools"])
def test_stubs_name_what_the_extension_has(module):
    marey_module = __import__(f"marey.{module}", fromlist=["*"])
    stub = ast.parse((PACKAGE / f"{module}.pyi").read_text())
    told = set()
    for node in stub.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            told.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            told.add(node.target.id)
    has = {name for name in vars(marey_module) if not name.startswith("_")}
    assert {name for name in told if not name.startswith("_")} == has


def test_everything_public_is_there_and_documented():
    for name in marey.__all__:
        thing = getattr(marey, name)
        if name != "__version__":
            assert inspect.getdoc(thing), name


def test_signatures_can_be_asked_for():
    assert str(inspect.signature(marey.pop)) == "(name=None)"
    assert str(inspect.signature(marey.mark)) == "(name, payload=None, category=None, color=None, domain=None)"
    assert str(inspect.signature(marey.range)) == "(name, category=None, color=None, payload=None, domain=None)"


def test_importing_it_is_cheap():
    """It brings along what an interpreter has anyway, and modules of its own: nothing that takes long to load."""
    probe = "import sys; before = set(sys.modules); import marey; print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    foreign = [name for name in found if name.partition(".")[0] not in ("marey", "__future__", "atexit")]
    assert not foreign, f"importing marey imports {foreign}"
    assert "marey._tools" not in found and "marey.torch" not in found


def test_no_module_of_ours_has_a_getattr():
    """CPython does not specialise `marey.push` from a module that has one; each call would cost 20 ns more."""
    assert "__getattr__" not in vars(marey)
