"""TensorDumper: paths of values: ranges, conflicts, names that are not valid file names."""

from __future__ import annotations

import pytest
from dumped import done, entry, manifest, names, tensors, tree

import marey

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors.torch")

Type = marey.TensorDumper.Type


def test_dots_make_levels_and_dicts_are_merged(accvlab, folder):
    accvlab.add_tensor_data("a.b", {"x": torch.ones(1)}, Type.JSON)
    accvlab.add_tensor_data("a.b", {"y": torch.zeros(1)}, Type.JSON)
    accvlab.add_tensor_data("a.c", torch.zeros(()), Type.JSON)
    done(accvlab)
    assert tree(folder) == {"a": {"b": {"x": [1.0], "y": [0.0]}, "c": 0.0}}


def test_the_same_key_twice_is_an_error_told_at_the_add(dumper):
    dumper.add_tensor_data("a", {"x": torch.ones(1)})
    with pytest.raises(AssertionError, match=r"a\.x"):
        dumper.add_tensor_data("a", {"x": torch.ones(1)})
    with pytest.raises(AssertionError):
        dumper.add_tensor_data("a.x", torch.ones(1))


def test_forgetting_to_dump_in_a_loop_is_reported(dumper):
    dumper.add_tensor_data("loss", torch.ones(()))
    with pytest.raises(AssertionError, match="dump"):
        dumper.add_tensor_data("loss", torch.ones(()))


def test_a_tensor_does_not_replace_a_dict_that_has_something(dumper):
    dumper.add_tensor_data("a.b", torch.ones(1))
    with pytest.raises(AssertionError):
        dumper.add_tensor_data("a", torch.ones(1))


def test_a_tensor_may_be_where_an_empty_dict_was(dumper, folder):
    dumper.add_tensor_data("a", {})
    dumper.add_tensor_data("a", torch.ones(1))
    done(dumper)
    assert tensors(folder)["a"].tolist() == [1]


def test_nothing_goes_through_a_tensor(dumper):
    dumper.add_tensor_data("a", torch.ones(1))
    with pytest.raises(AssertionError, match=r"a\.b"):
        dumper.add_tensor_data("a.b", torch.ones(1))


def test_a_path_steps_into_a_list_by_position(accvlab, folder):
    accvlab.add_tensor_data("layers", [{"w": torch.ones(1)}, {"w": torch.zeros(1)}], Type.JSON)
    accvlab.add_tensor_data("layers.1.b", torch.full((1,), 2.0), Type.JSON)
    with pytest.raises(AssertionError):
        accvlab.add_tensor_data("layers.7.b", torch.ones(1), Type.JSON)
    with pytest.raises(AssertionError):
        accvlab.add_tensor_data("layers.first.b", torch.ones(1), Type.JSON)
    done(accvlab)
    assert tree(folder) == {"layers": [{"w": [1.0]}, {"w": [0.0], "b": [2.0]}]}


def test_a_number_alone_is_a_value(dumper, folder):
    dumper.add_tensor_data("epoch", 3)
    dumper.add_tensor_data("done", False)
    dumper.add_tensor_data("note", "warm")
    dumper.add_tensor_data("none", None)
    done(dumper)
    assert {record["name"]: record["value"] for record in manifest(folder)} == {
        "epoch": 3,
        "done": False,
        "note": "warm",
        "none": None,
    }


def test_in_accvlabs_layout_a_number_alone_is_refused_and_leaves_nothing_behind(accvlab, folder):
    with pytest.raises(ValueError, match="int"):
        accvlab.add_tensor_data("epoch", 3, Type.JSON)
    accvlab.add_tensor_data("note", "warm", Type.JSON)
    accvlab.add_tensor_data("values", {"epoch": 3}, Type.JSON)
    done(accvlab)
    assert tree(folder) == {"note": "warm", "values": {"epoch": 3}}


def test_ranges_stand_in_front_and_nest(dumper, folder):
    dumper.push_range("epoch0")
    dumper.push_range(lambda: "layer.attention")
    dumper.add_tensor_data("q", torch.ones(1))
    dumper.pop_range()
    dumper.add_tensor_data("loss", torch.ones(1))
    dumper.pop_range()
    dumper.add_tensor_data("x", torch.ones(1))
    done(dumper)
    assert names(folder) == ["epoch0.layer.attention.q", "epoch0.loss", "x"]


def test_ranges_stay_over_a_dump(dumper, folder):
    dumper.push_range("r")
    done(dumper)
    dumper.add_tensor_data("x", torch.ones(1))
    done(dumper)
    assert names(folder, 1) == ["r.x"]


def test_a_pop_too_many_is_reported(dumper):
    with pytest.raises(IndexError, match="push_range"):
        dumper.pop_range()


def test_a_range_without_a_name_is_reported_at_the_push(dumper):
    with pytest.raises(TypeError, match="int"):
        dumper.push_range(3)
    with pytest.raises(TypeError, match="float"):
        dumper.push_range(lambda: 0.5)


def test_a_path_is_a_text(dumper):
    with pytest.raises(TypeError, match="bytes"):
        dumper.add_tensor_data(b"x", torch.ones(1))


HOSTILE = [
    "../../x",
    "/etc/passwd",
    "",
    "a/b",
    "a\\b",
    "..",
    ".",
    "x" * 10_000,
    "a b",
    "[0]",
    "\N{FIRE}",
    "a\0b",
    "a\nb",
    "%2e",
]


@pytest.mark.parametrize("kind", [None, Type.BINARY, Type.NPY, Type.PICKLE])
@pytest.mark.parametrize("layout", ["marey", "accvlab"])
def test_no_key_leads_out_of_the_directory(tmp_path, kind, layout):
    folder = tmp_path / "inner" / "d"
    dumper = marey.TensorDumper(folder, layout=layout)
    dumper.add_tensor_data("data", {key: torch.full((1,), float(i)) for i, key in enumerate(HOSTILE)}, kind)
    dumper.dump()
    dumper.reset()
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]
    assert [path.name for path in (tmp_path / "inner").iterdir()] == ["d"]
    if layout == "marey":
        records = manifest(folder)
        assert [record["path"] for record in records] == [["data", key] for key in HOSTILE]
        assert len({record["name"] for record in records}) == len(HOSTILE)
    else:
        assert list(tree(folder)["data"]) == HOSTILE


def test_names_of_tensors_can_be_read_back_from_the_container(dumper, folder):
    dumper.add_tensor_data("data", {key: torch.full((1,), float(i)) for i, key in enumerate(HOSTILE)})
    done(dumper)
    found = tensors(folder)
    by_name = {record["name"]: record["path"][1] for record in manifest(folder)}
    assert {by_name[name]: tensor.item() for name, tensor in found.items()} == {
        key: float(i) for i, key in enumerate(HOSTILE)
    }


def test_keys_that_are_numbers_or_have_colons_stay_what_they_are(dumper, folder):
    dumper.add_tensor_data("d", {1: torch.ones(1), "a:b": torch.zeros(1)})
    done(dumper)
    assert [record["path"] for record in manifest(folder)] == [["d", "1"], ["d", "a:b"]]


def test_the_manifest_names_the_line_that_added_it(dumper, folder):
    dumper.add_tensor_data("x", torch.ones(1))  # this line
    done(dumper)
    file, _, line = entry(folder, "x")["source"].rpartition(":")
    assert file.endswith("test_dumper_paths.py")
    with open(__file__, encoding="utf-8") as source:
        assert "# this line" in source.readlines()[int(line) - 1]
