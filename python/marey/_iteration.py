"""Iterations, epochs and phases: the progress of the program, for the recording and for the stopwatch.

A process has one count of iterations. The first driver to finish an iteration owns it; a second driver gets one warning
and counts nothing.
"""

from __future__ import annotations

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Any, Optional, TypedDict, TypeVar, Union

    Name = Union[str, bytes]
    Batch = TypeVar("Batch")

    class Progress(TypedDict):
        """The result of marey.progress()."""

        iterations: int
        warmup: int
        epochs: int
        in_epoch: bool
        driver: Optional[str]

    class EpochTimes(TypedDict):
        """Times of the last epoch; the phases and `none_ns` add up to its duration."""

        number: int
        duration_ns: int
        iterations: int
        samples: float
        none_ns: int
        phases: dict[str, int]


class iteration:
    """One iteration: `with marey.iteration(samples=32):`.

    It counts when the block ends. A block that raises is not an iteration and is not counted anywhere. A call without
    `with` counts nothing, and warns once.
    """

    __slots__ = ("_entered", "_samples")
    _warned = False

    def __init__(self, samples: Optional[float] = None) -> None:
        """`samples` is the number of samples in the iteration, for the throughput."""
        self._samples = samples
        self._entered = False

    def __enter__(self) -> None:
        self._entered = True
        _native.iteration_begin()

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        if type is None:
            _native.iteration_finish(self._samples)

    def __del__(self) -> None:
        # The object of a bare statement is freed on that line, so the warning names it.
        if getattr(self, "_entered", True) or iteration._warned:
            return
        iteration._warned = True
        import warnings

        warnings.warn(
            "marey.iteration() without 'with' counts nothing: write 'with marey.iteration():' around the step, "
            "'for batch in marey.iterations(loader, data=\"data\"):' around the loop, or call "
            "marey.finish_iteration() at the end of each step",
            RuntimeWarning,
            stacklevel=2,
        )


class step(iteration):
    """One training step: `with marey.step(samples=32):`. The same as marey.iteration."""

    __slots__ = ()


def finish_iteration(samples: Optional[float] = None) -> bool:
    """End an iteration that began when the previous one ended: one call at the end of the loop body.

    Return whether it counts; it does not if another driver (a Stopwatch, a callback) counts.
    """
    return _native.iteration_finish(samples)


def iterations(
    batches: Iterable[Batch],
    samples: Union[float, Callable[[Batch], float], None] = None,
    data: Optional[Name] = None,
) -> Iterable[Batch]:
    """Make each pass of a loop an iteration: `for batch in marey.iterations(loader, samples=len, data="data"):`.

    `samples` is the number of samples per batch, or a function of the batch. `data` names a range around the wait for
    each batch, so that a report can show its share. len() is the loader's.

    An iteration lasts from the request for the next batch to the end of the loop body. An iteration that is left by
    `break` or an exception is not counted.
    """
    return _Iterations(batches, samples, data)


class _Iterations:
    def __init__(self, batches: Iterable[Any], samples: Any, data: Optional[Name]) -> None:
        self._batches = batches
        self._samples = samples
        self._data = _native.range(data) if data is not None else None

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]  # raises TypeError if the loader has no length

    def __iter__(self) -> Iterator[Any]:
        source = iter(self._batches)
        while True:
            _native.iteration_begin()
            try:
                if self._data is None:
                    batch = next(source)
                else:
                    with self._data:
                        batch = next(source)
            except StopIteration:
                return
            yield batch
            _native.iteration_finish(self._samples(batch) if callable(self._samples) else self._samples)


class epoch:
    """Begin an epoch: `with marey.epoch():`, or a plain call, which also ends the previous one.

    Epochs do not nest. They count from 0; for a resumed training, `number` is the first epoch.
    """

    __slots__ = ()

    def __init__(self, number: Optional[int] = None) -> None:
        """Begin it."""
        _native.epoch_begin(number)

    def end(self) -> None:
        """End the open epoch."""
        _native.epoch_end()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        self.end()


class phase:
    """Begin a phase: `with marey.phase("evaluate"):`, or a plain call; None ends the open one.

    There is one phase at a time. At the end of the block the previous phase continues.
    """

    __slots__ = ("_before",)

    def __init__(self, name: Optional[Name]) -> None:
        """Begin it."""
        self._before = _native.phase(name)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        _native.phase(self._before)
