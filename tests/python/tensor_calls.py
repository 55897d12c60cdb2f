"""marey/tensor.h by ctypes: descriptors of numpy arrays and torch tensors, and results."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Optional


class Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("dtype", c_int),
        ("rank", c_uint32),
        ("sizes", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("memory", c_int),
        ("device", c_int32),
        ("stream", c_void_p),
    ]


class Stats(Structure):
    _fields_ = [
        *((name, c_uint64) for name in ("n", "n_nan", "n_pos_inf", "n_neg_inf", "n_zero", "n_denormal", "n_negative")),
        *((name, c_double) for name in ("min", "max", "mean", "std", "l2")),
        ("histogram", c_uint64 * 64),
    ]


class Tolerance(Structure):
    _fields_ = [
        ("abs", c_double),
        ("rel", c_double),
        ("ulp", c_uint64),
        ("nan_equal", c_uint32),
        ("bitwise", c_uint32),
    ]


class Worst(Structure):
    _fields_ = [("value", c_double), ("index", c_uint64)]


class Diff(Structure):
    _fields_ = [
        *((name, c_uint64) for name in ("n", "n_wrong", "n_unequal", "n_nan_a", "n_nan_b", "n_nan_one", "first_wrong")),
        *((name, Worst) for name in ("abs", "rel", "ulp")),
        *((name, c_double) for name in ("mean_abs", "rmse", "mean_a", "mean_b", "cosine", "snr_db", "max_a", "max_b")),
        *((name, c_double) for name in ("needs_abs", "needs_rel", "needs_ulp")),
    ]


def loaded_library() -> ctypes.CDLL:
    """Return the libmarey that the package has loaded."""
    import marey  # noqa: F401

    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.partition("/")[1] + line.partition("/")[2]
        if Path(path).name.startswith("libmarey.so"):
            return ctypes.CDLL(path)
    raise RuntimeError("the package marey has not loaded libmarey")


class Library:
    """The functions, which raise when they fail."""

    def __init__(self) -> None:
        self.lib = loaded_library()
        self.lib.marey_last_error.restype = c_char_p
        self.lib.marey_dtype_name.restype = c_char_p
        self.lib.marey_tolerance_default.restype = Tolerance
        self.lib.marey__kernels_force.restype = ctypes.c_bool
        self.lib.marey_tensor_digest.argtypes = [c_void_p, c_void_p, c_void_p]
        self.lib.marey_tensor_element.argtypes = [c_void_p, c_uint64, c_void_p, ctypes.c_size_t]
        self.lib.marey__narrow.argtypes = [ctypes.c_int, ctypes.c_double]
        self.lib.marey__narrow.restype = ctypes.c_uint32

    def dtype(self, name: str) -> int:
        return int(self.lib.marey_dtype_find(name.encode()))

    def narrow(self, dtype: str, value: float) -> int:
        """Round to a type of less than 32 bits; its bits."""
        return int(self.lib.marey__narrow(self.dtype(dtype), value))

    def force(self, level: Optional[str]) -> bool:
        """Choose kernels: "plain", "avx2", "avx512", or None for the best."""
        return bool(self.lib.marey__kernels_force(level.encode() if level else None))

    def descriptor(
        self, data: int, dtype: str, sizes: Sequence[int], strides: Optional[Sequence[int]] = None
    ) -> Tensor:
        """Describe elements at an address; the caller keeps them alive."""
        rank = len(sizes)
        of_sizes = (c_int64 * max(rank, 1))(*sizes)
        of_strides = None if strides is None else (c_int64 * max(rank, 1))(*strides)
        return Tensor(data or None, self.dtype(dtype), rank, of_sizes, of_strides, 0, 0, None)

    def of_numpy(self, array: Any, dtype: Optional[str] = None) -> Tensor:
        strides = [stride // array.itemsize for stride in array.strides]
        return self.descriptor(array.ctypes.data, dtype or array.dtype.name, array.shape, strides)

    def of_torch(self, tensor: Any, dtype: Optional[str] = None) -> Tensor:
        return self.descriptor(tensor.data_ptr(), dtype or str(tensor.dtype), tensor.shape, tensor.stride())

    def check(self, status: int) -> None:
        if status != 0:
            raise ValueError(self.lib.marey_last_error().decode())

    def stats(self, tensor: Tensor) -> Stats:
        out = Stats()
        self.check(self.lib.marey_tensor_stats_get(byref(tensor), byref(out)))
        return out

    def digest(self, tensor: Tensor) -> str:
        out = (ctypes.c_uint8 * 16)()
        self.check(self.lib.marey_tensor_digest(byref(tensor), out, None))
        return bytes(out).hex()

    def element(self, tensor: Tensor, i: int) -> str:
        out = ctypes.create_string_buffer(64)
        self.check(self.lib.marey_tensor_element(byref(tensor), i, out, 64))
        return out.value.decode()

    def compare(self, a: Tensor, b: Tensor, n_threads: int = 1, **tolerance: Any) -> Diff:
        out = Diff()
        limits = Tolerance(**tolerance)
        self.check(self.lib.marey_tensor_compare_with(byref(a), byref(b), byref(limits), n_threads, byref(out)))
        return out
