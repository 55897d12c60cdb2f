"""Links below the directory of a dump, possibly from other users, are not followed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import marey

pytest.importorskip("numpy")

LINKED = """
import os, sys
import numpy as np
import marey
folder, victim, name, layout, flight = sys.argv[1:]
os.makedirs(folder)
os.symlink(victim, os.path.join(folder, name.replace("PID", str(os.getpid()))))
dumper = marey.TensorDumper(folder, layout=layout, flight_steps=int(flight))
dumper.add_tensor_data("x", {"y": np.ones(3)}, dumper.Type.BINARY)
dumper.dump()
dumper.trigger()
dumper.disable()
"""


@pytest.mark.parametrize(
    "name, layout, flight, ranks",
    [
        ("0", "accvlab", 0, {}),
        ("rank-1", "accvlab", 0, {"RANK": "1", "WORLD_SIZE": "2"}),
        ("rank-1", "accvlab", 1, {"RANK": "1", "WORLD_SIZE": "2"}),
        (".flight-PID", "accvlab", 1, {}),
        (".flight-PID", "marey", 1, {}),
        ("step-00000000", "marey", 0, {}),
    ],
)
def test_a_link_in_the_directory_is_not_followed(tmp_path, name, layout, flight, ranks):
    victim = tmp_path / "victim"
    victim.mkdir()
    kept = {"tensors.json": "mine", "[tensors.json]x.y.bin": "mine too", "step-00000000.jsonl": "and this"}
    for file, text in kept.items():
        (victim / file).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", LINKED, str(tmp_path / "d"), str(victim), name, layout, str(flight)],
        env={**os.environ, **ranks},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert {path.name: path.read_text() for path in victim.iterdir()} == kept
    assert "link" in done.stderr, done.stderr


def test_the_directory_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "d").symlink_to("real")
    dumper = marey.TensorDumper(tmp_path / "d", layout="accvlab")
    dumper.add_tensor_data("x", {"y": 1})
    dumper.dump()
    dumper.disable()
    assert (tmp_path / "real" / "0" / "tensors.json").exists()
