"""The image example: drawings are at their positions, and the guide shows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")

ROOT = Path(__file__).parents[2]
SHOWN = {"frames.0": "dumped-frame", "attention": "dumped-map", "attended": "dumped-mask"}


def pixels_of(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.array(image)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    command = [sys.executable, str(ROOT / "examples" / "image_dump.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "step-00000000"


def test_boxes_points_and_masks_are_where_they_were_asked_for(drawn):
    frame, moved, masked = (pixels_of(drawn / f"{name}.png") for name in ("frames.0", "frames.1", "attended"))
    assert frame.shape == (180, 320, 3)
    assert frame[74, 44].tolist() == [0, 255, 102]  # the corner of the red ball's box
    assert frame[100, 70].tolist() == [255, 255, 255]  # its centre
    assert moved[74, 74].tolist() == [0, 255, 102]
    assert masked[120, 180].tolist() != frame[118, 175].tolist()
    assert masked[10, 10].tolist() == frame[10, 10].tolist()


def test_a_map_has_its_colours_and_what_is_no_number_is_magenta(drawn):
    attention = pixels_of(drawn / "attention.png")
    assert attention[120, 180].tolist() == [0xFD, 0xE7, 0x25]
    assert attention[0, 0].tolist() == [255, 0, 255]


@pytest.mark.parametrize("name", SHOWN)
def test_the_guide_shows_what_is_drawn(drawn, name):
    shown = pixels_of(ROOT / "docs" / "guide" / "pictures" / f"{SHOWN[name]}.png")
    # Another numpy may round a number to the next shade.
    assert np.abs(pixels_of(drawn / f"{name}.png").astype(int) - shown).max() <= 2
