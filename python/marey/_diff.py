"""Did the numbers change, and where first? Comparing two dumps, as `marey diff` does, and two calls of a function."""

from __future__ import annotations

import os

from marey._report import Report, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal, Optional, Union

    from marey import _tools
    from marey._table import Row, Table

    Path = Union[str, os.PathLike[str]]


class Diff:
    """The result of marey.diff(). Prints like `marey diff`.

    `same` is true when nothing differs, `partial` when something could not be compared. `first` is the first
    difference in the order of execution, a dict with step, rank, phase, seq, path, status, index, a, b, bits_a, bits_b
    and more, or None. `operation` is the first operation whose inputs agree and whose outputs do not, or None.
    """

    def __init__(self, native: _tools.Report) -> None:
        """Wrap a report of the reader."""
        self.report = Report("diff", native)
        self.same = len(self.report["first"]) == 0
        self.partial = any(self.report["steps"]["unknown"])
        self._loaded: Optional[dict[str, Any]] = None

    @property
    def first(self) -> Optional[dict[str, Any]]:
        """The first difference; `index` is a tuple, `a` and `b` are numbers if the values are."""
        first: Optional[dict[str, Any]] = self._load()["first"]
        if first is not None and first["index"] is not None:
            first = {**first, "index": tuple(first["index"])}
        return first

    @property
    def operation(self) -> Optional[Row]:
        """The first operation whose inputs agree and whose outputs do not, with errors and their growth."""
        return next(iter(self.operations), None)

    @property
    def tensors(self) -> Table:
        """One row per pair of values, in the order of execution: path, status, n_wrong, max_abs, max_rel, ..."""
        return self.report["tensors"]

    @property
    def operations(self) -> Table:
        """All operations whose inputs agree and whose outputs do not."""
        return self.report["operations"]

    @property
    def steps(self) -> Table:
        """Counts of equal, close, different and missing values of each step."""
        return self.report["steps"]

    @property
    def warnings(self) -> list[str]:
        """Notes on the comparison: changed types, values that could not be compared."""
        return list(self.report["warnings"]["text"])

    def to_json(self) -> str:
        """Return the output of `marey diff --json`."""
        return self.report.json()

    def _load(self) -> dict[str, Any]:
        if self._loaded is None:
            import json

            self._loaded = json.loads(self.to_json())
        return self._loaded

    def __repr__(self) -> str:
        return self.report.text(limit=30).rstrip("\n")

    def _repr_html_(self) -> str:
        """Show it in a notebook: the sentence, then the tensors. Names come from programs, so everything is escaped."""
        from html import escape

        return f"<p>{escape(self._load()['summary'])}</p>{self.tensors._repr_html_()}"


def diff(
    a: Path,
    b: Optional[Path] = None,
    *,
    atol: Optional[float] = None,
    rtol: Optional[float] = None,
    ulp: Optional[int] = None,
    tolerances: Optional[Mapping[str, Union[float, Sequence[float]]]] = None,
    bitwise: bool = False,
    equal_nan: bool = True,
    allow_dtype: bool = False,
    noise: Optional[Path] = None,
    noise_factor: float = 3.0,
    filter: Optional[str] = None,
    step: Optional[int] = None,
    rank: Optional[int] = None,
    ranks: bool = False,
    merge_ranks: bool = False,
    partial: Sequence[str] = (),
    allow_missing: bool = False,
    allow_extra: bool = False,
) -> Diff:
    """Compare dump `a`, the new one, with dump `b`, the reference: directories or files, in any format.

    Two numbers agree when |a - b| <= atol + rtol * |b|, or when they are at most `ulp` representable numbers apart.
    Without any of the three, the tolerance is that of torch.testing.assert_close for the type. `tolerances` sets others
    by path pattern: {"*.grad": 1e-4, "*norm*": (0, 1e-3)}; the last match wins. `noise` is a second run of the
    reference: differences up to `noise_factor` times as large as between the two are ignored. With `ranks` the ranks of
    `a` are compared with the lowest one. With `merge_ranks` the ranks of one side are merged, to be compared with the
    only one of the other: shards are concatenated, replicas kept, and tensors that match a pattern of `partial` summed.
    A tensor whose dtype changed differs, unless `allow_dtype`; its numbers are compared in a type that represents both.
    """
    from marey import _tools

    if (b is None) != ranks:
        raise ValueError("diff() takes two dumps, or one with ranks=True")
    if bitwise and allow_dtype:
        raise ValueError("bitwise and allow_dtype exclude each other")
    for part in (atol, rtol, ulp):
        _tolerance(part or 0)
    settings = settings_of(
        {
            "atol": atol,
            "rtol": rtol,
            "ulp": ulp,
            "bitwise": bitwise,
            "no_nan_equal": not equal_nan,
            "allow_dtype": allow_dtype,
            "noise_factor": noise_factor if noise is not None else None,
            "filter": filter,
            "step": step,
            "rank": rank,
            "ranks": ranks,
            "merge_ranks": merge_ranks,
            "allow_missing": allow_missing,
            "allow_extra": allow_extra,
        }
    )
    several: tuple[Union[str, bytes], ...] = (
        *(f"tolerance={pattern}={_tolerance(parts)}" for pattern, parts in (tolerances or {}).items()),
        *(f"partial={pattern}" for pattern in partial),
        *(b"noise=" + os.fsencode(path) for path in (noise,) if path is not None),
    )
    paths = tuple(os.fsencode(path) for path in (a, b) if path is not None)
    return Diff(_tools.report_files("diff", paths, (*settings, *several)))


def _tolerance(parts: Union[float, Sequence[float]]) -> str:
    """Format as "atol,rtol,ulp"."""
    listed = [parts] if isinstance(parts, (int, float)) else list(parts)
    if len(listed) > 3 or any(not 0 <= part < float("inf") for part in listed):
        raise ValueError(f"a tolerance is up to three non-negative numbers (atol, rtol, ulp), not {parts!r}")
    return ",".join(str(float(part)) for part in listed) or "0"


def check_deterministic(
    fn: Callable[..., Any],
    *args: Any,
    runs: int = 2,
    seed: Optional[int] = None,
    values: bool = False,
    **kwargs: Any,
) -> Diff:
    """Call `fn(*args, **kwargs)` several times and check whether the results are bitwise equal.

    Compares the return values (tensors, arrays, numbers, nested in dicts and lists) and the values it adds to
    marey.TensorDumper, which must be off before. Only digests are kept, or all numbers with `values`, so that the Diff
    shows how much they differ. `seed` seeds random, numpy and torch before each run, if they are imported. Returns the
    Diff of the first run that differs, or that of the last.
    """
    import tempfile

    if runs < 2:
        raise ValueError(f"runs must be at least 2, not {runs!r}")
    with tempfile.TemporaryDirectory(prefix="marey-deterministic-") as folder:
        for number in range(runs):
            if seed is not None:
                _seed(seed)
            with recording_to(os.path.join(folder, str(number)), mode="full" if values else "digests") as dumper:
                add(dumper, "result", fn(*args, **kwargs))
            if number > 0:
                found = diff(os.path.join(folder, str(number)), os.path.join(folder, "0"), bitwise=True)
                if not found.same:
                    break
    return found


def _seed(seed: int) -> None:
    import random
    import sys

    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


class recording_to:
    """Switch marey.TensorDumper on for a block; the last step is written at its end."""

    def __init__(self, directory: Path, *, mode: Literal["full", "digests"] = "full") -> None:
        """Store the directory; the dumper must be off."""
        self._directory, self._mode = directory, mode

    def __enter__(self) -> Any:
        from marey import StateError, TensorDumper

        self._dumper = TensorDumper()
        if self._dumper.is_enabled:
            raise StateError("marey.TensorDumper is on already; switch it off first: TensorDumper().disable()")
        self._dumper.enable(self._directory, mode=self._mode)
        return self._dumper

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        try:
            if kind is None:
                self._dumper.dump(dump_if_empty=False)
        finally:
            self._dumper.disable()


def add(dumper: Any, path: str, data: Any) -> None:
    """Add the return value of a function. Numbers and None, which need a name in a dump, get one."""
    if data is not None:
        dumper.add_tensor_data(path, data if isinstance(data, (dict, list, tuple)) or _has_data(data) else {"": data})


def _has_data(value: Any) -> bool:
    return not isinstance(value, (int, float, bool, complex))
