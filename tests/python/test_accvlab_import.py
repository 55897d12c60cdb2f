"""marey.accvlab: ACCV-Lab's names and file layout, only for programs that import it."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import marey
import marey.accvlab
from marey._dump_state import state

np = pytest.importorskip("numpy")


@pytest.fixture
def theirs(folder: Path):
    dumper = marey.accvlab.TensorDumper(folder)
    yield dumper
    dumper.reset()


@pytest.mark.parametrize("module", ["marey.accvlab", "marey.accvlab.numba_nvtx"])
def test_importing_it_leaves_mareys_dumper_as_it_is(folder, module):
    program = f"""
import sys, marey
import {module}
dumper = marey.TensorDumper(sys.argv[1])
dumper.add_tensor_data("step", 7)
dumper.dump()
dumper.disable()
"""
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True, timeout=60)
    assert (folder / "step-00000000.jsonl").exists()
    assert marey.load_dump(folder)["step"] == 7


def test_its_dumper_writes_accvlabs_layout(theirs, folder):
    theirs.add_tensor_data("x", np.arange(3.0), theirs.Type.JSON)
    theirs.dump()
    assert json.loads((folder / "0" / "tensors.json").read_text()) == {"x": [0, 1, 2]}
    with pytest.raises(ValueError, match="int"):
        theirs.add_tensor_data("step", 7)


def test_floats_in_json_have_every_digit(theirs, folder):
    """ACCV-Lab reads them as float64: 0.1 would differ from the float32 that was dumped."""
    values = np.float32([0.1, 1 / 3, 1e-30])
    theirs.add_tensor_data("x", values, theirs.Type.JSON)
    theirs.dump()
    assert json.loads((folder / "0" / "tensors.json").read_text())["x"] == values.astype(np.float64).tolist()


def test_another_layout_can_still_be_chosen(folder):
    dumper = marey.accvlab.TensorDumper()
    dumper.enable(folder, layout="marey")
    assert state.layout == "marey"
    dumper.reset()


def test_both_names_are_of_one_dumper(theirs, folder):
    ours = marey.TensorDumper()
    assert ours.is_enabled
    ours.add_tensor_data("a", {"b": np.ones(1)}, ours.Type.JSON)
    theirs.dump()
    assert theirs.dump_count == ours.dump_count == 1
    assert json.loads((folder / "0" / "tensors.json").read_text()) == {"a": {"b": [1]}}
    with pytest.raises(RuntimeError):
        ours.enable(folder)


def test_the_next_one_who_enables_chooses_anew(tmp_path):
    marey.accvlab.TensorDumper(tmp_path / "theirs").reset()
    marey.TensorDumper(tmp_path / "ours")
    assert state.layout == "marey"
    marey.TensorDumper().reset()


def test_there_is_one_instance():
    dumper = marey.accvlab.TensorDumper()
    assert dumper is marey.accvlab.TensorDumper()
    assert copy.deepcopy(dumper) is dumper
    assert pickle.loads(pickle.dumps(dumper)) is dumper
    assert isinstance(dumper, marey.TensorDumper)
    assert dumper.Type is marey.TensorDumper.Type
    with pytest.raises(TypeError):
        type("Derived", (marey.accvlab.TensorDumper,), {})
    with pytest.raises(TypeError):
        type("Derived", (marey.TensorDumper,), {})


def test_the_class_of_types_is_an_attribute_once_it_was_used():
    program = """
from marey import TensorDumper
assert TensorDumper.Type.JSON == 0
assert vars(TensorDumper)["Type"] is TensorDumper.Type
from marey.accvlab import TensorDumper as theirs
assert theirs.Type is TensorDumper.Type
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_other_names():
    import marey.accvlab.numba_nvtx as nvtx

    assert marey.accvlab.__version__ == marey.__version__
    assert marey.accvlab.Stopwatch is marey.Stopwatch
    assert marey.accvlab.NVTXRangeWrapper is marey.NVTXRangeWrapper
    handle = nvtx.register_string("range")
    assert isinstance(handle, int)
    assert nvtx.range_push(handle) is None
    assert nvtx.range_pop() is None
