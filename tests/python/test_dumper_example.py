"""The example of the dumper: a program written for ACCV-Lab's runs with one line changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

EXAMPLE = Path(__file__).parents[2] / "examples" / "tensor_dump.py"


def run(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example") / "dumps"
    done = run(folder)
    assert done.stdout == "" and done.stderr == ""
    return folder


def test_it_leaves_the_files_that_its_model_does(dumps):
    assert sorted(path.name for path in dumps.iterdir()) == ["0", "1", "2"]
    assert sorted(path.name for path in (dumps / "2").iterdir()) == [
        "[tensors.json]batch.images.0.png",
        "[tensors.json]batch.images.0.png.meta.json",
        "[tensors.json]batch.images.1.png",
        "[tensors.json]batch.images.1.png.meta.json",
        "[tensors.json]pictures.boxes.png",
        "[tensors.json]pictures.boxes.png.meta.json",
        "grads.json",
        "tensors.json",
    ]
    tree = json.loads((dumps / "2" / "tensors.json").read_text())
    assert tree["batch"] == {
        "images": ["batch.images.0.png", "batch.images.1.png"],
        "boxes": {"corners": [[2, 3, 12, 20], [16, 8, 30, 30]], "labels": ["car", "sign"]},
    }
    assert list(tree) == ["batch", "layer_0", "layer_1", "layer_2", "pictures", "lengths"]
    assert [len(sample) for sample in tree["lengths"]] == [3, 5]
    gradient = torch.tensor(json.loads((dumps / "2" / "grads.json").read_text())["weight"])
    assert gradient.shape == (64, 64)
    assert gradient.abs().max() > 0


def test_its_pictures_are_pictures(dumps):
    with Image.open(dumps / "0" / "[tensors.json]batch.images.0.png") as image:
        pixels = np.array(image)
    assert pixels.shape == (32, 32, 3)
    assert pixels[0, -1].tolist() == [255, 0, 0]


def test_only_the_import_differs_from_the_model():
    ours = [line for line in EXAMPLE.read_text().splitlines() if "marey" in line]
    assert ours == ["from marey.accvlab import TensorDumper  # was: from accvlab.optim_test_tools import TensorDumper"]


def test_the_same_run_again_is_consistent(dumps):
    done = run(dumps, "--compare")
    assert done.stdout.count("consistent") == 6
    assert done.stderr == ""


def test_a_bug_is_found_where_it_begins(dumps):
    done = run(dumps, "--compare", "--bug", 1, status=1)
    assert done.stdout.count("consistent") == 2
    assert "layer_1" in done.stderr and "layer_0.out" not in done.stderr
    assert "ValueError" in done.stderr


def test_a_bug_in_the_last_step_is_not_hidden_by_the_exit(dumps):
    done = run(dumps, "--compare", "--bug", 2, status=1)
    assert "layer_1" in done.stderr
