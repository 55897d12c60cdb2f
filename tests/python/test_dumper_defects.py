"""TensorDumper: what went wrong in the tool it is modelled on, each as a test that it does not here.

Comparisons are in test_dumper_compare.py, snapshots in test_dumper_data.py.
"""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from dumped import entry, manifest, names, tensors, tree

import marey

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("safetensors.torch")

Type = marey.TensorDumper.Type


@pytest.fixture
def dumper(accvlab):
    return accvlab


def pixels(path):
    with Image.open(path) as image:
        return np.array(image)


def side(folder, name):
    return folder / "0" / f"[tensors.json]{name}"


# ---- what is added ----


def test_exclude_reaches_into_lists(dumper, folder):
    dumper.add_tensor_data("x", [{"drop": torch.ones(1), "keep": torch.ones(1)}], Type.JSON, exclude=["drop"])
    dumper.dump()
    assert tree(folder) == {"x": [{"keep": [1.0]}]}


def test_exclude_reaches_what_converters_give(dumper, folder):
    class Wrapper:
        pass

    dumper.register_custom_converter(Wrapper, lambda _: {"drop": 1, "keep": 2})
    dumper.add_tensor_data("x", {"w": Wrapper()}, Type.JSON, exclude=["drop"])
    dumper.dump()
    assert tree(folder) == {"x": {"w": {"keep": 2}}}


def test_exclude_as_one_text_is_one_name_and_no_part_of_it(dumper, folder):
    dumper.add_tensor_data("x", {"ab": 1, "abc": 2, "b": 3}, Type.JSON, exclude="abc")
    dumper.dump()
    assert tree(folder) == {"x": {"ab": 1, "b": 3}}


def test_bytes_are_a_tensor_and_a_range_a_text(dumper, folder):
    dumper.add_tensor_data("x", {"bytes": b"\x00\xff", "range": range(10**9)}, Type.BINARY)
    dumper.dump()
    assert tree(folder) == {"x": {"bytes": "x.bytes.bin", "range": "range(0, 1000000000)"}}
    assert side(folder, "x.bytes.bin").read_bytes() == b"\x00\xff"


def test_a_converter_that_returns_its_own_type_ends(dumper):
    class Loop:
        pass

    dumper.register_custom_converter(Loop, lambda loop: loop)
    with pytest.raises(ValueError, match="Loop"):
        dumper.add_tensor_data("x", Loop())


def test_converters_that_lead_to_each_other_end(dumper):
    class A:
        pass

    class B:
        pass

    dumper.register_custom_converter(A, lambda _: B())
    dumper.register_custom_converter(B, lambda _: A())
    with pytest.raises(ValueError, match="converter"):
        dumper.add_tensor_data("x", {"y": [A()]})


def test_a_key_with_a_slash_is_a_name_and_no_folder(dumper, folder):
    dumper.add_tensor_data("x", {"a/b": torch.ones(1)}, Type.BINARY)
    dumper.dump()
    assert list(tree(folder)["x"]) == ["a/b"]
    named = tree(folder)["x"]["a/b"]
    assert "/" not in named
    assert side(folder, named).read_bytes() == np.float32(1).tobytes()


def test_an_error_at_the_add_leaves_no_empty_dict_behind(dumper, folder):
    with pytest.raises(ValueError, match="int"):
        dumper.add_tensor_data("x", 3, Type.JSON)
    dumper.dump()
    assert tree(folder) == {}


def test_memory_of_tensors_is_not_held_until_the_dump(dumper):
    import weakref

    tensor = torch.ones(10)
    alive = weakref.ref(tensor)
    dumper.add_tensor_data("x", tensor, Type.JSON)
    del tensor
    assert alive() is None


# ---- gradients ----


def test_gradients_that_were_not_set_are_reported_before_anything_is_written(dumper, folder):
    x = torch.ones(1, requires_grad=True)
    dumper.add_tensor_data("t", torch.ones(1), Type.JSON)
    dumper.add_grad_data("g", x, Type.JSON)
    with pytest.raises(ValueError, match="set_gradients"):
        dumper.dump()
    assert not folder.exists()
    dumper.set_gradients((3 * x).sum())
    dumper.dump()
    assert tree(folder) == {"t": [1.0]}
    assert tree(folder, 0, "grads.json") == {"g": [3.0]}


def test_set_gradients_twice_gives_those_of_the_second_call(dumper, folder):
    x = torch.ones(1, requires_grad=True)
    dumper.add_grad_data("g", x, Type.JSON)
    dumper.set_gradients((3 * x).sum())
    dumper.set_gradients((4 * x).sum())
    dumper.dump()
    assert tree(folder, 0, "grads.json") == {"g": [4.0]}


def test_gradient_data_added_behind_set_gradients_is_not_written_as_if_it_were_one(dumper, folder):
    x = torch.ones(1, requires_grad=True)
    dumper.set_gradients((3 * x).sum())
    dumper.add_grad_data("g", x, Type.JSON)
    with pytest.raises(ValueError, match="set_gradients"):
        dumper.dump()
    dumper.set_gradients((3 * x).sum())
    dumper.dump()
    assert tree(folder, 0, "grads.json") == {"g": [3.0]}


# ---- images ----


def test_a_grey_image_with_an_axis_of_one_channel_is_one_image(dumper, folder):
    dumper.add_tensor_data("x", torch.arange(12.0).reshape(3, 4, 1), Type.IMAGE_I)
    dumper.dump()
    assert tree(folder) == {"x": "x.png"}
    assert pixels(side(folder, "x.png")).shape == (3, 4)


def test_a_constant_image_is_an_image(dumper, folder):
    dumper.add_tensor_data("x", torch.full((3, 4), 7.0), Type.IMAGE_I)
    dumper.dump()
    assert len(np.unique(pixels(side(folder, "x.png")))) == 1
    meta = json.loads(side(folder, "x.png.meta.json").read_text())
    assert meta["original_range"] == [7.0, 7.0]


def test_samples_are_cut_as_in_old_dumps_unless_options_are_given(dumper, folder):
    data = torch.tensor([[0.0, 0.5, 0.999, 1.0]])
    dumper.add_tensor_data("x", data, Type.IMAGE_I)
    dumper.add_tensor_data("y", data, Type.IMAGE_I, image={"range": (0.0, 1.0)})
    dumper.dump()
    assert pixels(side(folder, "x.png")).tolist() == [[0, 127, 254, 255]]
    assert pixels(side(folder, "y.png")).tolist() == [[0, 128, 255, 255]]


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int8, torch.uint8, torch.bfloat16, torch.float8_e4m3fn, torch.float16], ids=str
)
def test_images_of_any_type(dumper, folder, dtype):
    tensor = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    if dtype == torch.int8:
        tensor = torch.tensor([[-128, 127], [127, -128]], dtype=dtype)
    dumper.add_tensor_data("x", tensor, Type.IMAGE_I)
    dumper.dump()
    assert pixels(side(folder, "x.png")).tolist() == [[0, 255], [255, 0]]


def test_an_image_with_nan_and_infinities_is_an_image(dumper, folder):
    dumper.add_tensor_data("x", torch.tensor([[0.0, 1.0], [float("nan"), float("inf")]]), Type.IMAGE_I)
    dumper.dump()
    assert pixels(side(folder, "x.png")).tolist() == [[0, 255], [0, 255]]


def test_what_is_no_image_does_not_take_the_step_with_it(dumper, folder):
    dumper.add_tensor_data("good", torch.ones(2), Type.JSON)
    try:
        dumper.add_tensor_data("bad", torch.ones(4, 4, 5), Type.IMAGE_RGB)
        dumper.dump()
    except (ValueError, marey.MareyError) as error:
        assert "bad" in str(error) or "image" in str(error)
    dumper.wait()
    assert tree(folder)["good"] == [1.0, 1.0]


# ---- files ----


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool, torch.complex64], ids=str
)
def test_binaries_of_any_type(dumper, folder, dtype):
    tensor = torch.tensor([1, 0, 1]).to(dtype)
    dumper.add_tensor_data("x", tensor, Type.BINARY)
    dumper.dump()
    meta = json.loads(side(folder, "x.bin.meta.json").read_text())
    assert meta == {"file_data_shape": [3], "file_data_dtype": str(dtype)}
    assert list(side(folder, "x.bin").read_bytes()) == tensor.view(torch.uint8).tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2, torch.complex64, torch.bool], ids=str)
def test_json_of_any_type(dumper, folder, dtype):
    dumper.add_tensor_data("x", torch.tensor([1, 0]).to(dtype), Type.JSON)
    dumper.dump()
    found = tree(folder)["x"]
    assert len(found) == 2
    if not dtype.is_complex:
        assert found == [1, 0]


def test_a_step_that_cannot_be_written_leaves_no_half_of_it(tmp_path):
    if os.geteuid() != 0:
        (tmp_path / "d").mkdir(mode=0o500)
    else:
        (tmp_path / "d").write_text("a file where the folder should be")
    dumper = marey.TensorDumper(tmp_path / "d", layout="accvlab")
    dumper.add_tensor_data("x", torch.ones(3), Type.JSON)
    with pytest.raises(marey.MareyError, match="d"):
        dumper.dump()
        dumper.dump()
    dumper.reset()
    assert not list(tmp_path.rglob("*.json"))


def test_two_dumps_into_one_step_do_not_mix(tmp_path):
    for i in range(2):
        dumper = marey.TensorDumper(tmp_path / "d")
        dumper.add_tensor_data(f"run{i}", torch.ones(1))
        dumper.dump()
        dumper.disable()
    assert list(tensors(tmp_path / "d")) == ["run1"]
    assert names(tmp_path / "d") == ["run1"]


def test_nan_and_infinities_are_read_back(tmp_path):
    dumper = marey.TensorDumper(tmp_path / "d")
    dumper.add_tensor_data("x", torch.tensor([float("nan"), float("inf"), -0.0]))
    dumper.add_tensor_data("n", float("nan"))
    dumper.dump()
    dumper.disable()
    found = tensors(tmp_path / "d")["x"]
    assert torch.isnan(found[0]) and found[1] == float("inf") and torch.signbit(found[2])
    assert entry(tmp_path / "d", "x")["stats"]["nan"] == 1
    assert [record["name"] for record in manifest(tmp_path / "d")] == ["x", "n"]


# ---- ranges and counts ----


def test_counts_and_ranges_are_gone_after_a_reset(tmp_path):
    dumper = marey.TensorDumper(tmp_path / "a")
    dumper.push_range("r")
    dumper.set_dump_count(5)
    dumper.reset()
    dumper.enable(tmp_path / "b")
    with pytest.raises(IndexError):
        dumper.pop_range()
    assert dumper.dump_count == 0
    dumper.reset()
