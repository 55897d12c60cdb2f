"""TensorDumper: a named form always gives that file; packages of others read them all."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from dumped import done, entry, manifest, tree

import marey

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
safetensors_torch = pytest.importorskip("safetensors.torch")

Type = marey.TensorDumper.Type


def files(folder, name):
    return [folder / "step-00000000" / file for file in entry(folder, name)["files"]]


def test_the_types_are_those_of_the_reference_and_two_more():
    assert [(kind.name, kind.value) for kind in Type] == [
        ("JSON", 0),
        ("BINARY", 1),
        ("IMAGE_RGB", 2),
        ("IMAGE_BGR", 3),
        ("IMAGE_I", 4),
        ("PICKLE", 5),
        ("NPY", 6),
        ("SAFETENSORS", 7),
    ]
    assert [kind for kind in Type if Type.is_image(kind)] == [Type.IMAGE_RGB, Type.IMAGE_BGR, Type.IMAGE_I]


def test_each_form_has_its_file(dumper, folder):
    tensor = torch.arange(27.0).reshape(3, 3, 3)
    for kind in Type:
        dumper.add_tensor_data(kind.name, tensor, kind)
    done(dumper)
    suffixes = {record["name"]: record["files"][0].rpartition(".")[2] for record in manifest(folder)}
    assert suffixes == {
        "JSON": "json",
        "BINARY": "bin",
        "IMAGE_RGB": "png",
        "IMAGE_BGR": "png",
        "IMAGE_I": "png",
        "PICKLE": "pkl",
        "NPY": "npy",
        "SAFETENSORS": "safetensors",
    }
    assert json.loads(files(folder, "JSON")[0].read_text()) == tensor.tolist()
    assert files(folder, "BINARY")[0].read_bytes() == tensor.numpy().tobytes()
    assert torch.equal(pickle.loads(files(folder, "PICKLE")[0].read_bytes()), tensor)
    assert np.array_equal(np.load(files(folder, "NPY")[0]), tensor.numpy())
    assert [t.tolist() for t in safetensors_torch.load_file(files(folder, "SAFETENSORS")[0]).values()] == [
        tensor.tolist()
    ]


def test_a_type_that_is_none_is_refused(dumper):
    with pytest.raises(ValueError, match="99"):
        dumper.add_tensor_data("x", torch.ones(1), 99)


def test_accvlabs_json(accvlab, folder):
    data = {"a": torch.tensor([[1.5, -2.0], [0.0, 0.1]]), "i": torch.tensor([1, -2]), "s": "t", "n": None, "e": []}
    accvlab.add_tensor_data("x", data, Type.JSON)
    accvlab.add_tensor_data("y", torch.ones(2), Type.BINARY)
    accvlab.add_tensor_data("plain", torch.ones(2))
    done(accvlab)
    text = (folder / "0" / "tensors.json").read_text()
    assert text.startswith('{\n  "x": {\n    "a": [\n      [')
    found = json.loads(text)
    assert torch.equal(torch.tensor(found["x"].pop("a")), data["a"])
    assert found == {"x": {"i": [1, -2], "s": "t", "n": None, "e": []}, "y": "y.bin", "plain": [1.0, 1.0]}


def test_accvlabs_binary_with_its_meta_file(accvlab, folder):
    tensor = torch.arange(6, dtype=torch.int16).reshape(2, 3)
    accvlab.add_tensor_data("a", [{"b": tensor}], Type.BINARY)
    done(accvlab)
    assert tree(folder) == {"a": [{"b": "a.0.b.bin"}]}
    file = folder / "0" / "[tensors.json]a.0.b.bin"
    meta = json.loads((folder / "0" / "[tensors.json]a.0.b.bin.meta.json").read_text())
    assert meta == {"file_data_shape": [2, 3], "file_data_dtype": "torch.int16"}
    assert file.read_bytes() == tensor.numpy().tobytes()


def test_accvlabs_pickle(accvlab, folder):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    accvlab.add_tensor_data("x", x, Type.PICKLE, permute_axes=[1, 0])
    done(accvlab)
    assert tree(folder) == {"x": "x.pkl"}
    found = pickle.loads((folder / "0" / "[tensors.json]x.pkl").read_bytes())
    assert torch.equal(found, x.detach().t()) and not found.requires_grad


def test_accvlabs_images_are_split_and_named_by_their_positions(accvlab, folder):
    batch = torch.rand(2, 1, 4, 5, 3)
    accvlab.add_tensor_data("img", batch, Type.IMAGE_RGB)
    done(accvlab)
    assert tree(folder) == {"img": [["img.0.0.png"], ["img.1.0.png"]]}
    with Image.open(folder / "0" / "[tensors.json]img.1.0.png") as image:
        assert (image.size, image.mode) == ((5, 4), "RGB")
        low, high = batch[1, 0].min(), batch[1, 0].max()
        expected = torch.round((batch[1, 0] - low) / (high - low) * 255)
        assert (torch.from_numpy(np.array(image)).float() - expected).abs().max() <= 1
    meta = json.loads((folder / "0" / "[tensors.json]img.1.0.png.meta.json").read_text())
    assert meta["image_format"] == "RGB"
    assert meta["original_range"] == pytest.approx([low.item(), high.item()])


def pixels(path):
    with Image.open(path) as image:
        return np.array(image)


def test_red_and_blue_are_where_the_type_says(dumper, folder):
    tensor = torch.zeros(2, 2, 3)
    tensor[..., 0] = 1
    dumper.add_tensor_data("rgb", tensor, Type.IMAGE_RGB)
    dumper.add_tensor_data("bgr", tensor, Type.IMAGE_BGR)
    done(dumper)
    assert pixels(files(folder, "rgb")[0])[0, 0].tolist() == [255, 0, 0]
    assert pixels(files(folder, "bgr")[0])[0, 0].tolist() == [0, 0, 255]


def test_channels_first_by_detection_and_by_permutation(dumper, folder):
    tensor = torch.zeros(3, 4, 5)
    tensor[1] = 1
    dumper.add_tensor_data("found", tensor, Type.IMAGE_RGB)
    dumper.add_tensor_data("permuted", tensor, Type.IMAGE_RGB, permute_axes=[1, 2, 0])
    done(dumper)
    for name in ("found", "permuted"):
        image = pixels(files(folder, name)[0])
        assert image.shape == (4, 5, 3)
        assert image[0, 0].tolist() == [0, 255, 0]


def test_options_of_images(dumper, folder):
    grey = torch.tensor([[0.0, 0.5], [1.0, 2.0]])
    dumper.add_tensor_data("fixed", grey, Type.IMAGE_I, image={"range": (0, 1)})
    dumper.add_tensor_data("deep", grey, Type.IMAGE_I, image={"range": (0, 2), "depth": 16})
    dumper.add_tensor_data("batch", torch.stack([grey, grey * 10]), Type.IMAGE_I, image={"range": "batch"})
    dumper.add_tensor_data("map", grey, Type.IMAGE_I, image={"map": "viridis"})
    boxes = [(2, 2, 12, 9, 0, 0x00FF00)]
    dumper.add_tensor_data("boxes", torch.zeros(16, 16), Type.IMAGE_I, image={"boxes": boxes, "points": [(5, 5)]})
    mask = torch.zeros(16, 16, dtype=torch.bool)
    mask[:8] = True
    options = {"mask": mask, "mask_color": 0x0000FF, "mask_opacity": 1.0}
    dumper.add_tensor_data("mask", torch.zeros(16, 16, 3), Type.IMAGE_RGB, image=options)
    done(dumper)
    assert pixels(files(folder, "fixed")[0]).tolist() == [[0, 128], [255, 255]]
    assert pixels(files(folder, "deep")[0]).tolist() == [[0, 16384], [32768, 65535]]
    assert pixels(files(folder, "batch")[0]).max() == 26
    assert pixels(files(folder, "map")[0]).shape == (2, 2, 3)
    assert pixels(files(folder, "boxes")[0])[2, 7].tolist() == [0, 255, 0]
    assert pixels(files(folder, "mask")[0])[0, 0].tolist() == [0, 0, 255]
    assert pixels(files(folder, "mask")[0])[15, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"colour": 1},
        {"range": "some"},
        {"range": (1,)},
        {"map": "jet"},
        {"boxes": [(1, 2)]},
        {"mask": "x"},
        {"depth": -1},
        3,
    ],
    ids=str,
)
def test_options_of_images_that_are_none_are_refused(dumper, options):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        dumper.add_tensor_data("x", torch.zeros(4, 4), Type.IMAGE_I, image=options)


def test_a_form_for_all_replaces_what_the_calls_say(accvlab, folder):
    x = torch.ones(2, requires_grad=True)
    accvlab.add_tensor_data("before", torch.ones(2), Type.BINARY)
    accvlab.add_grad_data("g", x, Type.BINARY)
    accvlab.set_dump_type_for_all(Type.JSON)
    accvlab.add_tensor_data("after", {"a": torch.ones(2)}, Type.BINARY, {"a": Type.PICKLE})
    accvlab.set_gradients(x.sum())
    done(accvlab)
    assert tree(folder) == {"before": [1.0, 1.0], "after": {"a": [1.0, 1.0]}}
    assert tree(folder, 0, "grads.json") == {"g": [1.0, 1.0]}


def test_a_form_for_all_can_leave_a_tree_out_and_be_taken_back(accvlab, folder):
    x = torch.ones(2, requires_grad=True)
    accvlab.set_dump_type_for_all(Type.JSON, include_grads=False)
    accvlab.add_tensor_data("t", torch.ones(2), Type.BINARY)
    accvlab.add_grad_data("g", x, Type.BINARY)
    accvlab.set_gradients(x.sum())
    done(accvlab)
    assert tree(folder) == {"t": [1.0, 1.0]}
    assert tree(folder, 0, "grads.json") == {"g": "g.bin"}
    accvlab.set_dump_type_for_all(None)
    accvlab.add_tensor_data("t", torch.ones(2), Type.BINARY)
    done(accvlab)
    assert tree(folder, 1) == {"t": "t.bin"}


def test_what_is_added_already_cannot_become_a_pickle(dumper):
    dumper.add_tensor_data("x", torch.ones(1))
    with pytest.raises(ValueError, match="before adding"):
        dumper.set_dump_type_for_all(Type.PICKLE)
