"""marey diff: statuses, the first difference, tolerances, formats that mix, ranks, what is said about wrong input.

The files are written by numpy, safetensors, Pillow and json, as others write them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

NAN, INF = float("nan"), float("inf")


def tree(folder: Path, *steps: dict, rank: int | None = None) -> Path:
    """A dump as ACCV-Lab's TensorDumper lays it out."""
    for number, step in enumerate(steps):
        place = folder / str(number) if rank is None else folder / f"rank-{rank}" / str(number)
        place.mkdir(parents=True)
        (place / "tensors.json").write_text(json.dumps(step, indent=2))
    return folder


@pytest.fixture
def pair(tmp_path):
    """Save two arrays; their paths."""

    def save(a, b):
        np.save(tmp_path / "a.npy", np.asarray(a))
        np.save(tmp_path / "b.npy", np.asarray(b))
        return tmp_path / "a.npy", tmp_path / "b.npy"

    return save


@pytest.fixture
def diff(marey):
    """Run `marey diff --json`: its status and the object."""

    def run(*args, status=None):
        done = marey("diff", *args, "--json")
        assert done.returncode in (0, 1), done.stderr
        found = json.loads(done.stdout)
        assert found["same"] == (done.returncode == 0)
        if status is not None:
            assert [tensor["status"] for tensor in found["tensors"]] == status
        return found

    return run


# ---- the result ----


def test_the_first_difference_is_named_to_the_bit(marey, tmp_path, expected):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    b = a.copy()
    b[1, 2] = np.nextafter(b[1, 2], 7)
    b[2, 0] = 9
    save_file({"layer0.in": a, "layer0.out": b, "other": a}, tmp_path / "new.safetensors")
    save_file({"layer0.in": a, "layer0.out": a, "other": a}, tmp_path / "old.safetensors")
    done = marey("diff", "new.safetensors", "old.safetensors", "--bitwise")
    assert (done.returncode, done.stderr) == (1, "")
    expected("diff-first", done.stdout)


def test_equal_dumps_say_so_and_exit_with_0(marey, tmp_path, expected):
    tree(tmp_path / "a", {"x": [1.0, 2.0]}, {"x": [3.0]})
    done = marey("diff", "a", "a")
    assert (done.returncode, done.stderr) == (0, "")
    expected("diff-same", done.stdout)


def test_the_object_has_what_is_promised(diff, tmp_path):
    tree(tmp_path / "a", {"x": [1.0]}, {"deep": {"x": [[1.0, 2.0], [3.0, 4.5]]}})
    tree(tmp_path / "b", {"x": [1.0]}, {"deep": {"x": [[1.0, 2.0], [3.0, 4.0]]}})
    found = diff("a", "b", status=["same", "different"])
    first = found["first"]
    assert {key: first[key] for key in ("step", "path", "index", "a", "b")} == {
        "step": 1,
        "path": "deep.x",
        "index": [1, 1],
        "a": 4.5,
        "b": 4,
    }
    assert first["bits_a"] == "0x" + struct.pack(">d", 4.5).hex()
    row = found["tensors"][1]
    assert (row["n_wrong"], row["max_abs"], row["max_rel"], row["max_ulp"]) == (1, 0.5, 0.125, 2**49)
    assert row["max_abs_index"] == "[1,1]" and (row["max_abs_a"], row["max_abs_b"]) == ("4.5", "4")
    assert row["share_wrong"] == 0.25 and row["needs_abs"] == 0.5
    assert row["needs_rel"] == pytest.approx(0.125)
    assert row["mean_abs"] == 0.125 and row["rmse"] == 0.25
    assert row["cosine"] == pytest.approx(32 / np.sqrt(30 * 34.25))
    assert row["snr_db"] == pytest.approx(10 * np.log10(30 / 0.25))


def test_csv_has_a_row_for_each_value(marey, tmp_path):
    tree(tmp_path / "a", {"x": [1.0], "y": [2.0]})
    done = marey("diff", "a", "a", "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["path"], row["status"]) for row in rows] == [("x", "same"), ("y", "same")]


def test_other_tables_and_markdown(marey, tmp_path):
    tree(tmp_path / "a", {"x": [1.0]}, {"x": [2.0]})
    tree(tmp_path / "b", {"x": [1.0]}, {"x": [3.0]})
    done = marey("diff", "a", "b", "--csv=steps")
    assert done.returncode == 1
    assert [(row["step"], row["different"]) for row in csv.DictReader(io.StringIO(done.stdout))] == [
        ("0", "0"),
        ("1", "1"),
    ]
    assert "## first\n" in marey("diff", "a", "b", "--markdown").stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--noise-factor", "2"), "noise-factor goes with noise"),
        (("--partial", "x"), "partial goes with merge-ranks"),
        (("-t", "x=1,2,3,4"), "tolerance takes PATTERN=ATOL,RTOL,ULP"),
        (("--json", "--csv"), "exclude one another"),
        (("--ranks",), "takes one dump"),
    ],
)
def test_options_that_do_not_fit_are_refused(marey, options, sentence):
    assert sentence in refused(marey("diff", "a", "b", *options))


def test_the_answer_goes_to_a_file_and_the_status_stays(marey, pair, tmp_path):
    a, b = pair([1.0], [2.0])
    done = marey("diff", a, b, "--json", "-o", "out.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads((tmp_path / "out.json").read_text())["same"] is False


def test_steps_come_before_anything_else_in_order(diff, tmp_path):
    tree(tmp_path / "a", {"z": [1.0]}, {"a": [1.0]})
    tree(tmp_path / "b", {"z": [2.0]}, {"a": [2.0]})
    assert diff("a", "b")["first"]["path"] == "z"


def test_an_operation_is_blamed_when_its_inputs_agree(diff, tmp_path):
    def run(folder, scale):
        x = [1.0, 2.0]
        y = [v * scale for v in x]
        z = [v + 1 for v in y]
        return tree(tmp_path / folder, {"mul": {"in": x, "out": y}, "add": {"in": y, "out": z}})

    run("a", 3.0)
    run("b", 2.0)
    found = diff("a", "b")
    assert found["operation"]["operation"] == "mul"
    assert found["operation"]["error_out"] == pytest.approx(0.5)
    assert [row["operation"] for row in found["operations"]] == ["mul"]


# ---- the correctness gate ----

GATE = {
    "nan-against-number": ([NAN, 1.0], [0.0, 1.0], 1, "different"),
    "nan-at-the-same-place": ([NAN, 1.0], [NAN, 1.0], 0, "same"),
    "nan-elsewhere": ([NAN, 1.0], [1.0, NAN], 2, "different"),
    "infinities": ([INF], [-INF], 1, "different"),
    "equal-infinities": ([INF, -INF], [INF, -INF], 0, "same"),
    "infinity-against-number": ([INF], [1e30], 1, "different"),
    "zeroes": ([-0.0], [0.0], 0, "same"),
    "rows-swapped": ([[1.0, 2.0], [3.0, 4.0]], [[3.0, 4.0], [1.0, 2.0]], 4, "different"),
    "one-sign": ([1.0, -2.0, 3.0], [1.0, 2.0, 3.0], 1, "different"),
    "close": ([1.0 + 1e-12], [1.0], 0, "close"),
    "a-scalar": (1.5, 1.0, 1, "different"),
    "an-empty-one": (np.zeros((0, 3)), np.zeros((0, 3)), 0, "same"),
    "booleans": (np.array([True, False]), np.array([True, True]), 1, "different"),
    "past-2-53": (np.array([2**53 + 1]), np.array([2**53]), 1, "different"),
    "unsigned": (np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64), 1, "different"),
    "complex64": (np.array([1 + 2j], np.complex64), np.array([1 - 2j], np.complex64), 1, "different"),
    "complex128": (np.array([1 + 2j]), np.array([1 + 2j]), 0, "same"),
    "half": (np.array([1.0], np.float16), np.array([1.01], np.float16), 1, "different"),
}


@pytest.mark.parametrize("case", GATE)
def test_each_kind_of_difference_is_found(diff, pair, case):
    a, b, n_wrong, status = GATE[case]
    found = diff(*pair(a, b), status=[status])
    assert found["tensors"][0]["n_wrong"] == n_wrong


def test_zeroes_of_two_signs_differ_bitwise(diff, pair):
    found = diff(*pair(np.float32([-0.0]), np.float32([0.0])), "--bitwise", status=["different"])
    assert (found["first"]["bits_a"], found["first"]["bits_b"]) == ("0x80000000", "0x00000000")


def test_nans_differ_when_asked(diff, pair):
    diff(*pair([NAN], [NAN]), "--no-nan-equal", status=["different"])


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
)
def test_narrow_floats_are_distinguished_by_one_bit(diff, tmp_path, name):
    codes = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e8m0fnu": "F8_E8M0"}
    code = codes.get(name, "F8_" + name[len("float8_") :].upper())
    a = np.array([1, 2, 4], getattr(ml_dtypes, name))
    bits = a.view(np.uint16 if name == "bfloat16" else np.uint8).copy()
    bits[1] += 1
    for path, data in (("a", bits.tobytes()), ("b", a.tobytes())):
        header = json.dumps({"x": {"dtype": code, "shape": [3], "data_offsets": [0, len(data)]}}).encode()
        (tmp_path / f"{path}.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    found = diff("a.safetensors", "b.safetensors", "--bitwise", status=["different"])
    assert found["tensors"][0]["dtype_a"] == name
    assert found["tensors"][0]["max_ulp"] == 1
    assert found["first"]["index"] == [1]
    diff("a.safetensors", "b.safetensors", "--ulp", "1", status=["close"])


def bf16(tmp_path, name, values):
    """A safetensors file with one bfloat16 tensor x."""
    data = np.asarray(values, ml_dtypes.bfloat16)
    header = json.dumps({"x": {"dtype": "BF16", "shape": list(data.shape), "data_offsets": [0, data.nbytes]}}).encode()
    (tmp_path / name).write_bytes(struct.pack("<Q", len(header)) + header + data.tobytes())


def test_another_dtype_is_named_in_the_first_line_and_differs_unless_allowed(marey, diff, tmp_path):
    x = np.array([128.49, 2.0], np.float32)
    save_file({"x": x}, tmp_path / "wide.safetensors")
    bf16(tmp_path, "narrow.safetensors", x)
    done = marey("diff", "narrow.safetensors", "wide.safetensors")
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    assert first == "A and B differ first at step 0, x, in its dtype (bfloat16 in A, float32 in B)."
    row = diff("narrow.safetensors", "wide.safetensors", status=["dtype"])["tensors"][0]
    assert row["max_abs"] == pytest.approx(0.49, rel=1e-4) and row["max_ulp"] > 0
    # The numbers are compared exactly, with any options.
    done = marey("diff", "narrow.safetensors", "wide.safetensors", "--allow-dtype")
    assert done.returncode == 0
    first = done.stdout.splitlines()[0]
    assert first.startswith("Equal within tolerance: largest absolute 0.49 at step 0, x[0], relative 0.00381 ")
    assert first.endswith("The dtype of 1 value differs, first of x: bfloat16 in A, float32 in B.")
    for option in (("--atol", "1e-6"), ("--ulp", "0")):
        found = diff("narrow.safetensors", "wide.safetensors", "--allow-dtype", *option, status=["different"])
        assert found["first"]["index"] == [0] and found["tensors"][0]["n_wrong"] == 1
        assert (found["first"]["dtype_a"], found["first"]["dtype_b"]) == ("bfloat16", "float32")
        assert "(bfloat16 in A, float32 in B)" in found["summary"]


def test_equal_numbers_of_two_dtypes_are_no_silent_match(diff, tmp_path):
    save_file({"x": np.float32([1.5])}, tmp_path / "wide.safetensors")
    bf16(tmp_path, "narrow.safetensors", [1.5])
    assert diff("wide.safetensors", "narrow.safetensors", status=["dtype"])["same"] is False
    found = diff("wide.safetensors", "narrow.safetensors", "--allow-dtype", status=["same"])
    assert found["summary"].startswith("No difference. The dtype of 1 value differs")


def test_bits_of_two_dtypes_are_not_compared(marey, tmp_path):
    save_file({"x": np.float32([1.5])}, tmp_path / "wide.safetensors")
    bf16(tmp_path, "narrow.safetensors", [1.5])
    done = marey("diff", "wide.safetensors", "narrow.safetensors", "--bitwise")
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    assert "in its dtype (float32 in A, bfloat16 in B)" in first and "no bits in common to compare" in first
    done = marey("diff", "wide.safetensors", "narrow.safetensors", "--bitwise", "--allow-dtype")
    assert done.returncode == 2 and "exclude one another" in done.stderr


def test_what_is_within_the_tolerance_is_not_called_equal(marey, pair):
    done = marey("diff", *pair([1.0 + 1e-12, 3.0], [1.0, 3.0]))
    assert done.returncode == 0
    assert done.stdout.startswith("Equal within tolerance: largest absolute 1e-12 at step 0, data[0], relative 1e-12 ")
    assert "No difference" not in done.stdout


def test_a_reference_of_zero_is_no_relative_difference_of_zero(marey, diff, pair):
    a, b = pair([1.0, 1e-9], [1.0, 0.0])
    row = diff(a, b)["tensors"][0]
    assert (row["max_rel_index"], row["max_rel_a"], row["max_rel_b"]) == ("[1]", "1e-09", "0")
    assert "inf" in marey("diff", a, b, "--all").stdout
    rows = list(csv.DictReader(io.StringIO(marey("diff", a, b, "--csv").stdout)))
    assert rows[0]["max_rel"] == "inf"


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [
        (np.array([2**53 + 1]), np.array([2**53]), 1),
        (np.array([-(2**53) - 1]), np.array([-(2**53)]), -1),
        (np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64), 1),
        (np.array([2**63], np.uint64), np.array([2**63 - 1], np.int64), 1),
        (np.array([2**53 + 1]), np.array([2.0**53]), 1),
        (np.array([2.0**53]), np.array([2**53 + 1], np.uint64), -1),
        (np.array([2**24 + 1], np.int32), np.array([2.0**24], np.float32), 1),
        (np.array([0.1]), np.array([0.1], np.float32), 0.1 - float(np.float32(0.1))),
        (np.array([True]), np.array([1.25], np.float16), -0.25),
    ],
)
def test_differences_are_exact_for_any_two_dtypes(diff, pair, a, b, difference):
    allowed = ["--allow-dtype"] if a.dtype != b.dtype else []
    found = diff(*pair(a, b), *allowed, "--atol", "0", status=["different"])
    assert found["first"]["difference"] == difference
    assert found["tensors"][0]["max_abs"] == pytest.approx(abs(difference))
    assert found["tensors"][0]["max_ulp"] >= 1


def test_a_json_without_dtypes_is_no_change_of_dtype(diff, tmp_path):
    """Its floats may be shortened to what reads back; any other number is compared as it is."""
    nearest = np.float32(7.038531e-26)  # of two float32, the float64 of this text is in the middle
    odd = next(v for v in (nearest, np.nextafter(nearest, np.float32(0)), np.nextafter(nearest, np.float32(1)))
               if str(v) == "7.038531e-26")  # fmt: skip
    x = np.float32([0.1, 1e5 + 0.3, odd, 3])
    save_file({"x": x}, tmp_path / "x.safetensors")
    (tmp_path / "short.json").write_text('{"x": [' + ", ".join(str(v) for v in x) + "]}")
    (tmp_path / "exact.json").write_text(json.dumps({"x": x.tolist()}))
    (tmp_path / "other.json").write_text(json.dumps({"x": [0.1 + 1e-12, *x.tolist()[1:]]}))
    diff("x.safetensors", "exact.json", "--atol", "0", status=["same"])
    diff("short.json", "x.safetensors", "--atol", "0", status=["same"])
    found = diff("x.safetensors", "other.json", "--atol", "0", status=["different"])
    assert found["first"]["index"] == [0] and found["tensors"][0]["n_wrong"] == 1


def test_integers_of_a_manifest_are_compared_as_integers(diff, tmp_path):
    big = {"a": 2**53 + 1, "b": 10**9 + 1, "c": 2**64 + 1, "d": 2**63 + 1}
    less = {key: value - 1 for key, value in big.items()}
    tree(tmp_path / "a", big)
    tree(tmp_path / "b", less)
    found = diff("a", "b", "--atol", "0")
    assert found["same"] is False and found["counts"]["different"] >= 3


def test_texts_that_differ_are_shown(marey, diff, tmp_path):
    long = "word " * 60
    tree(tmp_path / "a", {"first": long + "here", "name": "adam", "none": ""})
    tree(tmp_path / "b", {"first": long + "there", "name": "sgd", "none": "x"})
    done = marey("diff", "a", "b")
    assert done.returncode == 1
    assert "word here, B has " in done.stdout.splitlines()[0] and "word there" in done.stdout.splitlines()[0]
    assert "adam" in done.stdout and "sgd" in done.stdout and '""' in done.stdout
    rows = diff("a", "b")["tensors"]
    assert (rows[1]["value_a"], rows[1]["value_b"]) == ("adam", "sgd")
    assert rows[0]["value_a"].endswith("word here") and rows[0]["value_b"].endswith("word there")


def test_another_shape_differs(diff, pair):
    found = diff(*pair(np.zeros((2, 3)), np.zeros((3, 2))), status=["shape"])
    assert (found["first"]["a"], found["first"]["b"]) == ("[2,3]", "[3,2]")


def test_missing_and_extra_names_differ_unless_allowed(diff, tmp_path):
    tree(tmp_path / "a", {"both": [1.0], "tensor3": [1.0]})
    tree(tmp_path / "b", {"both": [1.0], "tensor4": [1.0]})
    found = diff("a", "b", status=["same", "extra", "missing"])
    assert found["first"]["path"] == "tensor3"
    diff("a", "b", "--allow-extra")
    assert diff("a", "b", "--allow-extra", "--allow-missing")["same"]


def test_texts_and_numbers_are_compared_and_kinds_told(diff, tmp_path):
    tree(tmp_path / "a", {"name": "x", "epoch": 3, "kind": "text", "none": None})
    tree(tmp_path / "b", {"name": "y", "epoch": 4, "kind": [1.0], "none": None})
    diff("a", "b", status=["different", "different", "kind", "same"])


def test_runs_of_different_length_are_aligned(diff, tmp_path):
    ops = [("add", 1.0), ("mul", 2.0), ("relu", 3.0), ("sum", 4.0)]
    new = [*ops[:2], ("cast", 2.0), *ops[2:]]
    a = tree(tmp_path / "a", {f"{i}": {op: {"out": [v]}} for i, (op, v) in enumerate(new)})
    b = tree(tmp_path / "b", {f"{i}": {op: {"out": [v]}} for i, (op, v) in enumerate(ops)})
    found = diff(a, b, status=["same", "same", "extra", "same", "same"])
    assert [row["path_b"] for row in found["tensors"]][3:] == ["2.relu.out", "3.sum.out"]
    assert any("paired by their order" in warning for warning in found["warnings"])


# ---- tolerances ----


def test_tolerances_are_given_in_each_way(diff, pair):
    a, b = pair(np.float32([1.0, 2.0]), np.float32([1.001, 2.0]))
    diff(a, b, status=["different"])
    diff(a, b, "--atol", "0.01", status=["close"])
    diff(a, b, "--rtol", "0.01", status=["close"])
    diff(a, b, "--ulp", "10000", status=["close"])
    diff(a, b, "--ulp", "10", status=["different"])


def test_the_least_tolerance_that_passes_passes(diff, pair):
    a, b = pair(np.float32([1.0, 2.5, 3.0]), np.float32([1.001, 2.0, 3.0]))
    row = diff(a, b)["tensors"][0]
    assert diff(a, b, "--atol", repr(row["needs_abs"]))["same"]
    assert diff(a, b, "--rtol", repr(row["needs_rel"]))["same"]
    assert diff(a, b, "--ulp", repr(int(row["needs_ulp"])))["same"]
    assert not diff(a, b, "--atol", repr(row["needs_abs"] * 0.99))["same"]


def test_paths_may_have_tolerances_of_their_own(diff, tmp_path):
    tree(tmp_path / "a", {"w": [1.1], "w_grad": [1.1]})
    tree(tmp_path / "b", {"w": [1.0], "w_grad": [1.0]})
    diff("a", "b", "-t", "*_grad=0.5", status=["different", "close"])
    diff("a", "b", "-t", "*=0.5", "-t", "w=0,0,0", status=["different", "close"])


def test_two_references_tell_the_noise(diff, tmp_path):
    tree(tmp_path / "a", {"loud": [1.02], "quiet": [1.02]})
    tree(tmp_path / "b", {"loud": [1.0], "quiet": [1.0]})
    tree(tmp_path / "b2", {"loud": [1.01], "quiet": [1.0]})
    found = diff("a", "b", "--noise", "b2", status=["noise", "different"])
    assert found["tensors"][0]["noise_abs"] == pytest.approx(0.01)
    diff("a", "b", "--noise", "b2", "--noise-factor", "1", status=["different", "different"])


# ---- formats, selection, ranks ----


def test_formats_mix(diff, tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    save_file({"anything": x}, tmp_path / "x.safetensors")
    (tmp_path / "x.bin").write_bytes(x.tobytes())
    meta = {"file_data_shape": [2, 3], "file_data_dtype": "torch.float32"}
    (tmp_path / "x.bin.meta.json").write_text(json.dumps(meta))
    for other in ("x.safetensors", "x.bin"):
        assert diff("x.npy", other)["same"]


def test_pictures_are_compared_by_pixels(diff, tmp_path):
    from PIL import Image

    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    other = pixels.copy()
    other[2, 1, 0] += 10
    Image.fromarray(pixels).save(tmp_path / "b.png")
    Image.fromarray(other).save(tmp_path / "a.png")
    found = diff("a.png", "b.png", status=["different"])
    assert found["first"]["index"] == [2, 1, 0]
    rmse = 10 / np.sqrt(48)
    assert found["tensors"][0]["psnr_db"] == pytest.approx(20 * np.log10(255 / rmse))


def test_a_step_and_paths_can_be_chosen(diff, tmp_path):
    tree(tmp_path / "a", {"x": [1.0], "y": [1.0]}, {"x": [2.0], "y": [2.0]})
    tree(tmp_path / "b", {"x": [1.0], "y": [9.0]}, {"x": [3.0], "y": [2.0]})
    assert diff("a", "b", "--step", "0", "--filter", "x")["same"]
    assert diff("a", "b", "--step", "1")["first"]["path"] == "x"
    diff("a", "b", "-f", "y", status=["different", "same"])


def test_ranks_are_compared_with_one_another(marey, diff, tmp_path):
    for rank, value in enumerate([1.0, 1.0, 1.5]):
        tree(tmp_path / "all", {"weight": [1.0, value], "batch": [float(rank)]}, rank=rank)
    done = marey("diff", "--ranks", "all", "--filter", "weight", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert (found["first"]["rank"], found["first"]["path"], found["first"]["index"]) == (2, "weight", [1])
    text = marey("diff", "--ranks", "all", "--filter", "weight").stdout
    assert text.startswith("Rank 2 differs from the lowest rank, first at step 0, weight[1]")


def cut(folder: Path, *ranks: dict) -> None:
    for rank, values in enumerate(ranks):
        tree(folder, values, rank=rank)


def test_two_ranks_are_put_together_and_compared_with_one(diff, marey, tmp_path):
    rng = np.random.default_rng(0)
    x, w, v = rng.normal(size=(3, 4)), rng.normal(size=(4, 6)), rng.normal(size=(6, 2))
    whole = {"x": x, "w": w, "v": v, "hidden": x @ w, "out": x @ w @ v}

    def share(rank):
        columns = slice(3 * rank, 3 * rank + 3)
        hidden = x @ w[:, columns]
        return {"x": x, "w": w[:, columns], "v": v[columns], "hidden": hidden, "out": hidden @ v[columns]}

    def listed(values):
        return {name: value.tolist() for name, value in values.items()}

    tree(tmp_path / "one", listed(whole))
    cut(tmp_path / "two", listed(share(0)), listed(share(1)))
    for a, b in (("one", "two"), ("two", "one")):
        found = diff(a, b, "--merge-ranks", "--partial", "out", "--atol", "1e-12")
        assert found["same"], found["summary"]
        assert [row["shape_a"] for row in found["tensors"]] == [row["shape_b"] for row in found["tensors"]]
    found = diff("two", "one", "--merge-ranks", "--atol", "1e-12")
    assert [row["path"] for row in found["tensors"] if row["status"] == "different"] == ["out"]
    other = share(1)
    other["x"] = x + 1  # a copy that is not one
    other["v"] = other["v"] * 2
    cut(tmp_path / "wrong", listed(share(0)), listed(other))
    found = diff("wrong", "one", "--merge-ranks", "--partial", "out", "--atol", "1e-12")
    assert [row["path"] for row in found["tensors"] if row["status"] == "different"] == ["x", "v"]
    assert found["tensors"][2]["first_index"] == "[3,0]"
    refused(marey("diff", "two", "wrong", "--merge-ranks"))


def test_one_rank_of_two_dumps(diff, tmp_path):
    for folder, second in (("a", 2.0), ("b", 3.0)):
        tree(tmp_path / folder, {"x": [1.0]}, rank=0)
        tree(tmp_path / folder, {"x": [second]}, rank=1)
    assert diff("a", "b", "--rank", "0")["same"]
    assert diff("a", "b")["first"]["rank"] == 1


# ---- what cannot be compared ----


def refused(done) -> str:
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("marey: ") and done.stderr.count("\n") == 1
    return done.stderr


def test_what_is_not_there_or_no_dump_is_refused_in_a_sentence(marey, tmp_path):
    tree(tmp_path / "good", {"x": [1.0]})
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
    (tmp_path / "huge.safetensors").write_bytes(struct.pack("<Q", 2**63) + b"{}")
    (tmp_path / "none.bin").write_bytes(b"1234")
    for other in ("nothing", "empty", "broken.npy", "huge.safetensors"):
        assert other in refused(marey("diff", "good", other))
        assert other in refused(marey("diff", other, "good"))
    refused(marey("diff", "good", "good", "--step", "7"))
    refused(marey("diff", "--ranks", "good"))
    refused(marey("diff", "good", "good", "--noise", "nothing"))


def test_dumps_without_a_common_step_are_refused(marey, tmp_path):
    for folder, steps in (("a", (0, 1)), ("b", (2, 3))):
        for step in steps:
            (tmp_path / folder / str(step)).mkdir(parents=True)
            (tmp_path / folder / str(step) / "tensors.json").write_text('{"x": [1.0]}')
    assert "no step is both in a and in b" in refused(marey("diff", "a", "b"))


def test_a_directory_that_may_not_be_read_is_refused(marey, tmp_path):
    import os

    if os.geteuid() == 0:
        (tmp_path / "locked").write_text("")  # root can read everything, so use a file, which is not a dump either
    else:
        (tmp_path / "locked").mkdir(mode=0)
    refused(marey("diff", "locked", "locked"))


def test_what_was_dropped_leaves_the_answer_open(marey, tmp_path):
    lines = [
        {"marey_dump": 1, "step": 0, "rank": None, "mode": "full", "data_start": 4096, "reason": None},
        {"seq": 0, "tree": "tensors", "path": ["x"], "name": "x", "type": "container", "dtype": "float32", "shape": [2]}
        | {"missing": "dropped"},
        {"seq": 1, "tree": "tensors", "path": ["n"], "name": "n", "value": 3},
        {"end": True, "tensors": 0, "values": 2, "bytes": 0},
    ]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "step-00000000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = marey("diff", "d", "d")
    assert done.returncode == 2
    assert done.stdout.startswith("No difference among what could be compared.\n")
    assert "x of step 0 could not be compared: dropped" in done.stdout
    assert done.stderr == "marey: some values could not be compared, so the result is incomplete\n"


def test_a_truncated_file_leaves_the_answer_open_even_if_others_differ(marey, tmp_path):
    for folder, value in (("a", 3), ("b", 4)):
        lines = [
            {"marey_dump": 1, "step": 0, "rank": None, "mode": "full", "data_start": 4096, "reason": None},
            {"seq": 0, "tree": "tensors", "path": ["x"], "name": "x", "type": "container", "dtype": "float32"}
            | {"shape": [2048], "offset": 0, "bytes": 8192},
            {"seq": 1, "tree": "tensors", "path": ["n"], "name": "n", "value": value},
            {"end": True, "tensors": 1, "values": 2, "bytes": 8192},
        ]
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "step-00000000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        head = json.dumps({"x": {"dtype": "F32", "shape": [2048], "data_offsets": [0, 8192]}}).encode().ljust(4088)
        data = struct.pack("<Q", len(head)) + head + bytes(8192)
        (tmp_path / folder / "step-00000000.safetensors").write_bytes(data[: len(data) if folder == "a" else 5000])
    done = marey("diff", "a", "b")
    assert done.returncode == 2, done.stdout
    assert "n of step 0" in done.stdout or "step 0, n: A has 3, B has 4" in done.stdout
    assert done.stderr == "marey: some values could not be compared, so the result is incomplete\n"


def test_names_of_any_sort_come_out_whole(marey, tmp_path):
    names = ['a"b', "new\nline", "\x1b[31m", "ü😀", "a.b", "x[1]", "", "<script>", "../../up"]
    tree(tmp_path / "a", {"d": {name: [1.0] for name in names}})
    tree(tmp_path / "b", {"d": {name: [2.0] for name in names}})
    found = json.loads(marey("diff", "a", "b", "--json").stdout)
    assert len({row["path"] for row in found["tensors"]}) == len(names)
    assert all(row["status"] == "different" for row in found["tensors"])
    assert "\x1b" not in marey("diff", "a", "b").stdout


# ---- files that change while they are read ----


def uses(process, path):
    """Whether a process has a file open, or mapped."""
    place = Path(f"/proc/{process.pid}")
    try:
        return (
            any(os.readlink(fd) == str(path) for fd in (place / "fd").iterdir())
            or str(path) in (place / "maps").read_text()
        )
    except OSError:
        return False


@pytest.mark.parametrize("name", ["x.npy", "x.safetensors", "x.bin"])
def test_a_file_that_is_truncated_while_it_is_read_is_reported(program, tmp_path, name):
    """Both files are holes of 1.5 GB, so that it is stopped in the middle."""
    n = 3 << 27
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / name
        if name == "x.npy":
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (n,)})
            path.write_bytes(header.getvalue())
        elif name == "x.safetensors":
            header = json.dumps({"x": {"dtype": "F32", "shape": [n], "data_offsets": [0, 4 * n]}}).encode()
            path.write_bytes(struct.pack("<Q", len(header)) + header)
        else:
            path.write_bytes(b"")
            about = {"file_data_shape": [n], "file_data_dtype": "float32"}
            path.with_name(name + ".meta.json").write_text(json.dumps(about))
        os.truncate(path, path.stat().st_size + 4 * n)
    victim, whole = tmp_path / "b" / name, tmp_path / "a" / name
    process = subprocess.Popen(
        [program, "diff", whole, victim, "-j", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not uses(process, victim):
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    os.truncate(victim, 4096)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2, (process.returncode, out, err)
    assert f"{victim} was truncated" in out + err or "x.bin has 4096 bytes" in out + err
    assert err.count("\n") == 1
