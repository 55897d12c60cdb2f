"""docs/reference: every public name of C and Python has an entry, and every entry exists."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import marey

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PYTHON_NAMES = (REFERENCE / "python-names.md").read_text(encoding="utf-8")
C_NAMES = (REFERENCE / "c-names.md").read_text(encoding="utf-8")
# These import a framework, which may not be here; the page is made of their sources.
FRAMEWORKS = ("accelerate", "hf", "lightning", "torch")


def test_the_pages_of_names_are_what_the_sources_say():
    done = subprocess.run([sys.executable, ROOT / "tools" / "reference"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"`tools/reference --write` mends it:\n{done.stdout}{done.stderr}"


def entries(page: str) -> dict[str, str]:
    """Each name with the rows of its members."""
    found = {}
    for part in re.split(r"^\| (?=`)", page, flags=re.MULTILINE)[1:]:
        name = re.match(r"`([\w.]+)", part)
        if name:
            found[name[1]] = part
    return found


def test_each_name_of_the_package_has_an_entry_and_each_entry_a_name():
    told = entries(PYTHON_NAMES)
    there = {f"marey.{name}" for name in marey.__all__}
    for path in sorted((ROOT / "python" / "marey").rglob("*.py")):
        parts = path.relative_to(ROOT / "python" / "marey").with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        if name not in FRAMEWORKS and not name.startswith("_"):
            module = importlib.import_module(f"marey.{name}")
            there |= {f"marey.{name}.{public}" for public in getattr(module, "__all__", [])}
    frameworks = tuple(f"marey.{name}." for name in FRAMEWORKS)
    assert {name for name in told if not name.startswith(frameworks)} == there


@pytest.mark.parametrize("name", [n for n in marey.__all__ if isinstance(getattr(marey, n), type)])
def test_each_member_of_a_class_has_a_row(name):
    cls, row = getattr(marey, name), entries(PYTHON_NAMES)[f"marey.{name}"]
    told = set(re.findall(r"\.(\w+)", row))
    own = {m for m in vars(cls) if not m.startswith("_") and m != "Type"}
    assert own - told == set()


def test_each_exported_function_is_on_the_page():
    exported = set(re.findall(r"\bmarey_[a-z0-9]\w*\b", (REFERENCE / "symbols.txt").read_text()))
    assert len(exported) > 300
    assert {name for name in exported if not re.search(rf"\b{name}\b", C_NAMES)} == set()


def test_the_manual_of_python_names_nothing_that_is_not_there():
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    wrong = set()
    for dotted in set(re.findall(r"\bmarey\.([a-zA-Z_]\w*(?:\.\w+)*)", text)):
        parts = dotted.split(".")
        if parts[0] in FRAMEWORKS:
            if len(parts) > 1 and f"marey.{'.'.join(parts[:2])}" not in PYTHON_NAMES:
                wrong.add(dotted)
            continue
        thing: object = marey
        for part in parts:
            if not hasattr(thing, part) and thing is marey and list((ROOT / "python" / "marey").glob(f"{part}*")):
                importlib.import_module(f"marey.{part}")
            thing = getattr(thing, part, None)
            if thing is None:
                wrong.add(dotted)
                break
    # A page of a notebook is met as what plot() and page() give, and is no name of its own.
    assert wrong - {"Page"} == set()


def test_the_manual_of_c_names_nothing_that_is_not_there():
    text = (REFERENCE / "c.md").read_text(encoding="utf-8")
    headers = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "include" / "marey").glob("*.h"))
    # `marey_images_count/get/axes` and the like say several names at once; a name that ends in _ is a family.
    named = set(re.findall(r"\b(?:marey|MAREY)_\w*[A-Za-z0-9]\b", text))
    known = set(re.findall(r"\b(?:marey|MAREY)_\w*[A-Za-z0-9]\b", headers)) | {"MAREY_OPTIONS", "MAREY_USAGE"}
    assert named - known == set()
    pages = set(re.findall(r"marey/(\w+)\.h", text))
    assert pages == {path.stem for path in (ROOT / "include" / "marey").glob("*.h")}


def test_names_and_members_are_distinguished():
    page = "| `marey.a(b=1)` | A. |\n| &nbsp;&nbsp;`.c()` | C. |\n| `marey.d` | D. |\n"
    assert entries(page).keys() == {"marey.a", "marey.d"}
    assert ".c()" in entries(page)["marey.a"]
