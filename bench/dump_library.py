"""libmarey's dumper by ctypes, for benchmarks that bypass the Python package."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Optional

F32, BF16, U8 = 12, 11, 2
CUDA = 2


class Tensor(ctypes.Structure):
    """struct marey_tensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_uint32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("memory", ctypes.c_int),
        ("device", ctypes.c_int32),
        ("stream", ctypes.c_size_t),
    ]


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Part(ctypes.Structure):
    """struct marey_dump_part."""

    _fields_ = [("key", ctypes.c_char_p), ("key_len", ctypes.c_size_t), ("index", ctypes.c_uint64)]


class Value(ctypes.Structure):
    """struct marey_dump_value."""

    _fields_ = [
        ("kind", ctypes.c_int),
        ("tensor", Tensor),
        ("text", ctypes.c_void_p),
        ("text_len", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("permutation", ctypes.c_void_p),
        ("image", ctypes.c_void_p),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("phase", ctypes.c_char_p),
        ("release", RELEASE),
        ("owner", ctypes.c_void_p),
    ]


class Options(ctypes.Structure):
    """struct marey_dump_options."""

    _fields_ = [
        ("dir", ctypes.c_char_p),
        ("layout", ctypes.c_int),
        ("mode", ctypes.c_int),
        ("policy", ctypes.c_int),
        ("memory_bytes", ctypes.c_uint64),
        ("disk_bytes", ctypes.c_uint64),
        ("n_writers", ctypes.c_uint32),
        ("durable", ctypes.c_uint32),
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("every", ctypes.c_uint64),
        ("flight_steps", ctypes.c_uint64),
        ("no_stats", ctypes.c_uint32),
    ]


class Counts(ctypes.Structure):
    """struct marey_dump_counts."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("n_steps", "n_tensors", "n_bytes", "n_dropped", "n_only_stats", "n_failed", "waited_ns")
    ]


def find_library() -> Path:
    """The libmarey of MAREY_BUILD, or that of the package."""
    if "MAREY_BUILD" in os.environ:
        return Path(os.environ["MAREY_BUILD"]) / "core" / "libmarey.so"
    import marey  # loads the library; a second copy would stay off

    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    loaded = [line.split()[-1] for line in maps.splitlines() if "/libmarey.so" in line]
    return Path(loaded[0]) if loaded else next(Path(marey.__file__).parent.glob("libmarey.so*"))


class Dumper:
    """The dumper of one process."""

    def __init__(self, path: Optional[Path] = None) -> None:
        self.lib = ctypes.CDLL(str(path or find_library()))
        self.lib.marey_last_error.restype = ctypes.c_char_p
        self.add_on = self.lib.marey_dump_add_on
        self.add_on.argtypes = [ctypes.c_char_p, ctypes.POINTER(Tensor)]
        self.nothing = RELEASE(lambda owner: None)

    def check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(self.lib.marey_last_error().decode())

    def enable(self, folder: Path, **options: int) -> None:
        o = Options(dir=str(folder).encode(), **options)
        self.check(self.lib.marey_dump_enable_sized(ctypes.byref(o), ctypes.c_size_t(ctypes.sizeof(o))))

    def add(self, path: bytes, tensor: Tensor) -> None:
        self.check(self.add_on(path, tensor))

    def hand_over(self, path: bytes, tensor: Tensor) -> None:
        """Add data that does not change, so that it need not be copied."""
        part, value = Part(key=path, key_len=len(path)), Value(tensor=tensor, release=self.nothing)
        self.check(self.lib.marey_dump_put_on(0, ctypes.byref(part), ctypes.c_size_t(1), ctypes.byref(value)))

    def flush(self) -> None:
        self.check(self.lib.marey_dump_flush(None))

    def wait(self) -> None:
        self.check(self.lib.marey_dump_wait())

    def set_count(self, count: int) -> None:
        self.lib.marey_dump_set_count(ctypes.c_uint64(count))

    def disable(self) -> None:
        self.check(self.lib.marey_dump_disable())

    def counts(self) -> Counts:
        counts = Counts()
        self.lib.marey_dump_counts_get(ctypes.byref(counts))
        return counts


def describe(address: int, dtype: int, sizes: tuple[int, ...], strides: Optional[tuple[int, ...]] = None) -> Tensor:
    """A tensor in the host's memory, row-major unless strides are given."""
    rank = len(sizes)
    return Tensor(
        data=address,
        dtype=dtype,
        rank=rank,
        sizes=(ctypes.c_int64 * rank)(*sizes),
        strides=(ctypes.c_int64 * rank)(*strides) if strides is not None else None,
    )
