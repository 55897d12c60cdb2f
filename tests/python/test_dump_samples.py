"""Stored dumps of version 1: every later version must read them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from marey import _tools
from marey._arrays import as_array

SAMPLES = Path(__file__).parent.parent / "data" / "dump" / "v1"
pytest.importorskip("ml_dtypes")


def read(layout):
    """All values of the one step, by tree and path; texts of what is no tensor."""
    dumps = _tools.Dumps(SAMPLES / layout)
    assert len(dumps) == 1
    values = {
        (value["tree"], value["path"]): as_array(dumps.get(0, i)).astype(object).tolist()
        if value["kind"] == "tensor"
        else value["text"]
        for i, value in enumerate(dumps.values(0))
    }
    assert dumps.notes() == []
    return dumps, values


def check_what_both_have(values):
    assert values["tensors", ("layers", "odd/key.%")] == [[0, 1, 2], [3, 4, 5]]
    assert values["tensors", ("layers", "list", 0)] == 7
    assert [values["tensors", ("layers", "list", i)] for i in (1, 2, 3)] == ["text", "2.5", "null"]
    assert values["tensors", ("img",)] == [[[0, 23, 46], [70, 93, 116]], [[139, 162, 185], [209, 232, 255]]]
    assert values["gradients", ("x",)] == [4, 6]
    w = values["tensors", ("w",)]
    assert np.float32(w[1][0]) == np.float32(0.1)
    assert w[0][0] == 1
    assert math.copysign(1, w[0][1]) == -1
    assert math.isnan(w[0][2])
    assert w[1][2] == -math.inf


def test_mareys_layout():
    dumps, values = read("marey")
    check_what_both_have(values)
    assert len(values) == 11
    assert values["tensors", ("c",)] == [1 + 2j]
    assert values["tensors", ("npy",)] == [0, 1, 2, 3]
    assert values["tensors", ("json",)][0] == np.float32(1e-5)
    step = dumps.step(0)
    assert (step["step"], step["rank"], step["host"], step["complete"]) == (0, None, "node7", True)
    w = dumps.values(0)[0]
    assert w["digest"] == "8eafbe8b9e75bde819f373203bdbafcc"
    assert (w["stats"]["nan"], w["stats"]["neg_inf"], w["stats"]["max"]) == (1, 1, 1.0)
    assert [value["seq"] for value in dumps.values(0)] == list(range(11))


def test_accvlabs_layout():
    dumps, values = read("accvlab")
    check_what_both_have(values)
    assert len(values) == 8
    assert dumps.step(0)["layout"] == "accvlab"


@pytest.mark.parametrize("cut", range(0, 3800, 97))
def test_a_manifest_that_ends_anywhere_has_all_lines_before(tmp_path, cut):
    """As after kill -9: values with a line are present, missing ones are reported."""
    for path in (SAMPLES / "marey").iterdir():
        if path.is_dir():
            (tmp_path / path.name).mkdir()
            for file in path.iterdir():
                (tmp_path / path.name / file.name).write_bytes(file.read_bytes())
    whole = (SAMPLES / "marey" / "step-00000000.jsonl").read_bytes()
    (tmp_path / "step-00000000.jsonl").write_bytes(whole[:cut])
    (tmp_path / "step-00000000.part").write_bytes((SAMPLES / "marey" / "step-00000000.safetensors").read_bytes())
    n_lines = whole[:cut].count(b"\n")
    dumps = _tools.Dumps(tmp_path)
    if n_lines == 0:
        with pytest.raises(Exception, match="first line does not end"):
            dumps.values(0)
        return
    values = dumps.values(0)
    assert len(values) == n_lines - 1
    assert dumps.step(0)["complete"] is False
    for i, value in enumerate(values):
        if value["has_data"]:
            dumps.get(0, i)
    assert "does not end" in dumps.notes()[-1]
