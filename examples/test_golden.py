"""Tests for numbers that must not change: a golden dump, and a function that must be deterministic.

    pytest examples/test_golden.py --golden-update      writes golden/ beside this file, to be committed
    pytest examples/test_golden.py                      fails if a number differs, and reports the first one

The fixture `golden_dump` comes with marey.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import marey


def smooth(x: Any) -> Any:
    return np.convolve(x, np.ones(3) / 3, mode="same")


def test_smooth(golden_dump: Any) -> None:
    golden_dump({"out": smooth(np.arange(8.0))}, atol=1e-12)


def test_what_is_dumped_on_the_way(golden_dump: Any) -> None:
    with golden_dump.running("steps") as dumper:
        x = np.arange(8.0)
        for i in range(3):
            x = smooth(x)
            dumper.add_tensor_data(f"x{i}", x)


def test_twice_is_the_same() -> None:
    assert marey.check_deterministic(smooth, np.arange(8.0)).same


def test_dumps_are_read_and_compared(tmp_path: Any) -> None:
    for name, scale in (("reference", 1.0), ("new", 1.0 + 1e-3)):
        dumper = marey.TensorDumper(tmp_path / name)
        dumper.add_tensor_data("out", smooth(np.arange(8.0)) * scale)
        dumper.dump()
        dumper.disable()
    assert marey.load_dump(tmp_path / "reference")["out"].shape == (8,)
    found = marey.diff(tmp_path / "new", tmp_path / "reference")
    assert not found.same
    assert found.first["path"] == "out"
