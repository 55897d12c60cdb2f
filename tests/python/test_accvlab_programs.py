"""Programs for ACCV-Lab with a changed import write the same files as with ACCV-Lab: see tests/data/accvlab."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import marey

DATA = Path(__file__).parents[1] / "data" / "accvlab"
EXPECTED = DATA / "expected"
RAGGED_BATCH = """
class RaggedBatch:
    def __init__(self, tensor, sample_sizes):
        self.tensor, self.sample_sizes = tensor, sample_sizes
        self.non_uniform_dim = self.num_batch_dims = 1
"""


@pytest.fixture
def run(tmp_path):
    """Run a program with marey.accvlab in the place of accvlab.optim_test_tools."""
    (tmp_path / "accvlab").mkdir()
    (tmp_path / "accvlab" / "batching_helpers.py").write_text(RAGGED_BATCH)

    def run(name: str, *arguments: str, status: int = 0, more: str = "") -> subprocess.CompletedProcess[str]:
        source = (DATA / name).read_text(encoding="utf-8")
        assert source.count("accvlab.optim_test_tools") == 1
        changed = source.replace("accvlab.optim_test_tools", "marey.accvlab")
        (tmp_path / name).write_text(changed + more, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, name, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


def pixels_of(path: Path) -> object:
    with pytest.importorskip("PIL.Image").open(path) as image:
        return (image.mode, image.size, image.tobytes())


def check_folder(found: Path, expected: Path) -> None:
    assert sorted(path.name for path in found.iterdir()) == sorted(path.name for path in expected.iterdir())
    for path in expected.iterdir():
        if path.suffix == ".png":
            assert pixels_of(found / path.name) == pixels_of(path), path.name
        else:
            assert (found / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_dumps_of_every_form_have_the_same_bytes(run, tmp_path, torch):
    done = run("dumper_formats.py", "dumps")
    assert done.stdout == "" and done.stderr == ""
    assert sorted(path.name for path in (tmp_path / "dumps").iterdir()) == ["0", "1", "2"]
    check_folder(tmp_path / "dumps" / "0", EXPECTED / "formats" / "0")


def test_the_step_and_its_model_do_not_differ(run, tmp_path, torch):
    run("dumper_formats.py", "dumps")
    shutil.rmtree(tmp_path / "dumps" / "1")
    shutil.rmtree(tmp_path / "dumps" / "2")
    difference = marey.diff(EXPECTED / "formats", tmp_path / "dumps", atol=0, rtol=0)
    assert difference, str(difference)


def test_what_differs_is_said_in_two_warnings(run, tmp_path, torch):
    done = run("dumper_compare.py", "dumps")
    check_folder(tmp_path / "dumps" / "0", EXPECTED / "compare" / "0")
    tensors, gradients = done.stderr.split("UserWarning: ")[1:]
    assert len(re.findall(r"^  tensor1\[\d,\d\]$", tensors, re.MULTILINE)) == 3
    assert len(re.findall(r"^  other_tensors\.tensor2\[\d,\d\]$", tensors, re.MULTILINE)) == 3
    assert "other_tensors.tensor3" in tensors and "other_tensors.tensor4" in tensors
    assert len(re.findall(r"^  tensor1\[\d,\d\]$", gradients, re.MULTILINE)) == 3
    assert done.stdout == ""


@pytest.mark.parametrize("program, steps", [("compare", 2), ("formats", 1)])
def test_an_old_dump_is_consistent_to_the_last_bit(run, tmp_path, torch, program, steps):
    shutil.copytree(EXPECTED / program, tmp_path / "dumps")
    done = run(f"dumper_{program}.py", "dumps", "old")
    assert done.stdout.count("are consistent") == 2 * steps
    assert done.stderr == ""


def test_the_stopwatch_reports_what_its_model_does(run):
    done = run("stopwatch_parts.py", more="\nprint('JSON', Stopwatch().to_json())\n")
    assert done.stderr == ""
    report, _, exported = done.stdout.partition("JSON ")

    def outline(text: str) -> list[str]:
        """Headings with their names of measurements, without numbers and marey's additions."""
        found = []
        for line in text.splitlines():
            name = re.match(r"(  )?`\w+`|Mean CPU usage during|[#~]+|[\w. -]+: *(?=\d+$|$)|\d+ True|At the end:", line)
            if name and not line.startswith("Time of an iteration"):
                found.append(name[0].strip())
        return found

    expected = outline((EXPECTED / "stopwatch.txt").read_text().replace("during `train`: #", "during:\n  `train`: #"))
    assert outline(report) == expected
    tables = json.loads(exported)
    assert [row["name"] for row in tables["iterations"]] == ["train", "load", "evaluate"]
    assert [row["name"] for row in tables["once"]] == ["complete_run", "preparation"]


def test_ranges_are_pushed_and_popped_over_parts(run, torch):
    assert run("nvtx_parts.py").stdout == "no error True\n"


def test_a_range_that_was_left_open_is_found(run, torch):
    done = run("nvtx_parts.py", "forget", status=1)
    assert "'outer'" in done.stderr and "'forgotten'" in done.stderr
    assert issubclass(marey.RangeError, AssertionError)


@pytest.mark.needs_numba
def test_compiled_code_has_ranges(run):
    pytest.importorskip("numba")
    assert run("numba_parts.py").stdout == "42 int\n"
