"""marey.load_dump: arrays of dumps and files."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import marey

save_file = pytest.importorskip("safetensors.numpy").save_file
Type = marey.TensorDumper.Type


@pytest.fixture(autouse=True)
def dumper_off():
    yield
    marey.TensorDumper().disable()


@pytest.fixture
def dumper(tmp_path):
    dumper = marey.TensorDumper()
    dumper.enable(tmp_path / "d")
    return dumper


def test_an_array_lives_on_its_own_and_is_not_to_be_written_to(dumper, tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    dumper.add_tensor_data("layer0", {"out": x})
    dumper.dump()
    dumper.disable()
    loaded = marey.load_dump(tmp_path / "d")
    array = loaded["layer0.out"]
    assert (array == x).all() and array.dtype == np.float32
    assert not array.flags.writeable and not array.flags.owndata
    del loaded
    assert array.sum() == 15  # its numbers live as long as it does


@pytest.mark.parametrize("layout", ["marey", "npy"])
def test_a_file_that_is_truncated_while_it_is_read_is_an_error(tmp_path, layout):
    path = tmp_path / "x.npy" if layout == "npy" else tmp_path / "x.safetensors"
    if layout == "npy":
        np.save(path, np.ones(100_000))
    else:
        save_file({"data": np.ones(100_000)}, path)
    loaded = marey.load_dump(path)
    array = loaded["data"]
    os.truncate(path, 5000)
    assert array.sum() == 100_000  # what was read stays
    del array
    with pytest.raises(marey.MareyError, match=r"x\.\w+ (was truncated to 5000 bytes|is not a complete)"):
        loaded["data"]


def test_numbers_that_nobody_has_any_more_take_no_memory(tmp_path):
    """Ten arrays of 64 MB, one after the other, are never in memory all at once."""
    save_file({f"t{i}": np.ones(8_000_000) for i in range(10)}, tmp_path / "x.safetensors")
    code = (
        "import marey, sys\n"
        "loaded = marey.load_dump(sys.argv[1])\n"
        "print(sum(float(loaded[f't{i}'][-1]) for i in range(10)))\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    path = str(tmp_path / "x.safetensors")
    total, peak = subprocess.check_output([sys.executable, "-c", code, path], text=True).split()
    assert float(total) == 10 and int(peak) < 400_000


def test_steps_and_gradients_can_be_chosen(dumper, tmp_path):
    for i in range(3):
        dumper.add_tensor_data("x", np.full(2, i))
        dumper.dump()
    dumper.disable()
    loaded = marey.load_dump(tmp_path / "d")
    assert loaded.steps == [(0, None), (1, None), (2, None)]
    assert loaded.number == 2 and (loaded["x"] == 2).all()
    assert (loaded.step(0)["x"] == 0).all()
    assert (marey.load_dump(tmp_path / "d", step=1)["x"] == 1).all()
    assert len(loaded.gradients) == 0
    with pytest.raises(KeyError, match="there is no step 9"):
        loaded.step(9)


def test_it_is_a_mapping_with_values_of_all_kinds(dumper, tmp_path):
    dumper.add_tensor_data("d", {"x": np.ones(2), "text": "words", "n": 3, "f": 2.5, "b": True, "none": None, "e": []})
    dumper.dump()
    dumper.disable()
    loaded = marey.load_dump(tmp_path / "d")
    assert list(loaded) == ["d.x", "d.text", "d.n", "d.f", "d.b", "d.none", "d.e"]
    assert [loaded[name] for name in list(loaded)[1:]] == ["words", 3, 2.5, True, None, []]
    assert loaded.about("d.x")["dtype"] == "float64" and loaded.about()["complete"]
    assert "d.x  float64 [2]" in repr(loaded)
    with pytest.raises(KeyError, match=r"did you mean 'd\.x'"):
        loaded["d.xx"]


def test_types_that_numpy_lacks_come_by_ml_dtypes_or_torch(dumper, tmp_path):
    torch = pytest.importorskip("torch")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = torch.tensor([1.5, -2.0])
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dumper.add_tensor_data(name, x.to(getattr(torch, name)))
    dumper.dump()
    dumper.disable()
    loaded = marey.load_dump(tmp_path / "d")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        assert loaded[name].dtype == getattr(ml_dtypes, name)
        assert (loaded[name].astype(np.float32) == x.numpy()).all()
        assert loaded.torch(name).dtype == getattr(torch, name)
        assert (loaded.torch(name).float() == x).all()


def test_files_of_others_are_loaded(tmp_path):
    from safetensors.numpy import save_file

    x = np.arange(4)
    np.save(tmp_path / "x.npy", x)
    save_file({"a": x, "b": x + 1}, tmp_path / "x.safetensors")
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "tensors.json").write_text(json.dumps({"deep": {"x": [1.5, 2.5]}}))
    assert (next(iter(marey.load_dump(tmp_path / "x.npy").values())) == x).all()
    assert (marey.load_dump(tmp_path / "x.safetensors")["b"] == x + 1).all()
    assert (marey.load_dump(tmp_path)["deep.x"] == [1.5, 2.5]).all()
    assert marey.load_dump(tmp_path).number == 7


def test_pickles_are_loaded_when_asked_alone(dumper, tmp_path):
    dumper.add_tensor_data("p", np.arange(3), Type.PICKLE)
    dumper.dump()
    dumper.disable()
    with pytest.raises(ValueError, match="allow_pickle=True"):
        marey.load_dump(tmp_path / "d")["p"]
    assert (np.asarray(marey.load_dump(tmp_path / "d", allow_pickle=True)["p"]) == np.arange(3)).all()


def test_what_was_not_kept_says_so(tmp_path):
    dumper = marey.TensorDumper()
    dumper.enable(tmp_path / "d", mode="stats")
    dumper.add_tensor_data("x", np.ones(2))
    dumper.dump()
    dumper.disable()
    loaded = marey.load_dump(tmp_path / "d")
    with pytest.raises(marey.MareyError, match="x"):
        loaded["x"]
    assert loaded.about("x")["stats"]["mean"] == 1


def test_what_is_no_dump_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "no"):
        with pytest.raises(marey.MareyError):
            marey.load_dump(path)
