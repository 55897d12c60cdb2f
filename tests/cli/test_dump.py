"""marey dump: contents of a dump, numbers, extraction of a value, PNG; messages for invalid input."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save_file


@pytest.fixture
def dump(tmp_path):
    """Two steps as ACCV-Lab lays them out: numbers, a text, a count."""
    for step in range(2):
        place = tmp_path / "dump" / str(step)
        place.mkdir(parents=True)
        values = {
            "layer": {"in": [1.0, 2.0], "out": [[0.5, -1.5], [float("nan"), 4.0]]},
            "epoch": step,
            "note": "a text",
        }
        (place / "tensors.json").write_text(json.dumps(values))
    return "dump"


def test_steps_are_listed_then_the_values_of_one(marey, dump, expected):
    done = marey("dump", "ls", dump)
    assert (done.returncode, done.stderr) == (0, "")
    expected("dump-steps", done.stdout)
    expected("dump-values", marey("dump", "ls", dump, "--step", "1").stdout)
    rows = json.loads(marey("dump", "ls", dump, "--all", "--json").stdout)
    assert len(rows) == 8
    assert (rows[1]["name"], rows[1]["dtype"], rows[1]["shape"], rows[1]["bytes"]) == (
        "layer.out",
        "float64",
        "[2,2]",
        32,
    )


def test_numbers_are_shown_with_places_that_are_not_finite(marey, dump, expected):
    expected("dump-show", marey("dump", "show", dump, "--step", "0").stdout)


def test_of_many_numbers_both_ends_are_shown(marey, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(100_000).reshape(1000, 100))
    lines = marey("dump", "show", "x.npy", "--limit", "2").stdout.splitlines()
    assert lines[2:] == [
        "[0,0]  0  1  ...  98  99",
        "[1,0]  100  101  ...  198  199",
        "...",
        "[998,0]  99800  99801  ...  99898  99899",
        "[999,0]  99900  99901  ...  99998  99999",
    ]


def test_statistics_are_those_of_numpy(marey, tmp_path):
    x = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    save_file({"x": x}, tmp_path / "x.safetensors")
    (row,) = json.loads(marey("dump", "stats", "x.safetensors", "--json").stdout)
    assert row["n"] == 350 and row["nan"] == 0 and row["negative"] == (x < 0).sum()
    assert row["min"] == x.min() and row["max"] == x.max()
    assert row["mean"] == pytest.approx(x.mean(dtype=np.float64), rel=1e-6)
    assert row["std"] == pytest.approx(x.std(dtype=np.float64), rel=1e-6)
    assert row["l2"] == pytest.approx(np.linalg.norm(x.astype(np.float64)), rel=1e-6)


def test_a_value_comes_out_as_others_read_it(marey, tmp_path):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    save_file({"a.b": x}, tmp_path / "x.safetensors")

    def cat(form):
        return marey("dump", "cat", "x.safetensors", "a.b", "--as", form, text=False).stdout

    assert cat("raw") == x.tobytes()
    assert (np.load(io.BytesIO(cat("npy"))) == x).all()
    assert (np.array(json.loads(cat("json")), np.float32) == x).all()
    assert (load_safetensors(cat("safetensors"))["a.b"] == x).all()
    done = marey("dump", "cat", "x.safetensors", "a.b", "--as", "npy", "-o", "y.npy")
    assert (done.returncode, done.stdout) == (0, "")
    assert (np.load(tmp_path / "y.npy") == x).all()


def test_a_text_comes_out_as_it_is(marey, dump):
    assert marey("dump", "cat", dump, "note", "--step", "0").stdout == "a text"


def test_pictures_are_png(marey, tmp_path):
    ramp = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "grey.npy", ramp)
    np.save(tmp_path / "many.npy", np.stack([np.zeros((5, 6))] * 7))
    marey("dump", "image", "grey.npy", "data", "--range", "0,1", "-o", "grey.png")
    assert (np.asarray(Image.open(tmp_path / "grey.png")) == np.rint(ramp * 255)).all()
    marey("dump", "image", "many.npy", "data", "-o", "many.png")
    assert sorted(path.name for path in tmp_path.glob("many-*.png")) == [f"many-{i}.png" for i in range(7)]
    done = marey("dump", "image", "grey.npy", "data", "--map", "viridis", text=False)
    assert Image.open(io.BytesIO(done.stdout)).mode == "RGB"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["cat", "dump", "layer.out"], "several values have this name; select one with --step and --rank"),
        (["cat", "dump", "nope"], "the dump has no value 'nope'; 'marey dump ls' lists them"),
        (["show", "dump", "--step", "9"], "the dump has no such step or rank; 'marey dump ls' lists them"),
        (["image", "dump", "epoch", "--step", "0"], "epoch cannot be drawn"),
        (["image", "dump", "layer.out", "-s", "0", "--range", "1"], "--range takes two numbers"),
        (["cat", "dump", "layer.out", "-s", "0", "-o", "no/such/file"], "cannot write no/such/file"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(marey, dump, args, sentence):
    done = marey("dump", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"marey: {sentence}") and done.stderr.count("\n") == 1
