"""A dumped tensor as a numpy array, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marey._tools import DumpedTensor

# Types that numpy lacks, by their name in ml_dtypes. Packed 4-bit numbers stay bytes.
_ML_DTYPES = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
    "float8_e8m0fnu": "float8_e8m0fnu",
}


def as_array(tensor: DumpedTensor) -> Any:
    """Return a read-only numpy array. bfloat16 and 8-bit floats need ml_dtypes; without it, use as_torch().

    Complex numbers of 16-bit halves get a last axis of 2; packed 4-bit numbers are bytes.
    """
    import numpy as np

    array = np.asarray(memoryview(tensor))
    if tensor.dtype == "complex32":
        return array.view(np.float16).reshape(*array.shape, 2)
    if tensor.dtype not in _ML_DTYPES:
        return array
    try:
        import ml_dtypes
    except ImportError:
        return as_torch(tensor)
    return array.view(getattr(ml_dtypes, _ML_DTYPES[tensor.dtype]))


def as_torch(tensor: DumpedTensor) -> Any:
    """Return the numbers as a torch tensor, copied, because torch has no read-only tensors."""
    import torch

    # Start from bytes: torch can view them as any of its types.
    raw = torch.frombuffer(bytearray(memoryview(tensor).cast("B")), dtype=torch.uint8) if _is_filled(tensor) else None
    dtype = getattr(torch, tensor.dtype, torch.uint8)
    if raw is None:
        return torch.empty(tensor.shape, dtype=dtype)
    return raw.view(dtype).reshape(tensor.shape)


def _is_filled(tensor: DumpedTensor) -> bool:
    return 0 not in tensor.shape
