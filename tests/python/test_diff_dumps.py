"""marey.diff: real dumps of the TensorDumper, in all modes, layouts and formats; a planted bug; determinism."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optional_parts import needs_digests

import marey

Type = marey.TensorDumper.Type


@pytest.fixture(autouse=True)
def dumper_off():
    yield
    marey.TensorDumper().disable()


def write(folder: Path, *steps: dict[str, Any], **options: Any) -> Path:
    """Dump each step's data."""
    dumper = marey.TensorDumper()
    dumper.enable(folder, **options)
    for step in steps:
        for path, data in step.items():
            dumper.add_tensor_data(path, data)
        dumper.dump()
    dumper.disable()
    return folder


def numbers(seed: int = 0, n: int = 1000) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n).astype(np.float32)


# ---- the result ----


@needs_digests
def test_the_answer_can_be_read_by_a_program_and_by_people(tmp_path):
    x = numbers()
    y = x.copy()
    y[7] += 1
    a = write(tmp_path / "a", {"same": x, "other": y})
    b = write(tmp_path / "b", {"same": x, "other": x})
    found = marey.diff(a, b)
    assert not found.same and not found.partial
    assert (found.first["path"], found.first["index"]) == ("other", (7,))
    assert np.float32(found.first["a"]) == y[7] and np.float32(found.first["b"]) == x[7]
    assert found.first["bits_b"] == f"0x{x[7:8].view(np.uint32)[0]:08x}"
    assert found.tensors["status"] == ["same", "different"]
    assert found.tensors["basis"] == ["digest", "data"]
    assert found.steps["different"] == [1]
    assert repr(found).startswith("A and B differ first at step 0, other[7]: A has ")
    assert "other" in found._repr_html_() and "<script" not in found._repr_html_()
    assert json.loads(found.to_json())["first"]["path"] == "other"
    assert marey.diff(a, a).same and marey.diff(a, a).first is None


def test_names_in_a_notebook_are_escaped(tmp_path):
    a = write(tmp_path / "a", {"<script>x": np.ones(2)})
    b = write(tmp_path / "b", {"<script>x": np.zeros(2)})
    assert "<script" not in marey.diff(a, b)._repr_html_()


def test_options_are_those_of_the_command(tmp_path):
    a = write(tmp_path / "a", {"x": np.float32([1.01]), "y": np.float32([np.nan])})
    b = write(tmp_path / "b", {"x": np.float32([1.0]), "y": np.float32([np.nan])})
    assert not marey.diff(a, b).same
    assert marey.diff(a, b, atol=0.1).same
    assert marey.diff(a, b, rtol=0.1).same
    assert marey.diff(a, b, tolerances={"x": 0.1}).same
    assert marey.diff(a, b, tolerances={"*": 0.1, "x": (0, 0, 1)}).tensors["status"] == ["different", "same"]
    assert not marey.diff(a, b, atol=0.1, equal_nan=False).same
    assert marey.diff(a, b, filter="y").same
    with pytest.raises(ValueError, match="a tolerance is up to three non-negative numbers"):
        marey.diff(a, b, atol=-1)
    with pytest.raises(ValueError, match="takes two dumps"):
        marey.diff(a)


def test_what_is_not_there_is_an_error(tmp_path):
    with pytest.raises(marey.MareyError, match="cannot open"):
        marey.diff(tmp_path / "no", tmp_path / "no")


# ---- kept data ----


@needs_digests
def test_digests_alone_find_the_tensor_and_its_block(tmp_path):
    x = numbers(n=1 << 20)  # 4 MiB, in blocks of one
    y = x.copy()
    y[700_000] = np.nextafter(y[700_000], 9)
    a = write(tmp_path / "a", {"first": x, "second": y}, mode="digests")
    b = write(tmp_path / "b", {"first": x, "second": x}, mode="digests")
    found = marey.diff(a, b)
    assert found.tensors["status"] == ["same", "different"]
    assert found.first["path"] == "second"
    assert found.first["block_begin"] <= 700_000 < found.first["block_end"]
    assert found.first["block_end"] - found.first["block_begin"] == 1 << 18
    assert any("only their digests" in warning for warning in found.warnings)


@needs_digests
def test_a_full_dump_is_compared_with_digests_and_with_statistics(tmp_path):
    x = numbers()
    full = write(tmp_path / "full", {"x": x})
    for mode in ("digests", "stats"):
        same = write(tmp_path / f"same-{mode}", {"x": x}, mode=mode)
        other = write(tmp_path / f"other-{mode}", {"x": x * 2}, mode=mode)
        found = marey.diff(full, same)
        assert found.same and found.tensors["basis"] == [{"digests": "digest", "stats": "stats"}[mode]]
        assert not marey.diff(full, other).same
        assert not marey.diff(other, full).same


def test_statistics_within_the_tolerance_are_close(tmp_path):
    x = numbers()
    a = write(tmp_path / "a", {"x": x * np.float32(1.0001)}, mode="stats")
    b = write(tmp_path / "b", {"x": x}, mode="stats")
    assert marey.diff(a, b).tensors["status"] == ["different"]
    assert marey.diff(a, b, rtol=1e-3).tensors["status"] == ["close"]


@needs_digests
def test_one_flipped_bit_among_thousands_is_found_without_reading_the_rest(tmp_path):
    x = numbers(n=64)
    steps = [{f"t{i:04d}": x + np.float32(i) for i in range(2000)}]
    a, b = write(tmp_path / "a", *steps), write(tmp_path / "b", *steps)
    (data,) = b.glob("*.safetensors")
    raw = bytearray(data.read_bytes())
    raw[-5] ^= 1  # in the file, not in the digest: a reader of digests does not see it
    data.write_bytes(raw)
    assert marey.diff(a, b).same
    steps[0]["t1234"] = steps[0]["t1234"].copy()
    steps[0]["t1234"].view(np.uint32)[5] ^= 1
    found = marey.diff(write(tmp_path / "c", *steps), a, bitwise=True)
    assert found.tensors["status"].count("different") == 1
    assert (found.first["path"], found.first["index"]) == ("t1234", (5,))


# ---- layouts and forms ----


@pytest.mark.parametrize("form", [Type.JSON, Type.BINARY, Type.NPY, Type.SAFETENSORS])
def test_a_value_of_any_form_is_compared_with_the_container(tmp_path, form):
    x = numbers(n=10).reshape(2, 5)
    container = write(tmp_path / "container", {"deep": {"x": x}})
    dumper = marey.TensorDumper()
    for layout in ("marey", "accvlab"):
        for name, data in (("same", x), ("other", x + 1)):
            dumper.enable(tmp_path / f"{name}-{layout}", layout=layout)
            dumper.add_tensor_data("deep", {"x": data}, form)
            dumper.dump()
            dumper.disable()
        assert marey.diff(tmp_path / f"same-{layout}", container).same
        found = marey.diff(tmp_path / f"other-{layout}", container)
        assert found.first["path"] == "deep.x" and found.tensors["n_wrong"] == [10]


def test_numbers_are_numbers_in_either_layout(tmp_path):
    for layout in ("marey", "accvlab"):
        for name, n in (("a", 3), ("b", 3), ("c", 4), ("d", 3.0000000001)):
            write(tmp_path / f"{name}-{layout}", {"d": {"n": n, "on": True, "none": None}}, layout=layout)
    for left in ("marey", "accvlab"):
        for right in ("marey", "accvlab"):
            assert marey.diff(tmp_path / f"a-{left}", tmp_path / f"b-{right}").same
            assert marey.diff(tmp_path / f"d-{left}", tmp_path / f"b-{right}").same
            assert marey.diff(tmp_path / f"c-{left}", tmp_path / f"b-{right}").first["path"] == "d.n"


def test_pickles_are_compared_as_bytes_and_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "loaded"),)

    dumper = marey.TensorDumper()
    for folder, text in (("a", "one"), ("b", "two"), ("c", "one")):
        dumper.enable(tmp_path / folder)
        dumper.add_tensor_data("p", {"bomb": [Bomb(), text]}, Type.PICKLE)
        dumper.dump()
        dumper.disable()
    assert marey.diff(tmp_path / "a", tmp_path / "c").same
    assert not (tmp_path / "loaded").exists()


def test_torch_types_are_compared(tmp_path):
    torch = pytest.importorskip("torch")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128", "bool", "int64"):
        x = torch.tensor([1, 0, 1]).to(getattr(torch, name))
        y = torch.tensor([1, 1, 1]).to(getattr(torch, name))
        a = write(tmp_path / f"a-{name}", {"x": x})
        b = write(tmp_path / f"b-{name}", {"x": y})
        found = marey.diff(a, b)
        assert (found.tensors["dtype_a"], found.first["index"]) == ([name], (1,)), name


def test_views_and_gradients_are_compared_by_what_they_hold(tmp_path):
    torch = pytest.importorskip("torch")
    x = torch.arange(12.0).reshape(3, 4)
    a = write(tmp_path / "a", {"t": x.t(), "e": torch.ones(1).expand(3, 2), "s": torch.tensor(1.0)})
    b = write(tmp_path / "b", {"t": x.t().contiguous(), "e": torch.ones(3, 2), "s": torch.tensor(1.0)})
    assert marey.diff(a, b, bitwise=True).same
    dumper = marey.TensorDumper()
    for folder, scale in (("ga", 2.0), ("gb", 3.0)):
        w = torch.ones(2, requires_grad=True)
        dumper.enable(tmp_path / folder)
        dumper.add_grad_data("w", w)
        dumper.add_tensor_data("w", w)
        dumper.set_gradients((w * scale).sum())
        dumper.dump()
        dumper.disable()
    found = marey.diff(tmp_path / "ga", tmp_path / "gb")
    assert (found.first["tree"], found.first["path"]) == ("gradients", "w")


# ---- the first difference of a model ----


def test_the_layer_with_the_wrong_epsilon_is_named(tmp_path):
    torch = pytest.importorskip("torch")

    def run(folder, eps):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 8), torch.nn.LayerNorm(8, eps=eps), torch.nn.ReLU(), torch.nn.Linear(8, 4)
        )
        dumper = marey.TensorDumper()
        dumper.enable(tmp_path / folder)
        with dumper.dump_module(model, params=True, grads=True):
            for _ in range(2):
                model(torch.randn(3, 8)).sum().backward()
                dumper.dump()
        dumper.disable()
        return tmp_path / folder

    found = marey.diff(run("new", 1e-3), run("reference", 1e-5))
    assert found.operation["operation"] == "1"
    assert (found.first["phase"], found.first["path"], found.first["step"]) == ("forward", "1.out", 0)


# ---- ranks ----


def test_parameters_are_checked_over_ranks(tmp_path, run_python):
    program = """
        import os, numpy as np, marey
        rank, folder = int(os.environ["RANK"]), os.environ["FOLDER"]
        dumper = marey.TensorDumper()
        dumper.enable(folder)
        dumper.add_tensor_data("w", np.ones(3) * (1 if rank == 0 or folder.endswith("alike") else 2))
        dumper.add_tensor_data("batch", np.ones(3) * rank)
        dumper.dump()
        dumper.disable()
        """
    for folder in ("alike", "apart"):
        for rank in range(2):
            run_python(program, env={"RANK": str(rank), "WORLD_SIZE": "2", "FOLDER": str(tmp_path / folder)})
    assert marey.diff(tmp_path / "alike", ranks=True, filter="w").same
    found = marey.diff(tmp_path / "apart", ranks=True, filter="w")
    assert (found.first["rank"], found.first["path"]) == (1, "w")
    assert not marey.diff(tmp_path / "alike", ranks=True).same
    assert marey.diff(tmp_path / "apart", tmp_path / "alike", rank=0).same


# ---- determinism ----


@needs_digests
def test_a_function_that_gives_the_same_bits_is_deterministic():
    assert marey.check_deterministic(lambda: {"x": np.arange(3), "n": [1, 2.5, None]}).same
    assert marey.check_deterministic(lambda scale: np.ones(3) * scale, 2, runs=3).same
    assert marey.check_deterministic(lambda: 3.5).same


@needs_digests
def test_a_function_that_does_not_is_found_out():
    calls = iter(range(100))
    found = marey.check_deterministic(lambda: np.full(3, next(calls)))
    assert not found.same and found.first["path"] == "result"
    found = marey.check_deterministic(lambda: {"a": np.ones(2), "b": np.full(3, next(calls))}, values=True)
    assert (found.first["path"], found.first["a"] - found.first["b"]) == ("result.b", 1)


@needs_digests
def test_what_it_dumps_is_compared_too():
    calls = iter(range(100))

    def fn():
        marey.TensorDumper().add_tensor_data("inner", np.full(2, next(calls)))

    assert marey.check_deterministic(fn).first["path"] == "inner"


@needs_digests
def test_random_numbers_are_seeded_when_asked():
    def fn():
        return np.random.rand(3)

    assert not marey.check_deterministic(fn).same
    assert marey.check_deterministic(fn, seed=1).same


def test_the_dumper_must_be_off(tmp_path):
    marey.TensorDumper().enable(tmp_path)
    with pytest.raises(marey.StateError, match="is on already"):
        marey.check_deterministic(lambda: 1)


# ---- types ----


def test_a_change_of_dtype_is_a_difference_unless_it_is_allowed(tmp_path):
    torch = pytest.importorskip("torch")
    x = torch.tensor([128.49, 2.0])
    a = write(tmp_path / "a", {"x": x.bfloat16()})
    b = write(tmp_path / "b", {"x": x})
    found = marey.diff(a, b)
    assert not found.same and found.tensors["status"] == ["dtype"]
    assert repr(found).splitlines()[0].endswith("x, in its dtype (bfloat16 in A, float32 in B).")
    assert found.tensors["max_abs"] == [pytest.approx(0.49, rel=1e-4)]
    allowed = marey.diff(a, b, allow_dtype=True)
    assert allowed.same and allowed.tensors["status"] == ["close"]
    assert repr(allowed).startswith("Equal within tolerance: largest absolute 0.49 ")
    assert not marey.diff(a, b, allow_dtype=True, atol=1e-6).same
    assert not marey.diff(a, b, allow_dtype=True, ulp=0).same
    assert "no bits in common" in repr(marey.diff(a, b, bitwise=True))
    with pytest.raises(ValueError, match="exclude each other"):
        marey.diff(a, b, bitwise=True, allow_dtype=True)


def test_a_relative_difference_from_zero_is_infinite(tmp_path):
    a = write(tmp_path / "a", {"x": np.float32([1, 1e-7])})
    b = write(tmp_path / "b", {"x": np.float32([1, 0])})
    assert marey.diff(a, b).tensors["max_rel"] == [float("inf")]


@pytest.mark.parametrize("big", [2**53, 10**9, 2**63, 2**64, 10**30])
def test_integers_that_are_not_tensors_are_compared_as_integers(tmp_path, big):
    a = write(tmp_path / "a", {"x": {"n": big + 1, "same": big}})
    b = write(tmp_path / "b", {"x": {"n": big, "same": big}})
    found = marey.diff(a, b)
    assert found.tensors["status"] == ["different", "same"]
    assert str(big + 1) in repr(found) and f"B has {big}" in repr(found)


def test_floats_that_are_not_tensors_are_within_a_tolerance_or_not(tmp_path):
    a = write(tmp_path / "a", {"x": {"loss": 1.0 + 1e-9}})
    b = write(tmp_path / "b", {"x": {"loss": 1.0}})
    assert repr(marey.diff(a, b)).startswith("Equal within tolerance: largest absolute 1e-09 at step 0, x.loss")
    assert marey.diff(a, b, atol=1e-12).tensors["status"] == ["different"]


def test_equal_statistics_are_not_called_no_difference_without_a_word(tmp_path):
    a = write(tmp_path / "a", {"x": np.float32([1, 2, 3])}, mode="stats")
    found = marey.diff(a, write(tmp_path / "b", {"x": np.float32([3, 2, 1])}, mode="stats"))
    assert found.same
    assert repr(found).splitlines()[0] == "No difference. Only statistics were kept of 1 value."
