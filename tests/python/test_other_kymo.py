"""The package index has another project called kymo, as marey once was: both work in one environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THEIRS = ROOT / "build" / "setup" / "other-kymo"
OURS = ROOT / "build" / "wheel" / "dist"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin/ of a new environment with both packages, each from its wheel."""
    if not (THEIRS / "version").exists():
        pytest.skip("the other kymo is not here: tools/other-kymo fetches it")
    if not list(OURS.glob("marey-*.whl")):
        pytest.skip("there is no wheel of marey: tools/pip-marey makes it")
    folder = tmp_path_factory.mktemp("both")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    wheels = [*THEIRS.glob("*.whl"), *OURS.glob("marey-*.whl")]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", *map(str, wheels)], check=True)
    subprocess.run([*pip, "check"], check=True)
    return folder / "bin"


def run(both: Path, folder: Path, *command: object) -> str:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KYMO", "MAREY"))
    }
    environment.update(HOME=str(folder), PATH=f"{both}:{os.environ['PATH']}")
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("order", ["kymo, marey", "marey, kymo"])
def test_both_can_be_imported(both: Path, tmp_path: Path, order: str) -> None:
    code = f"import {order}; print(kymo.__file__, marey.__file__, kymo.init.__module__, marey.range.__name__)"
    theirs, ours, *names = run(both, tmp_path, both / "python", "-c", code).split()
    assert theirs != ours
    assert names == ["kymo.client", "range"]


def test_the_commands_are_two(both: Path, tmp_path: Path) -> None:
    assert not (both / "marey").samefile(both / "kymo")
    assert run(both, tmp_path, "marey", "--version").startswith("marey ")
    theirs = run(both, tmp_path, "kymo", "--help")
    assert "dashboard" in theirs
    assert "marey" not in theirs


def test_no_file_belongs_to_both(both: Path, tmp_path: Path) -> None:
    code = """
from importlib.metadata import files
ours, theirs = ({str(file) for file in files(name)} for name in ("marey", "kymo"))
theirs |= {str(file) for file in files("kymo-local-runtime")}
print(len(ours) > 50, len(theirs) > 20, ours & theirs)
"""
    assert run(both, tmp_path, both / "python", "-c", code) == "True True set()\n"


def test_marey_records_a_program_that_uses_both(both: Path, tmp_path: Path) -> None:
    code = "import kymo, marey\nfor i in range(3):\n    with marey.range('step'):\n        kymo.is_initialized()\n"
    (tmp_path / "train.py").write_text(code)
    run(both, tmp_path, "marey", "run", "--only", "ranges", "-q", "-o", "run.marey", "--", "python", "train.py")
    rows = run(both, tmp_path, "marey", "report", "run.marey", "--csv").splitlines()
    assert any(row.startswith("step,3,") for row in rows)
