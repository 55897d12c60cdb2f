"""The example of the guide "find the first difference": the planted bug is named, though the loss hides it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import marey

pytestmark = pytest.mark.needs_torch

EXAMPLE = Path(__file__).parents[2] / "examples" / "first_difference.py"


def train(kind: str, folder: Path) -> list[str]:
    """Run it; the losses it prints."""
    command = [sys.executable, str(EXAMPLE), kind, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [line.split(": ")[1] for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The dump and the losses of the reference."""
    folder = tmp_path_factory.mktemp("first") / "reference"
    return folder, train("reference", folder)


def test_the_norm_is_named_and_the_loss_shows_nothing(reference, tmp_path):
    folder, losses = reference
    assert train("new", tmp_path / "new") == losses
    found = marey.diff(tmp_path / "new", folder)
    assert found.operation["operation"] == "blocks.1.norm"
    assert (found.first["step"], found.first["phase"], found.first["path"]) == (0, "forward", "blocks.1.norm.out")


def test_the_same_program_twice_is_the_same_to_the_bit(reference, tmp_path):
    train("reference", tmp_path / "again")
    assert marey.diff(reference[0], tmp_path / "again", bitwise=True).same
