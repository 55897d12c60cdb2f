"""Single values of a dump: tensors, strings and numbers, and conversion of unusual ones."""

from __future__ import annotations

import re
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Sequence
    from typing import Any, Optional

# From enum marey_dump_kind.
TEXT, LITERAL, DICT, LIST, BYTES = 1, 2, 3, 4, 5

_told: set[str] = set()


def tell_once(sentence: str) -> None:
    """Warn once per process and message."""
    if sentence not in _told:
        _told.add(sentence)
        warnings.warn(sentence, stacklevel=2)


def is_torch(value: Any) -> bool:
    """Whether it is a torch tensor. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def plain(tensor: Any) -> Any:
    """Convert a torch tensor to a plain one whose numbers can be read from memory, for the extension."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        tensor = tensor.detach()
        if hasattr(tensor, "to_local"):  # a DTensor: the shard of this rank
            tell_once("TensorDumper: of a DTensor the part that this rank holds is dumped")
            tensor = tensor.to_local()
        if tensor.layout is not torch.strided and not tensor.is_nested:
            tell_once(f"TensorDumper: tensors of layout {tensor.layout} are dumped as dense ones")
            tensor = tensor.to_dense()
        if tensor.is_quantized:
            tell_once("TensorDumper: quantized tensors are dumped as dequantized values")
            tensor = tensor.dequantize()
        if tensor.device.type == "meta":
            raise TypeError("a tensor on the device 'meta' has no data to dump")
        if not (tensor.is_cpu or tensor.is_cuda):
            tensor = tensor.cpu()
        if tensor.dtype not in (torch.uint8, torch.int8) and re.match(r"torch\.(u?int|bits)[1-8]$", str(tensor.dtype)):
            tell_once(f"TensorDumper: elements of {tensor.dtype} are dumped as the bytes they are in")
            tensor = tensor.view(torch.uint8)
        tensor = tensor.resolve_conj().resolve_neg()
        if type(tensor) is not torch.Tensor:
            tensor = tensor.as_subclass(torch.Tensor)
    return tensor


# Types of ml_dtypes that no file format supports, and wider ones that represent all their values.
_WIDER = {
    **dict.fromkeys(("int2", "int4"), "int8"),
    **dict.fromkeys(("uint2", "uint4"), "uint8"),
    **dict.fromkeys(("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"), "float32"),
    **dict.fromkeys(("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"), "float32"),
}


def numpy_array(array: Any) -> Any:
    """Convert a numpy array to one that can be read directly from memory; None if it holds no numbers."""
    numpy = sys.modules["numpy"]
    kind = array.dtype.kind
    if kind in "mM":  # times: counts of their unit
        array = array.view("int64")
    elif kind in "OSU" or array.dtype.fields is not None:
        return None
    elif array.dtype.name in _WIDER:
        wider = _WIDER[array.dtype.name]
        tell_once(f"TensorDumper: numpy's {array.dtype.name} is dumped as {wider}")
        array = array.astype(wider)
    elif array.dtype.char in "gG":
        tell_once("TensorDumper: numpy's long doubles are dumped as doubles")
        array = array.astype(numpy.complex128 if kind == "c" else numpy.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if any(stride % array.itemsize for stride in array.strides):
        array = numpy.ascontiguousarray(array)
    return array


def literal(value: Any) -> Optional[tuple[int, bytes]]:
    """Kind and text of a JSON scalar: string, number, true, false, null; None for anything else."""
    if value is None:
        return LITERAL, b"null"
    if value is True or value is False:
        return LITERAL, b"true" if value else b"false"
    if isinstance(value, str):
        return TEXT, value.encode("utf-8", "surrogatepass")
    if isinstance(value, float):
        return LITERAL, _float_text(value)
    if isinstance(value, int):
        return LITERAL, int.__repr__(value).encode()
    return _odd_literal(value)


def _float_text(value: float) -> bytes:
    words = {"nan": b"NaN", "inf": b"Infinity", "-inf": b"-Infinity"}
    text = float.__repr__(value)
    return words.get(text) or text.encode()


def _odd_literal(value: Any) -> Optional[tuple[int, bytes]]:
    """Scalars of numpy as Python values; names of types and devices, ranges and paths as strings."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        if value.dtype.kind in "biufSU":
            item = value.item()
            return literal(item) if not isinstance(item, numpy.generic) else None
        return None
    if isinstance(value, (type, range, complex)) or hasattr(value, "__fspath__"):
        return TEXT, str(value).encode("utf-8", "surrogatepass")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, (torch.dtype, torch.device, torch.layout)):
        return TEXT, str(value).encode()
    return None


def pickled(value: Any, permutation: Optional[Sequence[int]]) -> bytes:
    """Pickle a tensor as it is now, permuted, without its graph and on the CPU."""
    import pickle

    if is_torch(value):
        value = value.detach().cpu()
        value = (value.permute(permutation) if permutation is not None else value).clone()
    elif permutation is not None:
        value = value.transpose(permutation)
    return pickle.dumps(value)


def ragged(batch: Any, as_per_sample: bool) -> Any:
    """Turn a batch of samples of different sizes into a dict that describes it, or into its samples."""
    data = batch.tensor if hasattr(batch, "tensor") else batch.data
    if not as_per_sample:
        return {
            "data": data,
            "sample_sizes": batch.sample_sizes,
            "non_uniform_dim": batch.non_uniform_dim,
            "num_batch_dims": batch.num_batch_dims,
        }
    return _samples(data, batch.sample_sizes, batch.num_batch_dims, batch.non_uniform_dim - batch.num_batch_dims)


def _samples(data: Any, sizes: Any, levels: int, axis: int) -> Any:
    if levels == 0:
        return data[(*(slice(None),) * axis, slice(0, int(sizes)))]
    return [_samples(part, size, levels - 1, axis) for part, size in zip(data, sizes)]


def is_ragged(value: Any) -> bool:
    """Whether it has the attributes of a ragged batch."""
    names = ("sample_sizes", "non_uniform_dim", "num_batch_dims")
    return all(hasattr(value, name) for name in names) and (hasattr(value, "tensor") or hasattr(value, "data"))
