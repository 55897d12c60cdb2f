"""Tensor files: marey reads those of numpy, safetensors, torch and json, and vice versa, for all types."""

from __future__ import annotations

import itertools
import json
import math
import random
from decimal import Decimal

import numpy as np
import pytest

import marey
from marey import _tools
from marey._arrays import as_array, as_torch

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")
safetensors_numpy = pytest.importorskip("safetensors.numpy")
safetensors_torch = pytest.importorskip("safetensors.torch")

NUMPY = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
NUMPY += ["float16", "float32", "float64", "complex64", "complex128"]
ONLY_ML = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
SHAPES = [(), (0,), (5,), (2, 3), (2, 0, 3), (1, 2, 3, 4)]
HARD = [0.0, -0.0, 1.0, 0.1, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740993.0]
HARD += [1e16, 9999999999999998.0, 1e-4, 1e-5, 123456789.0, 2**-44, 1.5e300, math.pi, 1e23, 8.5, 4503599627370497.5]


def random_bits(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Any bits, but for bool."""
    kind = np.dtype(getattr(ml_dtypes, dtype)) if dtype in ONLY_ML else np.dtype(dtype)
    n = math.prod(shape)
    raw = np.random.default_rng(n).integers(0, 256, n * kind.itemsize, dtype=np.uint8)
    if dtype == "bool":
        raw &= 1
    return raw.view(kind).reshape(shape)


def read(path, name: str = "data"):
    """The one value of that name."""
    dumps = _tools.Dumps(path)
    (found,) = [i for i, value in enumerate(dumps.values(0)) if value["name"] == name]
    return dumps.get(0, found)


def same_bits(a, b) -> bool:
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


# ---- by others ----


@pytest.mark.parametrize(("dtype", "shape"), itertools.product(NUMPY, SHAPES))
def test_npy_of_numpy_is_read(tmp_path, dtype, shape):
    array = random_bits(dtype, shape)
    np.save(tmp_path / "x.npy", array)
    tensor = read(tmp_path / "x.npy")
    assert (tensor.dtype, tensor.shape) == (dtype, shape)
    assert same_bits(as_array(tensor), array)


@pytest.mark.parametrize("dtype", NUMPY)
def test_npy_of_other_orders_is_read(tmp_path, dtype):
    array = random_bits(dtype, (3, 4, 5))
    np.save(tmp_path / "f.npy", np.asfortranarray(array))
    np.save(tmp_path / "b.npy", array.astype(array.dtype.newbyteorder(">")))
    assert same_bits(as_array(read(tmp_path / "f.npy")), array)
    assert same_bits(as_array(read(tmp_path / "b.npy")), array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_of_every_version_is_read(tmp_path, version):
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, np.arange(3.0), version=version)
    assert as_array(read(tmp_path / "x.npy")).tolist() == [0, 1, 2]


def test_npy_of_what_numpy_has_no_type_for(tmp_path):
    """ml_dtypes saves raw bytes, and of one type something that numpy itself refuses."""
    array = np.arange(5).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(marey.MareyError, match=r"name the file NAME\.bf16\.npy"):
        read(tmp_path / "x.npy")
    np.save(tmp_path / "x.bf16.npy", array)
    assert same_bits(as_array(read(tmp_path / "x.bf16.npy")), array)
    array = np.arange(5).astype(ml_dtypes.float8_e5m2)
    np.save(tmp_path / "y.npy", array)
    assert same_bits(as_array(read(tmp_path / "y.npy")), array)


def test_npy_of_python_objects_is_never_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(marey.MareyError, match="pickle, which is never loaded"):
        read(tmp_path / "x.npy")


def test_npy_of_records_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
    with pytest.raises(marey.MareyError, match="records"):
        read(tmp_path / "x.npy")


def test_safetensors_of_numpy_are_read(tmp_path):
    arrays = {f"{dtype}.{i}": random_bits(dtype, s) for dtype in NUMPY[:-1] for i, s in enumerate(SHAPES)}
    safetensors_numpy.save_file(arrays, tmp_path / "x.safetensors", metadata={"a": "b"})
    dumps = _tools.Dumps(tmp_path / "x.safetensors")
    values = dumps.values(0)
    assert {value["name"] for value in values} == set(arrays)
    for i, value in enumerate(values):
        assert same_bits(as_array(dumps.get(0, i)), arrays[value["name"]])


@pytest.mark.parametrize("dtype", [*ONLY_ML, "float32", "complex64", "bool"])
def test_safetensors_of_torch_are_read(tmp_path, dtype):
    array = random_bits(dtype, (3, 4))
    tensor = torch.from_numpy(array.view(np.uint8).copy()).view(getattr(torch, dtype))
    safetensors_torch.save_file({"a/b": tensor, "layers.0.weight": tensor.clone()}, tmp_path / "x.safetensors")
    for name in ("a/b", "layers.0.weight"):
        found = read(tmp_path / "x.safetensors", name)
        assert found.dtype == dtype
        assert same_bits(as_array(found), array)
        assert torch.equal(as_torch(found).view(torch.uint8), tensor.view(torch.uint8))


def test_packed_halves_of_bytes_count_bytes(tmp_path):
    packed = torch.arange(6, dtype=torch.uint8).reshape(2, 3).view(torch.float4_e2m1fn_x2)
    safetensors_torch.save_file({"x": packed}, tmp_path / "x.safetensors")
    found = read(tmp_path / "x.safetensors", "x")
    assert (found.dtype, found.shape) == ("float4_e2m1fn_x2", (2, 3))
    assert as_array(found).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_json_of_python_is_read(tmp_path):
    data = {
        "f": [[1.5, math.inf, -math.inf], [0.1, -0.0, 5e-324]],
        "i": [2**63 - 1, -(2**63)],
        "u": [2**64 - 1, 0],
        "big": [2**70, 1],
        "b": [True, False],
        "mixed": [1, 2.5],
        "deep": {"list": [{"a": [1]}, "text", None, 3], "": [], "é\n\ud83d": [[], []]},
    }
    (tmp_path / "x.json").write_text(json.dumps(data, indent=2))
    dumps = _tools.Dumps(tmp_path / "x.json")
    values = {value["name"]: (i, value) for i, value in enumerate(dumps.values(0))}

    def array(name):
        return as_array(dumps.get(0, values[name][0]))

    assert same_bits(array("f"), np.array(data["f"]))
    assert same_bits(array("i"), np.array(data["i"]))
    assert same_bits(array("u"), np.array(data["u"], dtype=np.uint64))
    assert same_bits(array("big"), np.array([float(2**70), 1.0]))
    assert same_bits(array("b"), np.array(data["b"]))
    assert same_bits(array("mixed"), np.array([1.0, 2.5]))
    assert values["deep.list[1]"][1]["text"] == "text"
    assert values["deep.list[2]"][1]["text"] == "null"
    assert array("deep.list[3]") == 3
    assert values["deep.%-"][1]["kind"] == "list"
    assert [value["path"] for _, value in values.values() if value["shape"] == (2, 0)] == [("deep", "é\n\ud83d")]


def test_hard_numbers_are_read_as_python_reads_them(tmp_path):
    texts = [repr(sign * value) for value in HARD for sign in (1, -1)]
    random.seed(7)
    for _ in range(20000):
        digits = "".join(random.choices("0123456789", k=random.randrange(1, 40)))
        texts.append(f"{random.randrange(10)}.{digits}e{random.randrange(-345, 320)}")
    # Halfway between two doubles, and a little to both sides.
    for mantissa in (2**53 + 1, 2**54 - 1, 2**53 + 3):
        texts += [f"{mantissa}.0", f"{mantissa}.{'0' * 30}1", f"{mantissa - 1}.{'9' * 30}"]
    (tmp_path / "x.json").write_text("[" + ",\n".join(texts) + "]")
    assert same_bits(as_array(read(tmp_path / "x.json")), np.array([float(text) for text in texts]))


# ---- by us ----


@pytest.fixture
def dumper(tmp_path):
    dumper = marey.TensorDumper(tmp_path / "d")
    yield dumper
    dumper.reset()


def as_torch_bits(array: np.ndarray, dtype: str):
    if array.size == 0:
        return torch.empty(array.shape, dtype=getattr(torch, dtype))
    return torch.from_numpy(array.reshape(-1).view(np.uint8).copy()).view(getattr(torch, dtype)).reshape(array.shape)


@pytest.mark.parametrize("kind", [None, "JSON", "BINARY", "NPY", "SAFETENSORS"])
def test_every_type_comes_back_from_every_form(dumper, tmp_path, kind):
    """By our reader, bit by bit; NaNs of a JSON are NaNs."""
    wanted = {}
    for dtype, shape in itertools.product(NUMPY + ONLY_ML, [(), (0,), (7,), (2, 3)]):
        array = random_bits(dtype, shape)
        name = f"{dtype}_{'x'.join(map(str, shape))}"
        wanted[name] = array
        arguments = [] if kind is None else [marey.TensorDumper.Type[kind]]
        dumper.add_tensor_data(name, as_torch_bits(array, dtype), *arguments)
    dumper.dump()
    dumper.wait()
    dumps = _tools.Dumps(tmp_path / "d")
    values = dumps.values(0)
    assert {value["name"] for value in values} == set(wanted)
    for i, value in enumerate(values):
        array = wanted[value["name"]]
        got = as_array(dumps.get(0, i))
        if kind == "JSON" and array.dtype.kind in "fcV":
            wide = np.complex128 if array.dtype.kind == "c" else np.float64
            np.testing.assert_array_equal(got.astype(wide), array.astype(wide), err_msg=value["name"])
            assert got.dtype == array.dtype
        else:
            assert same_bits(got, array), value["name"]
    assert dumps.notes() == []


@pytest.mark.parametrize("dtype", NUMPY + ONLY_ML)
def test_numpy_reads_our_npy(dumper, tmp_path, dtype):
    array = random_bits(dtype, (2, 3))
    dumper.add_tensor_data("x", as_torch_bits(array, dtype), marey.TensorDumper.Type.NPY)
    dumper.dump()
    dumper.wait()
    (path,) = (tmp_path / "d" / "step-00000000").glob("x*.npy")
    loaded = np.load(path, mmap_mode="r")
    if dtype in ONLY_ML:
        assert path.name == ("x.bf16.npy" if dtype == "bfloat16" else f"x.{dtype}.npy")
        assert loaded.dtype.kind == "u"
        loaded = loaded.view(array.dtype)
    assert same_bits(loaded, array)


@pytest.mark.parametrize("dtype", NUMPY + ONLY_ML)
def test_safetensors_reads_our_container(dumper, tmp_path, dtype):
    array = random_bits(dtype, (2, 3))
    for name in ("x", "y"):
        dumper.add_tensor_data(name, as_torch_bits(array, dtype))
    dumper.dump()
    dumper.wait()
    loaded = safetensors_torch.load_file(tmp_path / "d" / "step-00000000.safetensors")
    for name in ("x", "y"):
        assert loaded[name].contiguous().view(torch.uint8).numpy().tobytes() == array.tobytes()
        assert loaded[name].shape == ((2, 3, 2) if dtype == "complex128" else (2, 3))
    assert set(loaded) - {"x", "y"} <= {"__pad__0", "__pad__1"}


def test_json_reads_our_json(dumper, tmp_path):
    values = [0.1, 1e-5, 3.4028235e38, 1e16, 16777216.0, -0.0, 1.1754944e-38, 1e-45]
    dumper.add_tensor_data("x", torch.tensor([values, values]), marey.TensorDumper.Type.JSON)
    dumper.add_tensor_data("n", torch.tensor([math.nan, math.inf, -math.inf]), marey.TensorDumper.Type.JSON)
    dumper.dump()
    dumper.wait()
    text = (tmp_path / "d" / "step-00000000" / "x.json").read_text()
    assert text.split("\n")[1].strip() == "[0.1, 1e-05, 3.4028235e+38, 1e+16, 16777216.0, -0.0, 1.1754944e-38, 1e-45],"
    read_back = np.array(json.loads(text), dtype=np.float32)
    assert same_bits(read_back, np.array([values, values], dtype=np.float32))
    assert json.loads((tmp_path / "d" / "step-00000000" / "n.json").read_text()) == ["NaN", "Infinity", "-Infinity"]


def test_float32_is_not_rounded_twice(dumper, tmp_path):
    """The double nearest to 7.038531e-26 lies halfway between two numbers of float32, and the text does not."""
    bits = np.array([0x15AE43FD, 0x95AE43FD], dtype=np.uint32)
    dumper.add_tensor_data("x", torch.from_numpy(bits.view(np.float32)), marey.TensorDumper.Type.JSON)
    dumper.dump()
    dumper.wait()
    assert "7.038531e-26" in (tmp_path / "d" / "step-00000000" / "x.json").read_text()
    assert as_array(read(tmp_path / "d", "x")).view(np.uint32).tolist() == bits.tolist()


# ---- numbers as text ----


def texts_of(dumper, tmp_path, tensor) -> list[str]:
    """Each number as our JSON writes it."""
    dumper.add_tensor_data("x", tensor, marey.TensorDumper.Type.JSON)
    dumper.dump()
    dumper.wait()
    text = (tmp_path / "d" / "step-00000000" / "x.json").read_text()
    return [item.strip(' "\n') for item in text.strip("[]\n").split(",")]


def test_doubles_are_written_as_python_writes_them(dumper, tmp_path):
    generator = np.random.default_rng(3)
    values = np.concatenate(
        [
            generator.integers(0, 2**64, 200_000, dtype=np.uint64).view(np.float64),
            generator.standard_normal(50_000),
            np.array([sign * value for value in HARD for sign in (1, -1)]),
            np.ldexp(1.0, np.arange(-1074, 1024)),
            generator.integers(0, 10**6, 1000) / 1000,
        ]
    )
    values = values[np.isfinite(values)]
    assert texts_of(dumper, tmp_path, torch.from_numpy(values)) == [repr(value) for value in values.tolist()]


def test_floats_are_written_as_numpy_writes_them(dumper, tmp_path):
    generator = np.random.default_rng(4)
    values = np.concatenate(
        [
            generator.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32),
            generator.standard_normal(50_000).astype(np.float32),
            np.arange(1, 255, dtype=np.uint32).repeat(3).__lshift__(23).view(np.float32),
        ]
    )
    values = values[np.isfinite(values)]
    got = texts_of(dumper, tmp_path, torch.from_numpy(values))
    # The digits are numpy's; where the exponent begins is Python's.
    assert [Decimal(text) for text in got] == [Decimal(str(value)) for value in values]


def test_all_halves_are_written_as_numpy_writes_them(dumper, tmp_path):
    values = np.arange(65536, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)]
    got = texts_of(dumper, tmp_path, torch.from_numpy(values))
    assert [np.float16(text).tobytes() for text in got] == [value.tobytes() for value in values]
    # The digits are numpy's; where the exponent begins is Python's.
    assert [float(text) for text in got] == [float(str(value)) for value in values]


@pytest.mark.parametrize("dtype", ["bfloat16", *ONLY_ML[1:]])
def test_all_small_floats_read_back_and_are_short(dumper, tmp_path, dtype):
    kind = getattr(ml_dtypes, dtype)
    bits = np.arange(65536, dtype=np.uint16) if dtype == "bfloat16" else np.arange(256, dtype=np.uint8)
    values = bits.view(kind)
    with np.errstate(invalid="ignore"):
        values = values[np.isfinite(values.astype(np.float64))]
    got = texts_of(dumper, tmp_path, as_torch_bits(values, dtype))
    assert len(got) == len(values)
    assert np.array([float(text) for text in got]).astype(kind).tobytes() == values.tobytes()
    digits = [len(text.split("e")[0].replace(".", "").strip("-0")) for text in got]
    assert max(digits) <= {"bfloat16": 4, "float8_e8m0fnu": 8}.get(dtype, 3)
