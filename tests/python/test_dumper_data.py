"""TensorDumper: any tensor, any structure; files have the value at the call."""

from __future__ import annotations

import array
import collections
import dataclasses
import pathlib
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from dumped import done, entry, manifest, names, tensors, tree

import marey

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")
pytest.importorskip("safetensors.torch")

Type = marey.TensorDumper.Type


TORCH_DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64),
    *(torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu),
]


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist()


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
def test_each_type_of_torch_comes_back_bit_by_bit(dumper, folder, dtype):
    raw = torch.arange(48, dtype=torch.uint8) if dtype is not torch.bool else torch.arange(48, dtype=torch.uint8) % 2
    tensor = raw.view(dtype).reshape(2, -1)
    dumper.add_tensor_data("x", tensor)
    done(dumper)
    line = entry(folder, "x")
    assert line["dtype"] == str(dtype).removeprefix("torch.")
    assert line["shape"] == list(tensor.shape)
    data = (folder / "step-00000000.safetensors").read_bytes()
    records = (folder / "step-00000000.jsonl").read_text()
    start = int(records.split('"data_start":')[1].split(",")[0].rstrip("}")) + line["offset"]
    assert list(data[start : start + line["bytes"]]) == bits(tensor)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.bool], ids=str
)
def test_safetensors_reads_it(dumper, folder, dtype):
    tensor = (torch.arange(12) % 2).to(dtype).reshape(3, 4)
    dumper.add_tensor_data("x", tensor)
    done(dumper)
    found = tensors(folder)["x"]
    assert found.dtype == dtype
    assert bits(found) == bits(tensor)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_numbers_keep_both_parts(dumper, folder, dtype):
    tensor = torch.tensor([1 + 2j, -3.5j], dtype=dtype)
    dumper.add_tensor_data("x", tensor, Type.NPY)
    done(dumper)
    assert entry(folder, "x")["dtype"] == str(dtype).removeprefix("torch.")
    found = np.load(folder / "step-00000000" / entry(folder, "x")["files"][0])
    assert found.tolist() == [1 + 2j, -3.5j]


def test_conjugated_and_negated_views_are_read_as_what_they_stand_for(dumper, folder):
    tensor = torch.tensor([1 + 2j])
    dumper.add_tensor_data("conj", tensor.conj(), Type.NPY)
    dumper.add_tensor_data("neg", tensor.conj().imag)
    done(dumper)
    assert np.load(folder / "step-00000000" / entry(folder, "conj")["files"][0]).tolist() == [1 - 2j]
    assert tensors(folder)["neg"].tolist() == [-2]


VIEWS = {
    "transposed": lambda t: t.t(),
    "strided": lambda t: t[::2, 1::3],
    "expanded": lambda t: t[:, :1].expand(4, 6),
    "flipped": lambda t: t.flip(0),
    "scalar": lambda t: t[1, 2],
    "empty": lambda t: t[:0],
    "requires_grad": lambda t: t.clone().requires_grad_(),
    "parameter": lambda t: torch.nn.Parameter(t.clone()),
    "result": lambda t: t.clone().requires_grad_() * 2,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_are_written_as_their_numbers(dumper, folder, view):
    tensor = view(torch.arange(24, dtype=torch.float32).reshape(4, 6))
    dumper.add_tensor_data("x", tensor)
    done(dumper)
    assert entry(folder, "x")["shape"] == list(tensor.shape)
    assert torch.equal(tensors(folder)["x"], tensor.detach())


def test_sparse_and_quantized_tensors_are_converted_and_that_is_reported(dumper, folder):
    from marey import _dump_leaves

    _dump_leaves._told.clear()
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    with pytest.warns(UserWarning, match="sparse_coo"):
        dumper.add_tensor_data("coo", dense.to_sparse())
    with pytest.warns(UserWarning, match="sparse_csr"):
        dumper.add_tensor_data("csr", dense.to_sparse_csr())
    with pytest.warns(UserWarning, match="quantized"):
        dumper.add_tensor_data("quantized", torch.quantize_per_tensor(dense, 0.5, 0, torch.quint8))
    done(dumper)
    for name in ("coo", "csr", "quantized"):
        assert torch.equal(tensors(folder)[name], dense)


@pytest.mark.filterwarnings("ignore")
def test_nested_tensors_are_lists(dumper, folder):
    dumper.add_tensor_data("x", torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)]))
    done(dumper)
    assert names(folder) == ["x[0]", "x[1]"]


def test_a_subclass_of_a_tensor_is_a_tensor(dumper, folder):
    class Mine(torch.Tensor):
        pass

    dumper.add_tensor_data("x", torch.ones(2).as_subclass(Mine))
    done(dumper)
    assert tensors(folder)["x"].tolist() == [1, 1]


def test_a_tensor_without_data_is_refused(dumper):
    with pytest.raises(TypeError, match="meta"):
        dumper.add_tensor_data("x", torch.ones(2, device="meta"))


NUMPY = {
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    "reversed": np.arange(6, dtype=np.int16)[::-1],
    "readonly": np.broadcast_to(np.float32(3), (2, 2)),
    "big-endian": np.arange(4, dtype=">f4"),
    "bool": np.array([True, False]),
    "0-d": np.array(2.5),
    "empty": np.zeros((0, 3), dtype=np.int64),
    "field": np.zeros(3, dtype=[("a", "u1"), ("b", "<f4")])["b"],
    "uint64": np.array([2**64 - 1], dtype=np.uint64),
    "half": np.array([0.5], dtype=np.float16),
}


@pytest.mark.parametrize("given", NUMPY.values(), ids=NUMPY)
def test_arrays_of_numpy(dumper, folder, given):
    dumper.add_tensor_data("x", given, Type.NPY)
    done(dumper)
    found = np.load(folder / "step-00000000" / entry(folder, "x")["files"][0])
    assert found.dtype == given.dtype.newbyteorder("=")
    assert found.shape == given.shape
    assert np.array_equal(found, given)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_that_numpy_has_from_ml_dtypes(dumper, folder, dtype):
    given = np.array([1.0, -0.5], dtype=getattr(ml_dtypes, dtype))
    dumper.add_tensor_data("x", given)
    done(dumper)
    assert entry(folder, "x")["dtype"] == dtype
    assert tensors(folder)["x"].float().tolist() == [1.0, -0.5]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("dtype", "wider"), [("int4", torch.int8), ("uint2", torch.uint8), ("float6_e2m3fn", torch.float32)]
)
def test_types_that_no_format_has_become_wider_ones(dumper, folder, dtype, wider):
    dumper.add_tensor_data("x", np.array([1, 0, 1]).astype(getattr(ml_dtypes, dtype)))
    done(dumper)
    assert tensors(folder)["x"].dtype == wider
    assert tensors(folder)["x"].tolist() == [1, 0, 1]


@pytest.mark.filterwarnings("ignore")
def test_four_bits_of_torch_are_dumped_as_bytes(dumper, folder):
    packed = torch.tensor([1, 2], dtype=torch.uint8)
    dumper.add_tensor_data("int4", packed.view(torch.uint4))
    dumper.add_tensor_data("fp4", packed.view(torch.float4_e2m1fn_x2))
    done(dumper)
    assert tensors(folder)["int4"].tolist() == [1, 2]
    assert entry(folder, "fp4")["dtype"] == "float4_e2m1fn_x2"


def test_threads_may_add_at_once(dumper, folder):
    import threading

    def add(i):
        for j in range(50):
            dumper.add_tensor_data(f"thread{i}.x{j}", torch.full((10,), float(i)))

    threads = [threading.Thread(target=add, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done(dumper)
    found = tensors(folder)
    assert len(found) == 200
    assert all(tensor[0].item() == int(name[6]) for name, tensor in found.items())


def test_times_of_numpy_are_their_counts_and_texts_are_texts(dumper, folder):
    dumper.add_tensor_data("t", np.array([1, 2], dtype="datetime64[s]"))
    dumper.add_tensor_data("s", np.array(["a", "b"]))
    done(dumper)
    assert tensors(folder)["t"].tolist() == [1, 2]
    assert [record.get("value") for record in manifest(folder)][1:] == ["a", "b"]


class ByDLPack:
    """What JAX and CuPy have in common: DLPack and nothing else."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.complex64], ids=str)
def test_dlpack(dumper, folder, dtype):
    tensor = torch.tensor([[1, 0, 1], [0, 0, 1]]).to(dtype)[:, ::2]
    dumper.add_tensor_data("x", ByDLPack(tensor))
    done(dumper)
    assert entry(folder, "x")["dtype"] == str(dtype).removeprefix("torch.")
    assert bits(tensors(folder)["x"]) == bits(tensor)


def test_the_buffer_protocol(dumper, folder):
    dumper.add_tensor_data("array", array.array("d", [1.5, 2.5]))
    dumper.add_tensor_data("view", memoryview(bytes(range(6))).cast("H")[::2])
    dumper.add_tensor_data("bytes", b"ab")
    dumper.add_tensor_data("bytearray", bytearray(b"c"))
    done(dumper)
    found = tensors(folder)
    assert found["array"].tolist() == [1.5, 2.5]
    assert found["view"].tolist() == [0x0100, 0x0504]
    assert found["bytes"].tolist() == [97, 98]
    assert found["bytearray"].tolist() == [99]


def test_the_array_interface(dumper, folder):
    class Wrapped:
        def __init__(self, given: np.ndarray) -> None:
            self.given = given
            self.__array_interface__ = given.__array_interface__

    dumper.add_tensor_data("x", Wrapped(np.arange(6, dtype=np.int32)[::2]))
    done(dumper)
    assert tensors(folder)["x"].tolist() == [0, 2, 4]


def test_structures_become_trees(accvlab, folder):
    data = {
        "list": [torch.ones(1), {"x": torch.zeros(1)}, (torch.ones(()), "text")],
        "ordered": collections.OrderedDict(a=1),
        "scalars": [1, 2.5, True, None, np.float32(0.5), np.int64(7)],
        "texts": [torch.float32, int, pathlib.Path("p"), torch.device("cpu")],
        "nothing": {},
        "empty": [],
    }
    accvlab.add_tensor_data("d", data, Type.JSON)
    done(accvlab)
    assert tree(folder)["d"] == {
        "list": [[1.0], {"x": [0.0]}, [1.0, "text"]],
        "ordered": {"a": 1},
        "scalars": [1, 2.5, True, None, 0.5, 7],
        "texts": ["torch.float32", "<class 'int'>", "p", "cpu"],
        "nothing": {},
        "empty": [],
    }


class Box(NamedTuple):
    center: torch.Tensor
    label: str


@dataclasses.dataclass
class Sample:
    image: torch.Tensor
    box: Box


def test_records_are_taken_apart_by_their_fields(dumper, folder):
    dumper.add_tensor_data("s", Sample(torch.ones(2), Box(torch.zeros(2), "car")))
    done(dumper)
    assert names(folder) == ["s.image", "s.box.center", "s.box.label"]


def test_data_that_contains_itself_is_reported(dumper):
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contain itself"):
        dumper.add_tensor_data("x", loop)


def test_what_cannot_be_dumped_is_reported_where_it_is_added(dumper):
    with pytest.raises(TypeError, match=r"a\.b: a object .*register_custom_converter"):
        dumper.add_tensor_data("a", {"b": object()})


# ---- lazy data ----


def test_a_function_is_called_for_its_data(dumper, folder):
    dumper.add_tensor_data("x", lambda: {"y": torch.ones(1)})
    done(dumper)
    assert names(folder) == ["x.y"]


def test_a_function_is_not_called_for_a_step_that_is_not_kept(folder):
    dumper = marey.TensorDumper(folder, first=1)
    dumper.add_tensor_data("x", lambda: 1 / 0)
    dumper.run_if_enabled(lambda: 1 / 0)
    dumper.dump()
    with pytest.raises(ZeroDivisionError):
        dumper.run_if_enabled(lambda: 1 / 0)
    dumper.reset()


# ---- converters ----


class Wrapper:
    def __init__(self, inside: Any) -> None:
        self.inside = inside


class WrapperToo(Wrapper):
    pass


def test_converters_chain_and_reach_into_structures(dumper, folder):
    class Outer:
        pass

    dumper.register_custom_converter(Wrapper, lambda wrapper: wrapper.inside)
    dumper.register_custom_converter(Outer, lambda outer: Wrapper({"x": torch.ones(1)}))
    dumper.add_tensor_data("a", [Outer(), {"w": Wrapper(torch.zeros(1))}])
    done(dumper)
    assert names(folder) == ["a[0].x", "a[1].w"]


def test_a_converter_is_for_its_exact_type_unless_told_otherwise(dumper, folder):
    dumper.register_custom_converter(Wrapper, lambda wrapper: wrapper.inside)
    with pytest.raises(TypeError, match="WrapperToo"):
        dumper.add_tensor_data("a", WrapperToo(torch.ones(1)))
    dumper.register_custom_converter(Wrapper, lambda wrapper: wrapper.inside, subclasses=True)
    dumper.add_tensor_data("b", WrapperToo(torch.ones(1)))
    done(dumper)
    assert names(folder) == ["b"]


def test_converters_of_tuples_dicts_and_tensors_are_reached(dumper, folder):
    dumper.register_custom_converter(Box, lambda box: {"converted": box.center})
    dumper.register_custom_converter(collections.OrderedDict, lambda given: {"converted": torch.ones(1)})
    dumper.add_tensor_data("box", Box(torch.ones(2), "x"))
    dumper.add_tensor_data("ordered", collections.OrderedDict(a=1))
    done(dumper)
    assert names(folder) == ["box.converted", "ordered.converted"]


# ---- overrides and exclusion ----


def test_the_nearest_key_that_an_override_names_counts(accvlab, folder):
    data = {"a": {"b": torch.ones(1), "c": torch.ones(1)}, "d": torch.ones(1)}
    override = {"a": Type.BINARY, "c": Type.JSON, "nowhere": Type.PICKLE, "x": Type.PICKLE}
    accvlab.add_tensor_data("x", data, Type.JSON, override)
    done(accvlab)
    assert tree(folder)["x"] == {"a": {"b": "x.a.b.bin", "c": [1.0]}, "d": [1.0]}


def test_permutations_and_their_overrides(dumper, folder):
    tensor = torch.arange(24).reshape(2, 3, 4)
    data = {"a": tensor, "b": tensor, "c": {"d": tensor}}
    dumper.add_tensor_data("x", data, None, None, [2, 0, 1], {"b": None, "d": (0, 2, -2)})
    done(dumper)
    found = tensors(folder)
    assert torch.equal(found["x.a"], tensor.permute(2, 0, 1))
    assert torch.equal(found["x.b"], tensor)
    assert torch.equal(found["x.c.d"], tensor.permute(0, 2, 1))


@pytest.mark.parametrize("axes", [[0], [0, 0, 1], [0, 1, 5]])
def test_a_permutation_that_does_not_fit_is_reported_at_the_add(dumper, axes):
    with pytest.raises(ValueError, match="permutation"):
        dumper.add_tensor_data("x", torch.ones(2, 3, 4), permute_axes=axes)


def test_keys_are_excluded_at_every_depth(dumper, folder):
    data = {"keep": torch.ones(1), "drop": torch.ones(1), "list": [{"drop": torch.ones(1), "keep": torch.ones(1)}]}
    dumper.add_tensor_data("x", data, exclude=["drop"])
    done(dumper)
    assert names(folder) == ["x.keep", "x.list[0].keep"]


# ---- ragged batches ----


class Ragged:
    def __init__(self) -> None:
        self.tensor = torch.arange(24).reshape(2, 3, 4)
        self.sample_sizes = torch.tensor([1, 3])
        self.non_uniform_dim = 1
        self.num_batch_dims = 1


def test_a_ragged_batch_as_a_description(accvlab, folder):
    accvlab.enable_ragged_batch_dumping()
    accvlab.add_tensor_data("r", Ragged(), Type.JSON)
    done(accvlab)
    assert tree(folder)["r"] == {
        "data": Ragged().tensor.tolist(),
        "sample_sizes": [1, 3],
        "non_uniform_dim": 1,
        "num_batch_dims": 1,
    }


def test_a_ragged_batch_as_its_samples(accvlab, folder):
    accvlab.enable_ragged_batch_dumping(as_per_sample=True)
    accvlab.add_tensor_data("r", Ragged(), Type.JSON)
    two = Ragged()
    two.tensor = torch.arange(16).reshape(2, 2, 2, 2)
    two.sample_sizes = torch.tensor([[1, 2], [0, 2]])
    two.non_uniform_dim, two.num_batch_dims = 3, 2
    accvlab.add_tensor_data("two", two, Type.JSON)
    done(accvlab)
    assert tree(folder)["r"] == [[[0, 1, 2, 3]], torch.arange(12, 24).reshape(3, 4).tolist()]
    assert tree(folder)["two"] == [[[[0], [2]], [[4, 5], [6, 7]]], [[[], []], [[12, 13], [14, 15]]]]


# ---- snapshots ----


@pytest.mark.parametrize("kind", [None, *Type])
def test_what_is_written_is_the_value_at_the_call(folder, kind):
    dumper = marey.TensorDumper(folder, layout="accvlab" if kind == Type.JSON else "marey")
    tensor = torch.arange(27, dtype=torch.float32).reshape(3, 3, 3)
    before = tensor.clone()
    dumper.add_tensor_data("x", tensor, kind)
    tensor.mul_(-1)
    dumper.add_tensor_data("reference", before, kind)
    dumper.dump()
    dumper.reset()
    if kind == Type.JSON:
        found = tree(folder)
        assert found["x"] == found["reference"] == before.tolist()
    elif kind is None:
        assert torch.equal(tensors(folder)["x"], before)
    else:
        kept, reference = (entry(folder, name)["files"] for name in ("x", "reference"))
        for a, b in zip(kept, reference):
            first, second = ((folder / "step-00000000" / name).read_bytes() for name in (a, b))
            if kind == Type.PICKLE:  # which has the address of the numbers in it
                assert torch.equal(pickle.loads(first), before)
                continue
            assert first.replace(b'"x"', b'"reference"') == second or kind == Type.SAFETENSORS


def test_a_buffer_that_is_handed_over_is_kept_until_it_is_written(dumper, folder):
    import weakref

    given = torch.arange(1000.0)
    alive = weakref.ref(given)
    dumper.add_tensor_data("x", given, hand_over=True)
    del given
    assert alive() is not None
    dumper.dump()
    dumper.wait()
    assert alive() is None
    assert torch.equal(tensors(folder)["x"], torch.arange(1000.0))
