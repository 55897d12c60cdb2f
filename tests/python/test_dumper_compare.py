"""TensorDumper: comparison inside a run, against an earlier dump in any format and layout."""

from __future__ import annotations

import warnings

import pytest

import marey

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors.torch")

Type = marey.TensorDumper.Type
NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=["marey", "accvlab"])
def layout(request):
    return request.param


@pytest.fixture
def dumper(folder, layout):
    dumper = marey.TensorDumper(folder, layout=layout)
    yield dumper
    dumper.reset()


def reference(dumper, data, kind=Type.JSON):
    """Dump data as step 0 and go back there."""
    dumper.add_tensor_data("d", data, kind)
    dumper.dump()
    dumper.reset_dump_count()


def compare(dumper, data, kind=Type.JSON, **options):
    dumper.add_tensor_data("d", data, kind)
    dumper.compare_to_dumped_data(**options)


def failure(dumper, data, kind=Type.JSON, **options):
    with pytest.raises(ValueError, match=r"Comparison failed for \[tensors\] of dump 0") as raised:
        compare(dumper, data, kind, **options)
    return str(raised.value)


def test_the_same_is_consistent_and_says_so(dumper, capsys):
    reference(dumper, {"x": torch.tensor([1.0, 2.0]), "s": "text", "n": 3})
    compare(dumper, {"x": torch.tensor([1.0, 2.0]), "s": "text", "n": 3})
    out = capsys.readouterr().out
    assert out.startswith("`TensorDumper`") and "tensors of dump 0 are consistent" in out
    assert dumper.dump_count == 1


def test_a_difference_is_reported_with_its_place_and_both_values(dumper):
    reference(dumper, {"x": torch.zeros(2, 3)})
    other = torch.zeros(2, 3)
    other[1, 2] = 0.5
    text = failure(dumper, {"x": other})
    assert "d.x[1,2]" in text
    assert "reference:  0" in text and "current:    0.5" in text and "difference: 0.5" in text


def test_the_tolerance_is_absolute_and_equal_to_it_passes(dumper):
    reference(dumper, {"x": torch.tensor([1.0], dtype=torch.float64)})
    compare(dumper, {"x": torch.tensor([1.25], dtype=torch.float64)}, eps_numerical_data=0.25)
    dumper.reset_dump_count()
    failure(dumper, {"x": torch.tensor([1.25], dtype=torch.float64)}, eps_numerical_data=0.2499)


def test_the_largest_errors_of_each_tensor_are_shown(dumper):
    reference(dumper, {"x": torch.zeros(5), "y": torch.zeros(2)})
    data = {"x": torch.tensor([1.0, 5.0, 2.0, 0.0, 4.0]), "y": torch.tensor([7.0, 8.0])}
    text = failure(dumper, data, num_errors_per_tensor_to_show=2)
    assert [line.strip() for line in text.splitlines() if line.startswith("  d")] == [
        "d.x[1]",
        "d.x[4]",
        "d.y[1]",
        "d.y[0]",
    ]
    assert "at most 2 errors" in text


def test_missing_and_extra_names(dumper):
    reference(dumper, {"a": torch.ones(1), "b": torch.ones(1)})
    text = failure(dumper, {"a": torch.ones(1), "c": torch.ones(1)})
    assert "d.b" in text and "d.c" in text
    dumper.reset_dump_count()
    text = failure(dumper, {"a": torch.ones(1), "c": torch.ones(1)}, allow_missing_data_in_current=True)
    assert "d.b" not in text and "d.c" in text
    dumper.reset_dump_count()
    text = failure(dumper, {"a": torch.ones(1), "c": torch.ones(1)}, allow_missing_data_in_previous=True)
    assert "d.b" in text and "d.c" not in text
    dumper.reset_dump_count()
    allowed = {"allow_missing_data_in_current": True, "allow_missing_data_in_previous": True}
    compare(dumper, {"a": torch.ones(1), "c": torch.ones(1)}, **allowed)


def test_shapes_that_differ_are_reported(dumper):
    reference(dumper, {"x": torch.ones(3)})
    assert "d.x" in failure(dumper, {"x": torch.ones(4)})


def test_as_a_warning(dumper):
    reference(dumper, {"x": torch.ones(1)})
    with pytest.warns(UserWarning, match="Comparison failed"):
        compare(dumper, {"x": torch.zeros(1)}, as_warning=True)
    assert dumper.dump_count == 1


def test_a_reference_that_is_not_there_is_reported_also_as_a_warning(dumper, folder):
    with pytest.raises(FileNotFoundError, match=str(folder)):
        compare(dumper, {"x": torch.ones(1)}, as_warning=True)
    reference(dumper, {"x": torch.ones(1)})
    dumper.set_dump_count(7)
    with pytest.raises(FileNotFoundError, match="7"):
        compare(dumper, {"x": torch.ones(1)}, as_warning=True)


def test_the_count_moves_and_data_is_forgotten_whatever_the_outcome(dumper):
    reference(dumper, {"x": torch.ones(1)})
    seen = []
    dumper.perform_after_dump_count(1, lambda: seen.append(dumper.dump_count))
    failure(dumper, {"x": torch.zeros(1)})
    assert dumper.dump_count == 1 and seen == [1]
    dumper.add_tensor_data("d", torch.ones(1))  # the path is free again


def test_an_empty_comparison_counts_unless_told_otherwise(dumper):
    dumper.dump()
    dumper.reset_dump_count()
    dumper.compare_to_dumped_data(compare_if_empty=False)
    assert dumper.dump_count == 0
    dumper.compare_to_dumped_data()
    assert dumper.dump_count == 1


def test_dump_can_be_made_to_compare(dumper, capsys):
    reference(dumper, {"x": torch.ones(1)})
    dumper.set_dump_is_compare(eps_numerical_data=0.5)
    dumper.add_tensor_data("d", {"x": torch.full((1,), 1.25)}, Type.JSON)
    dumper.dump()
    assert "consistent" in capsys.readouterr().out
    dumper.reset_dump_count()
    dumper.add_tensor_data("d", {"x": torch.full((1,), 2.0)}, Type.JSON)
    with pytest.raises(ValueError, match="Comparison failed"):
        dumper.dump()


def test_gradients_are_compared_as_well_and_both_are_reported(dumper):
    def add(factor):
        x = torch.ones(1, requires_grad=True)
        dumper.add_tensor_data("t", torch.full((1,), factor), Type.JSON)
        dumper.add_grad_data("g", x, Type.JSON)
        dumper.set_gradients((factor * x).sum())

    add(1.0)
    dumper.dump()
    dumper.reset_dump_count()
    add(2.0)
    with pytest.raises(ValueError, match=r"\[tensors\]") as raised:
        dumper.compare_to_dumped_data()
    assert "[grads]" in str(raised.value)
    dumper.reset_dump_count()
    add(2.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dumper.compare_to_dumped_data(as_warning=True)
    assert len(caught) == 2


def test_the_program_of_two_passes(dumper, capsys):
    """Forms are forced to JSON, and the structure differs: as the model's example does it."""
    for i in range(2):
        torch.manual_seed(i)
        tensor1, tensor2, tensor3 = (torch.randn(10, 10) for _ in range(3))
        dumper.add_tensor_data("tensor1", tensor1, Type.JSON, None)
        others = {"tensor2": tensor2, "tensor3" if i == 0 else "tensor4": tensor3}
        dumper.add_tensor_data("other_tensors", others, Type.BINARY, None)
        tensor1.requires_grad = True
        dumper.add_grad_data("tensor1", tensor1, Type.JSON, None)
        dumper.set_dump_type_for_all(Type.JSON)
        dumper.set_gradients([torch.sin(tensor1).sum()])
        if i == 0:
            dumper.dump()
        else:
            with pytest.warns(UserWarning, match="Comparison failed") as caught:
                dumper.compare_to_dumped_data(num_errors_per_tensor_to_show=3, as_warning=True)
        dumper.reset_dump_count()
    tensors, grads = (str(warning.message) for warning in caught)
    assert tensors.count("tensor1[") == 3 and tensors.count("other_tensors.tensor2[") == 3
    assert "other_tensors.tensor3" in tensors and "other_tensors.tensor4" in tensors
    assert grads.count("tensor1[") == 3


# ---- any format ----


@pytest.mark.parametrize("kind", [None, Type.JSON, Type.BINARY, Type.NPY, Type.SAFETENSORS], ids=str)
def test_every_form_can_be_compared(dumper, kind):
    data = torch.linspace(-1, 1, 12).reshape(3, 4)
    reference(dumper, {"x": data}, kind)
    compare(dumper, {"x": data}, kind)
    other = data.clone()
    other[2, 1] += 0.5
    dumper.reset_dump_count()
    assert "d.x[2,1]" in failure(dumper, {"x": other}, kind)


def test_pictures_and_pickles_are_compared_too(dumper):
    picture = torch.rand(4, 4, 3)
    # Pickles are compared by their bytes, and torch's have the address of the numbers in them.
    for kind, data in ((Type.IMAGE_RGB, picture), (Type.PICKLE, picture.numpy())):
        dumper.set_dump_count(int(kind))
        dumper.add_tensor_data("d", data, kind)
        dumper.dump()
        dumper.set_dump_count(int(kind))
        dumper.add_tensor_data("d", data, kind)
        dumper.compare_to_dumped_data(eps_numerical_data=0.01)


def test_the_reference_may_be_elsewhere_and_in_the_other_layout(tmp_path, layout):
    first = marey.TensorDumper(tmp_path / "first", layout=layout)
    reference(first, {"x": torch.arange(4.0), "l": [1, 2], "s": "text"})
    first.disable()
    second = marey.TensorDumper(tmp_path / "second", layout="marey" if layout == "accvlab" else "accvlab")
    compare(second, {"x": torch.arange(4.0), "l": [1, 2], "s": "text"}, reference=tmp_path / "first")
    second.reset_dump_count()
    text = failure(second, {"x": torch.ones(4), "l": [1, 3], "s": "other"}, reference=tmp_path / "first")
    assert "d.x[" in text and "d.l[1]" in text and "d.s" in text
    second.reset()
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.bool, torch.complex64], ids=str
)
def test_every_type_can_be_compared(dumper, dtype):
    data = torch.tensor([1, 0, 1]).to(dtype)
    reference(dumper, {"x": data}, Type.BINARY)
    compare(dumper, {"x": data}, Type.BINARY)
    dumper.reset_dump_count()
    assert "d.x[1]" in failure(dumper, {"x": torch.tensor([1, 1, 1]).to(dtype)}, Type.BINARY)


# ---- what went wrong in the model ----


@pytest.mark.parametrize(("before", "now"), [(1.0, NAN), (NAN, 1.0), (INF, -INF), (1.0, INF)])
def test_nan_and_infinities_are_mismatches(dumper, before, now):
    reference(dumper, {"x": torch.tensor([before, 2.0])})
    assert "d.x[0]" in failure(dumper, {"x": torch.tensor([now, 2.0])})


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_nan_and_infinities_equal_themselves(dumper, value):
    reference(dumper, {"x": torch.tensor([value])})
    compare(dumper, {"x": torch.tensor([value])})


def test_texts_are_compared(dumper):
    reference(dumper, {"s": "a", "same": "b"})
    text = failure(dumper, {"s": "c", "same": "b"})
    assert "d.s" in text and "d.same" not in text


def test_the_note_that_there_is_no_gradient_is_compared(dumper, capsys):
    for i in range(2):
        dumper.add_grad_data("g", {"x": torch.ones(1)}, Type.JSON)
        dumper.set_gradients(torch.ones((), requires_grad=True))
        if i == 0:
            dumper.dump()
            dumper.reset_dump_count()
        else:
            dumper.compare_to_dumped_data()
    assert capsys.readouterr().out.count("consistent") == 2


@pytest.mark.parametrize(
    ("before", "now"),
    [([1, 2], 3), ({"k": 1}, [1]), ({"k": 1}, 2), (torch.ones(2), "text"), ("text", {"k": 1})],
    ids=str,
)
def test_a_change_of_kind_is_a_mismatch(dumper, before, now):
    reference(dumper, {"x": before, "same": torch.ones(1)})
    assert "d.x" in failure(dumper, {"x": now, "same": torch.ones(1)})


def test_what_is_allowed_to_be_new_is_passed_on_to_dump(dumper):
    reference(dumper, {"a": torch.ones(1)})
    dumper.set_dump_is_compare(allow_missing_data_in_previous=True)
    dumper.add_tensor_data("d", {"a": torch.ones(1), "new": torch.ones(1)}, Type.JSON)
    dumper.dump()
    assert dumper.dump_count == 1


def test_keys_with_colons_and_numbers_are_reported_as_they_are(dumper):
    reference(dumper, {"a:b": torch.ones(1), 7: torch.ones(1)})
    text = failure(dumper, {"a:b": torch.zeros(1), 7: torch.zeros(1)})
    assert "d.a:b[0]" in text and "d.7[0]" in text


EXIT = """
    import sys
    import marey, torch

    def run(value):
        dumper.add_tensor_data("x", torch.full((1,), value), marey.TensorDumper.Type.JSON)
        dumper.{call}

    dumper = marey.TensorDumper("d")
    run(1.0) if "{call}" == "dump()" else (dumper.add_tensor_data("x", torch.ones(1)), dumper.dump())
    dumper.reset_dump_count()
    dumper.perform_after_dump_count(1, {action})
    dumper.set_dump_is_compare()
    run({value})
    print("went on")
"""


@pytest.mark.parametrize(("action", "call"), [("exit", "dump()"), ("lambda: sys.exit(0)", "compare_to_dumped_data()")])
def test_an_exit_cannot_hide_a_mismatch(run_python, action, call):
    done = run_python(EXIT.format(action=action, call=call, value=2.0), check=False)
    assert done.returncode == 1
    assert "Comparison failed" in done.stderr
    done = run_python(EXIT.format(action=action, call=call, value=1.0), check=False)
    assert done.returncode == 0
    assert "went on" not in done.stdout


# ---- types ----


def test_a_change_of_dtype_is_named_in_the_first_line_unless_it_is_allowed(folder):
    dumper = marey.TensorDumper(folder)
    x = torch.tensor([128.49, 2.0])
    try:
        reference(dumper, {"x": x}, Type.NPY)
        text = failure(dumper, {"x": x.bfloat16()}, Type.NPY, eps_numerical_data=1.0)
        assert text.splitlines()[0].endswith("The dtype of d.x differs: float32 in the dump, bfloat16 now.")
        dumper.reset_dump_count()
        compare(dumper, {"x": x.bfloat16()}, Type.NPY, eps_numerical_data=1.0, allow_dtype=True)
        dumper.reset_dump_count()
        text = failure(dumper, {"x": x.bfloat16()}, Type.NPY, eps_numerical_data=1e-6, allow_dtype=True)
        assert "difference: -0.49" in text and "d.x[0]" in text and "d.x[1]" not in text
        dumper.reset_dump_count()
        dumper.set_dump_is_compare(eps_numerical_data=1.0, allow_dtype=True)
        dumper.add_tensor_data("d", {"x": x.bfloat16()}, Type.NPY)
        dumper.dump()
    finally:
        dumper.reset()


def test_differences_of_large_integers_are_exact(dumper):
    reference(dumper, {"x": torch.tensor([2**53]), "n": 2**64 - 1})
    text = failure(dumper, {"x": torch.tensor([2**53 + 1]), "n": 2**64 - 2})
    assert "difference: 1\n" in text + "\n" and "difference: -1\n" in text + "\n"


def test_differences_of_complex_numbers_have_two_parts(dumper, layout):
    if layout == "accvlab":
        pytest.skip("its JSON has no complex numbers")
    reference(dumper, {"x": torch.tensor([1 + 2j])})
    assert "difference: (0,1)" in failure(dumper, {"x": torch.tensor([1 + 3j])})


def test_a_json_that_was_written_shortened_or_not_is_equal_with_eps_0(dumper):
    x = torch.tensor([0.1, 1e5 + 0.3, 3.0])
    reference(dumper, {"x": x})
    compare(dumper, {"x": x}, eps_numerical_data=0)
    dumper.reset_dump_count()
    failure(dumper, {"x": x + torch.tensor([1e-8, 0, 0])}, eps_numerical_data=0)
