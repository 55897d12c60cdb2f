#!/usr/bin/env python3
"""Cost of a PNG, against Pillow, alternating in one process.

    bench_images.py [--quick] [--results FILE]

Three images that compress differently: one like a photo (RGB, detail of all sizes), noise, a smooth map. Pillow writes
each at its default and at its fastest level; sizes are compared with the latter.
"""

from __future__ import annotations

import ctypes
import io
import os
import statistics
import time
from pathlib import Path
from typing import Callable

import numpy as np
from bench_results import Results, median_with_interval, options_of
from PIL import Image

MB = 1_000_000


class Picture(ctypes.Structure):
    """struct marey_image."""

    _fields_ = [
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("n_channels", ctypes.c_uint32),
        ("depth", ctypes.c_uint32),
        ("samples", ctypes.c_void_p),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
    ]


def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(os.environ["MAREY_BUILD"]) / "core" / "libmarey-tools.so"))


def pack(lib: ctypes.CDLL, pixels: np.ndarray) -> bytes:
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    picture = Picture(pixels.shape[1], pixels.shape[0], channels, 8, pixels.ctypes.data)
    out, size = ctypes.c_void_p(), ctypes.c_size_t()
    if lib.marey_png_pack(ctypes.byref(picture), None, ctypes.byref(out), ctypes.byref(size)) != 0:
        raise RuntimeError("marey_png_pack failed")
    packed = ctypes.string_at(out.value or 0, size.value)
    lib.marey_png_free(out)
    return packed


def pack_by_pillow(pixels: np.ndarray, **options: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", **options)
    return out.getvalue()


def pictures() -> dict[str, np.ndarray]:
    """Detail of all sizes with half the strength per octave, as in photos."""
    random = np.random.default_rng(1)
    photo = np.zeros((1024, 1024, 3))
    for octave in range(10):
        n = 2 << octave
        coarse = random.normal(size=(n, n, 1)) + 0.3 * random.normal(size=(n, n, 3))
        fine = np.kron(coarse, np.ones((1024 // n, 1024 // n, 1)))
        photo += fine * 0.6**octave
    photo = (photo - photo.min()) / (photo.max() - photo.min()) * 255
    noise = random.normal(128, 30, size=(1024, 1024)).clip(0, 255)
    y, x = np.mgrid[0:1024, 0:1024] / 1024
    smooth = 127 + 100 * np.sin(3 * x + 2 * y) * np.cos(4 * y)
    return {
        name: image.round().astype(np.uint8) for name, image in {"photo": photo, "noise": noise, "map": smooth}.items()
    }


def seconds(work: Callable[[], object]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def measure(results: Results, name: str, pixels: np.ndarray, rounds: int) -> None:
    lib = library()
    ours, ratios = [], []
    for _ in range(rounds):
        ours.append(min(seconds(lambda: pack(lib, pixels)) for _ in range(5)))
        ratios.append(seconds(lambda: pack_by_pillow(pixels)) / ours[-1])
    packed = pack(lib, pixels)
    if not np.array_equal(np.asarray(Image.open(io.BytesIO(packed))), pixels):
        raise RuntimeError(f"Pillow reads another {name} than was written")
    quick = len(pack_by_pillow(pixels, compress_level=1))
    low, mid, high = median_with_interval(ratios)
    rate = pixels.nbytes / statistics.median(ours) / MB
    results.put(
        f"PNG of a {name}, against Pillow",
        f"{mid:.1f} x ({low:.1f} to {high:.1f}); {rate:.0f} MB/s",
        ">= 10 x",
        mid >= 10,
    )
    share = len(packed) / quick
    results.put(f"PNG of a {name}, size against Pillow's level 1", f"{share:.3f} x", "<= 1.05 x", share <= 1.05)


def main() -> None:
    options = options_of(__doc__).parse_args()
    results = Results(options.results)
    for name, pixels in pictures().items():
        measure(results, name, pixels, 3 if options.quick else 9)


if __name__ == "__main__":
    main()
