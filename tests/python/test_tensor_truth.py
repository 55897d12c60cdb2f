"""Statistics and comparisons of tensors against numpy and torch, by other means, on every level of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from optional_parts import needs_digests
from tensor_calls import Library

LEVELS = ("plain", "avx2", "avx512")
NONE = 2**64 - 1
FP8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
TORCH_FLOATS = ("float16", "bfloat16", *FP8)


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    library = Library()
    yield library
    library.force(None)


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, library: Library) -> Iterator[str]:
    if not library.force(request.param):
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    library.force(None)


# ---- the reference ----


def places(values: Any, bits: int) -> list[int]:
    """Where numbers stand among those of their type, from their bits."""
    half = 1 << (bits - 1)
    return [-(int(x) - half) if int(x) >= half else int(x) for x in values]


class Reference:
    """What marey_tensor_compare promises, element by element, from values in float32 or float64 and places."""

    def __init__(self, a: Any, b: Any, places_a: list[int], places_b: list[int], tolerance: dict[str, Any]) -> None:
        most = float(np.finfo(a.dtype).max)
        abs_, rel = (a.dtype.type(min(tolerance.get(key, 0), most)) for key in ("abs", "rel"))
        with np.errstate(all="ignore"):
            distance = np.abs(a - b)
            allowed = abs_ + rel * np.abs(b)
        self.finite = np.isfinite(a) & np.isfinite(b)
        apart = np.array([abs(x - y) for x, y in zip(places_a, places_b)], dtype=object)
        nan_a, nan_b = np.isnan(a), np.isnan(b)
        both = nan_a & nan_b
        equal = both | (a == b)
        near = self.finite & ((distance <= allowed) | (apart <= tolerance.get("ulp", 0)).astype(bool))
        right = np.where(both, bool(tolerance.get("nan_equal")), equal | near)
        self.n_wrong, self.n_unequal = int((~right).sum()), int((~equal).sum())
        self.first_wrong = int(np.argmin(right)) if self.n_wrong else NONE
        self.n_nan = int(nan_a.sum()), int(nan_b.sum()), int((nan_a != nan_b).sum())
        self.distance, self.apart = distance, apart
        self.a, self.b = a[self.finite].astype(np.longdouble), b[self.finite].astype(np.longdouble)
        self.reference = np.abs(b)

    def worst(self, measure: Any, where: Any) -> tuple[float, int]:
        best, index = 0, NONE
        for i in np.flatnonzero(where):
            if measure[i] > best:
                best, index = measure[i], int(i)
        return float(best), index


def expect_worst(got: Any, expected: tuple[float, int]) -> None:
    assert (got.value, got.index) == expected


def expect_close(got: float, expected: float, scale: float, what: str) -> None:
    if math.isnan(expected) or math.isinf(expected):
        assert math.isnan(got) if math.isnan(expected) else got == expected, what
    else:
        assert abs(got - expected) <= 3e-6 * scale + 1e-300, what


def expect_diff(diff: Any, r: Reference) -> None:
    assert (diff.n_wrong, diff.n_unequal, diff.first_wrong) == (r.n_wrong, r.n_unequal, r.first_wrong)
    assert (diff.n_nan_a, diff.n_nan_b, diff.n_nan_one) == r.n_nan
    expect_worst(diff.abs, r.worst(r.distance, r.finite))
    expect_worst(diff.ulp, r.worst(r.apart, r.finite))
    with np.errstate(all="ignore"):
        expect_worst(diff.rel, r.worst(r.distance / r.reference, r.finite & (r.distance != 0)))
        d = r.a - r.b
        n = len(d)
        if n == 0:
            assert math.isnan(diff.rmse)
            return
        expect_close(diff.mean_abs, float(np.abs(d).mean()), float(np.abs(d).mean()), "mean_abs")
        expect_close(diff.rmse, float(np.sqrt((d * d).mean())), float(np.sqrt((d * d).mean())), "rmse")
        expect_close(diff.mean_a, float(r.a.mean()), float(np.abs(r.a).max()), "mean_a")
        expect_close(diff.mean_b, float(r.b.mean()), float(np.abs(r.b).max()), "mean_b")
        norms = float(np.sqrt((r.a * r.a).sum()) * np.sqrt((r.b * r.b).sum()))
        cosine = float((r.a * r.b).sum()) / norms if norms > 0 and math.isfinite(norms) else math.nan
        if math.isfinite(norms):
            expect_close(diff.cosine, cosine, 1, "cosine")


TOLERANCES: tuple[dict[str, Any], ...] = (
    {"nan_equal": 1},
    {"abs": 1e-5, "rel": 1.3e-6, "nan_equal": 1},
    {"rel": 1e-3},
    {"ulp": 2, "nan_equal": 1},
    {"abs": 1e300, "rel": 1e300, "nan_equal": 1},
)


def flavours(rng: Any, n: int) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of float64 arrays that are hard in different ways."""
    a = rng.standard_normal(n)
    yield a, a
    yield a, a * (1 + 1e-7 * rng.standard_normal(n))
    yield a, rng.standard_normal(n)
    yield a * 1e-22, a * 1e-22 * (1 + 1e-3 * rng.standard_normal(n))
    yield a * 1e25, a * 1e25 + 1
    specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 5e-324, 1e-40, 3e38, -1.0])
    yield rng.choice(specials, n), rng.choice(specials, n)
    yield np.where(rng.random(n) < 0.5, 0, a), np.where(rng.random(n) < 0.5, 0, a)
    b = a.copy()
    b[n // 2] = np.nan
    yield a, b
    yield np.full(n, 2.0), np.full(n, 3.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_comparisons_are_what_numpy_gives(library: Library, level: str, dtype: str) -> None:
    bits = np.uint32 if dtype == "float32" else np.uint64
    width = 32 if dtype == "float32" else 64
    rng = np.random.default_rng(7)
    for n in (1, 15, 4099):
        for a, b in flavours(rng, n):
            with np.errstate(all="ignore"):
                x, y = a.astype(dtype), b.astype(dtype)
            for tolerance in TOLERANCES:
                diff = library.compare(library.of_numpy(x), library.of_numpy(y), **tolerance)
                expect_diff(diff, Reference(x, y, places(x.view(bits), width), places(y.view(bits), width), tolerance))


@pytest.mark.needs_torch
@pytest.mark.parametrize("dtype", TORCH_FLOATS)
def test_every_pattern_of_bits_means_what_torch_says(library: Library, level: str, dtype: str) -> None:
    """All 65536 or 256 values against all of them in another order: statistics, comparisons, texts."""
    import torch

    bits = 16 if dtype in ("float16", "bfloat16") else 8
    raw = np.arange(1 << bits, dtype=np.uint16 if bits == 16 else np.uint8)
    other = np.random.default_rng(3).permutation(raw)
    as_torch = [torch.from_numpy(x.copy()).view(getattr(torch, dtype)) for x in (raw, other)]
    values = [x.float().numpy() for x in as_torch]
    with np.errstate(invalid="ignore"):  # some NaN are signalling ones
        wide = values[0].astype(np.float64)
    expect_stats(library.stats(library.of_torch(as_torch[0])), wide, dtype)
    kinds = [x.astype(int) for x in (raw, other)]
    where = kinds if dtype == "float8_e8m0fnu" else [places(x, bits) for x in kinds]
    for tolerance in ({"nan_equal": 1}, {"abs": 1e-2, "rel": 0.1}, {"ulp": 5}):
        diff = library.compare(library.of_torch(as_torch[0]), library.of_torch(as_torch[1]), **tolerance)
        expect_diff(diff, Reference(values[0], values[1], list(where[0]), list(where[1]), tolerance))


@pytest.mark.needs_torch
@pytest.mark.parametrize("dtype", TORCH_FLOATS)
def test_a_narrower_type_is_compared_as_it_is_and_rounding_is_torchs(library: Library, dtype: str) -> None:
    """float32 and float64 against what torch rounds them to: as many differ as in float64."""
    import torch

    rng = np.random.default_rng(5)
    exponents = rng.uniform(-30, 18, 20000)
    x = (rng.choice([-1, 1], 20000) * 2.0**exponents).astype(np.float32)
    ties = np.arange(-2048, 2048, dtype=np.float32) / 16
    edges = [0, -0.0, np.inf, -np.inf, np.nan, 447, 448, 464, 465, 480, 57344, 61440, 65519, 65520, 1e9]
    x = np.concatenate([x, ties, edges]).astype(np.float32)
    if dtype == "float8_e8m0fnu":
        x = np.abs(x[np.isfinite(x) & (x != 0)])
    elif dtype == "float8_e4m3fn":
        x = x[~np.isinf(x)]  # torch makes a number of it, which must not pass
    narrow = torch.from_numpy(x).to(getattr(torch, dtype))
    exact = narrow.to(torch.float64).numpy()
    n_unequal = int((~((x == exact) | (np.isnan(x) & np.isnan(exact)))).sum())
    assert n_unequal > 0
    for wide in (x, x.astype(np.float64)):
        diff = library.compare(library.of_numpy(wide), library.of_torch(narrow), nan_equal=1)
        assert (diff.n_wrong, diff.n_unequal) == (n_unequal, n_unequal)
    bits = narrow.view(torch.uint8 if narrow.element_size() == 1 else torch.int16).numpy().tolist()
    mask = 0xFF if narrow.element_size() == 1 else 0xFFFF
    for value, expected in zip(x.tolist(), bits):
        if not math.isnan(value):
            assert library.narrow(dtype, value) == expected & mask, value


@pytest.mark.needs_torch
def test_agreement_is_that_of_torch_isclose(library: Library, level: str) -> None:
    import torch

    rng = np.random.default_rng(11)
    for dtype in (torch.float32, torch.float64):
        a = torch.from_numpy(rng.standard_normal(50000)).to(dtype)
        b = a * (1 + 2e-6 * torch.from_numpy(rng.standard_normal(50000)).to(dtype))
        a[::97], b[::89] = math.nan, math.inf
        for rtol, atol in ((1.3e-6, 1e-5), (1e-6, 0), (0, 1e-6)):
            expected = int((~torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)).sum())
            diff = library.compare(library.of_torch(a), library.of_torch(b), abs=atol, rel=rtol, nan_equal=1)
            assert diff.n_wrong == expected


def test_needed_tolerances_pass_and_less_does_not(library: Library, level: str) -> None:
    rng = np.random.default_rng(13)
    for dtype in ("float32", "float64", "float16"):
        a = rng.standard_normal(30000).astype(dtype)
        b = (a * (1 + 1e-2 * rng.standard_normal(30000))).astype(dtype)
        x, y = library.of_numpy(a), library.of_numpy(b)
        diff = library.compare(x, y)
        assert library.compare(x, y, abs=diff.needs_abs).n_wrong == 0
        assert library.compare(x, y, rel=diff.needs_rel).n_wrong == 0
        assert library.compare(x, y, ulp=int(diff.needs_ulp)).n_wrong == 0
        assert library.compare(x, y, abs=diff.needs_abs * 0.9999).n_wrong > 0
        assert library.compare(x, y, rel=diff.needs_rel * 0.9999).n_wrong > 0
        assert library.compare(x, y, ulp=int(diff.needs_ulp) - 1).n_wrong > 0


# ---- statistics ----

LEAST_NORMAL = {
    "float64": -1022,
    "float32": -126,
    "bfloat16": -126,
    "float16": -14,
    "float8_e4m3fn": -6,
    "float8_e5m2": -14,
    "float8_e4m3fnuz": -7,
    "float8_e5m2fnuz": -15,
    "float8_e8m0fnu": -127,
}


def expect_stats(stats: Any, x: Any, dtype: str) -> None:
    """`x` has the values in float64."""
    finite = x[np.isfinite(x)]
    least = math.ldexp(1, LEAST_NORMAL[dtype])
    assert stats.n == len(x)
    assert (stats.n_nan, stats.n_pos_inf, stats.n_neg_inf) == tuple(
        int(f(x).sum()) for f in (np.isnan, np.isposinf, np.isneginf)
    )
    assert (stats.n_zero, stats.n_negative) == (int((x == 0).sum()), int((x < 0).sum()))
    assert stats.n_denormal == int(((np.abs(finite) < least) & (finite != 0)).sum())
    bins = np.clip(np.frexp(np.abs(finite[finite != 0]))[1] - 1 + 40, 0, 63)
    assert list(stats.histogram) == list(np.bincount(bins, minlength=64))
    if len(finite) == 0:
        assert math.isnan(stats.mean)
        return
    assert (stats.min, stats.max) == (finite.min(), finite.max())
    wide = finite.astype(np.longdouble)
    scale = float(np.abs(wide.mean()) + wide.std())
    expect_close(stats.mean, float(wide.mean()), scale, "mean")
    expect_close(stats.std, float(wide.std()), scale, "std")
    l2 = float(np.sqrt((wide * wide).sum()))
    expect_close(stats.l2, l2, l2, "l2")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_statistics_are_what_numpy_gives(library: Library, level: str, dtype: str) -> None:
    rng = np.random.default_rng(17)
    for n in (1, 15, 4099, 20000):
        for a, b in flavours(rng, n):
            for values in (a, b):
                with np.errstate(all="ignore"):
                    x = values.astype(dtype)
                expect_stats(library.stats(library.of_numpy(x)), x.astype(np.float64), dtype)
        with np.errstate(all="ignore"):
            x = (2.0 ** rng.uniform(-60, 40, n)).astype(dtype)
        expect_stats(library.stats(library.of_numpy(x)), x.astype(np.float64), dtype)


# ---- layouts ----


@needs_digests
def test_views_of_every_kind_compare_as_their_copies(library: Library) -> None:
    rng = np.random.default_rng(19)
    base = rng.standard_normal((6, 10, 14)).astype(np.float32)
    views = [base[::2, 1:9:3], base[::-1, :, ::-2], base.transpose(2, 0, 1), np.broadcast_to(base[:, :1], base.shape)]
    for view in views:
        other = view + rng.standard_normal(view.shape).astype(np.float32) * np.float32(1e-3)
        copy = np.ascontiguousarray(view)
        strided, plain = library.of_numpy(view), library.of_numpy(copy)
        diffs = [library.compare(x, library.of_numpy(other), rel=1e-4) for x in (strided, plain)]
        assert bytes(diffs[0]) == bytes(diffs[1])
        assert library.digest(strided) == library.digest(plain)
        assert bytes(library.stats(strided)) == bytes(library.stats(plain))


@pytest.mark.needs_torch
def test_an_infinity_is_no_largest_number(library: Library) -> None:
    import torch

    x = np.array([np.inf], dtype=np.float32)
    narrow = torch.from_numpy(x).to(torch.float8_e4m3fn)
    assert library.compare(library.of_numpy(x), library.of_torch(narrow), nan_equal=1).n_wrong == 1


def test_more_than_4_gib_are_counted(library: Library) -> None:
    """One row, expanded: the memory of one, the elements of many."""
    row = np.zeros(1 << 20, dtype=np.uint8)
    row[-1] = 1
    many = library.descriptor(row.ctypes.data, "uint8", [1 << 13, 1 << 20], [0, 1])
    assert library.element(many, (1 << 33) - 1) == "1"
    assert library.element(many, (1 << 33) - 2) == "0"


@pytest.mark.slow
def test_more_than_4_gib_are_compared(library: Library) -> None:
    """Reads 20 GB."""
    row, other = np.ones(1 << 20, dtype=np.float32), np.ones(1 << 20, dtype=np.float32)
    other[5] = 2
    n = 1200
    a = library.descriptor(row.ctypes.data, "float32", [n, 1 << 20], [0, 1])
    b = library.descriptor(other.ctypes.data, "float32", [n, 1 << 20], [0, 1])
    diff = library.compare(a, b, n_threads=0)
    assert (diff.n, diff.n_wrong, diff.first_wrong) == (n << 20, n, 5)
    assert library.stats(a).l2 == math.sqrt(n << 20)
