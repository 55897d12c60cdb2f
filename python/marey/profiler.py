"""Call profiles: the number of calls and the time of each function, by caller, on all threads.

    import marey

    with marey.Profile() as p:
        main()
    p.print_stats("cumulative")

A Profile has the methods of cProfile.Profile and its table, split by the arguments of functions; it profiles all
threads, and keeps exact call paths, which plot(p) draws and `marey report --calls` reads. Stats is pstats.Stats.
"""

from __future__ import annotations

import os

from marey import _native
from marey._plot import plot
from marey._signatures import level_of, register, signature

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than the rest of the module
    from collections.abc import Callable, Sequence
    from pstats import Stats
    from typing import Any, Optional, TypeVar, Union

    R = TypeVar("R")
    Sort = Union[str, int]

__all__ = ["Profile", "Stats", "plot", "register", "run", "runctx", "signature"]


def __getattr__(name: str) -> Any:
    if name != "Stats":
        raise AttributeError(f"module 'marey.profiler' has no attribute {name!r}")
    import pstats  # importing it takes longer than all of marey

    return pstats.Stats


class Profile(_native.Profiler):
    """Count calls between enable() and disable(), on all threads.

    `timer` is a function that returns the time: a float of seconds, or an int in units of `timeunit` seconds. `cpu`
    measures the CPU time of each thread. Without `subcalls` the table has no callers, without `builtins` no functions
    written in C. `modules` are names of modules or packages: other functions are not counted, and cost nothing from
    Python 3.12 on. `memory` is a budget in bytes (default 64 MiB).

    `signatures` selects how much of a call's arguments makes a separate row: False or "none", "types", "dtype", "shape"
    (True), "layout"; `depth` limits nested lists and dicts (2), `most` is the number of signatures a function may have
    before shapes become ranges (64), `requires_grad` includes that flag in signatures of tensors. Without signatures
    the table is cProfile's.
    """

    stats: dict[tuple[str, int, str], tuple[int, int, float, float, dict[tuple[str, int, str], Any]]]

    _is_running = False  # inside a decorated function

    def __init__(
        self,
        timer: Optional[Callable[[], float]] = None,
        timeunit: float = 0.0,
        subcalls: bool = True,
        builtins: bool = True,
        signatures: Union[bool, str] = True,
        *,
        modules: Union[str, Sequence[str], None] = None,
        cpu: bool = False,
        memory: int = 0,
        depth: int = 0,
        most: int = 0,
        requires_grad: bool = False,
    ) -> None:
        level = level_of(signatures)
        super().__init__(timer, timeunit, subcalls, builtins, level, modules, cpu, memory, depth, most, requires_grad)

    # pstats accepts objects with create_stats() and stats.

    def print_stats(self, sort: Union[Sort, tuple[Sort, ...]] = -1) -> None:
        """Print the table, sorted by one or more keys of pstats."""
        import pstats

        keys = sort if isinstance(sort, tuple) else (sort,)
        pstats.Stats(self).strip_dirs().sort_stats(*keys).print_stats()  # type: ignore[arg-type]

    def dump_stats(self, file: Union[str, os.PathLike[str]]) -> None:
        """Write a file for pstats, snakeviz and similar tools."""
        import marshal

        from marey._replace import replacing

        self.create_stats()
        with replacing(file, "wb") as out:
            marshal.dump(self.stats, out)

    def create_stats(self) -> None:
        """Disable, and create the dictionary `stats` for pstats."""
        self.disable()
        self.snapshot_stats()

    def snapshot_stats(self) -> None:
        """Create the dictionary `stats` from the calls that have ended."""
        self.stats = self._stats()

    def save(self, file: Union[str, os.PathLike[str]]) -> None:
        """Write exact paths of all threads to a file for marey.load() and `marey report --calls`."""
        from marey._replace import replacing

        with replacing(file, "wb") as out:
            self._write(out)

    def run(self, cmd: str) -> Profile:
        """Profile Python code in the namespace of __main__."""
        import __main__

        return self.runctx(cmd, __main__.__dict__, __main__.__dict__)

    def runctx(self, cmd: str, globals: dict[str, Any], locals: dict[str, Any]) -> Profile:
        """Profile Python code in these namespaces."""
        self.enable()
        try:
            exec(cmd, globals, locals)
        finally:
            self.disable()
        return self

    def runcall(self, func: Callable[..., R], /, *args: Any, **kw: Any) -> R:
        """Profile one call, and return its result."""
        self.enable()
        try:
            return func(*args, **kw)
        finally:
            self.disable()

    def __call__(self, func: Callable[..., R]) -> Callable[..., R]:
        """Decorate a function: its calls are profiled, and summed."""
        from functools import wraps

        @wraps(func)
        def profiled(*args: Any, **kw: Any) -> R:
            if self._is_running:  # recursive
                return func(*args, **kw)
            self._is_running = True
            try:
                return self.runcall(func, *args, **kw)
            finally:
                self._is_running = False

        return profiled

    def __enter__(self) -> Profile:
        self.enable()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.disable()


def run(statement: str, filename: Optional[str] = None, sort: Sort = -1) -> None:
    """Run Python code and print its table, or write it to `filename` for pstats."""
    import __main__

    runctx(statement, __main__.__dict__, __main__.__dict__, filename, sort)


def runctx(
    statement: str, globals: dict[str, Any], locals: dict[str, Any], filename: Optional[str] = None, sort: Sort = -1
) -> None:
    """The same in these namespaces."""
    profile = Profile()
    try:
        profile.runctx(statement, globals, locals)
    except SystemExit:
        pass
    finally:
        if filename is not None:
            profile.dump_stats(filename)
        else:
            profile.print_stats(sort)
