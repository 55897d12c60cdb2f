"""The pytest plug-in: golden dumps are recorded, verified and updated, by real runs of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TEST = """
    import numpy as np
    import pytest

    @pytest.mark.parametrize("case", ["one", "a/../b"])
    def test_layer(golden_dump, case):
        golden_dump({{"out": np.float32([1, 2, {value}])}}, atol=0.01)

    def test_steps(golden_dump):
        with golden_dump.running("steps") as dumper:
            for i in range(2):
                dumper.add_tensor_data("x", np.full(2, i))
                dumper.dump()
    """


@pytest.fixture
def run(tmp_path):
    """Run pytest on a test whose numbers depend on `value`."""

    def run_pytest(value: float, *args: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(textwrap.dedent(TEST).format(value=value))
        # The entry point loads the plug-in of an installed package; the build tree has none.
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", *args]
        if not _is_installed():
            command += ["-p", "marey.pytest_plugin"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    return run_pytest


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    points = entry_points()
    found = points.select(group="pytest11") if hasattr(points, "select") else points.get("pytest11", [])
    return any(point.name == "marey" for point in found)


def goldens(folder: Path) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in (folder / "golden").rglob("*.jsonl"))


def test_without_a_golden_dump_the_test_fails_and_says_what_to_do(run, tmp_path):
    done = run(3)
    assert done.returncode == 1
    assert "there is no golden dump" in done.stdout and "pytest --golden-update" in done.stdout
    assert not (tmp_path / "golden").exists()


def test_recorded_then_verified_then_updated(run, tmp_path):
    assert run(3, "--golden-update").returncode == 0
    assert goldens(tmp_path) == [
        "golden/test_it/test_layer_a_.._b_/dump/step-00000000.jsonl",
        "golden/test_it/test_layer_one_/dump/step-00000000.jsonl",
        "golden/test_it/test_steps/steps/step-00000000.jsonl",
        "golden/test_it/test_steps/steps/step-00000001.jsonl",
    ]
    assert run(3).returncode == 0
    assert run(3.005).returncode == 0  # within the tolerance
    failed = run(4)
    assert failed.returncode == 1 and "2 failed, 1 passed" in failed.stdout
    assert "A and B differ first at step 0, data.out[2]: A has 4, B has 3" in failed.stdout
    assert run(4, "--golden-update").returncode == 0
    assert run(4).returncode == 0


def test_the_entry_point_is_declared():
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    assert '[project.entry-points.pytest11]\nmarey = "marey.pytest_plugin"\n' in pyproject.read_text()
