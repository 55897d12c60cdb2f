"""The phases of a training step, for every trainer: one vocabulary, one stack, one leader.

    from kymo._phases import phases

    with phases("forward"):
        loss = model(batch)

Entering a phase makes it the recording's phase and begins a range of the category "phase" with that name; leaving it
brings back what was there before. While a window of torch's profiler records, it is a `kymo:NAME` annotation of torch's
trace as well. Without a recording and without a window a phase is a test of the enable word.

Phases are the program's, not a thread's: they are for the thread that trains.
"""

from __future__ import annotations

from kymo import _native
from kymo._iteration import phase as _phase

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any, Callable, Optional

    Annotation = Callable[[str], AbstractContextManager[Any]]

NAMES = ("data", "forward", "backward", "optimizer", "evaluate", "checkpoint", "logging")

_enabled = _native.enabled  # a local name is quicker to find
_texts = {name: f"kymo:{name}" for name in NAMES}


class _Ranges(dict[str, _native.Range]):
    """The range of each phase, made when it is first entered: the first ranges of a program are the quickest."""

    def __missing__(self, name: str) -> _native.Range:
        range_ = self[name] = _native.range(name, category="phase")
        return range_


_ranges = _Ranges()


class _Entered:
    """A phase between enter and leave, and what it has to undo."""

    __slots__ = ("annotation", "before", "name", "range")

    def __init__(self, name: str, annotation: Optional[Annotation]) -> None:
        self.name = name
        self.before = _phase._now
        self.range = _ranges[name] if _enabled() else None
        self.annotation = annotation(_texts[name]) if annotation is not None else None
        _phase._now = name
        if self.range is not None:
            _native.phase(name)
            self.range.__enter__()
        if self.annotation is not None:
            self.annotation.__enter__()

    def leave(self) -> None:
        if self.annotation is not None:
            self.annotation.__exit__(None, None, None)
        _phase._now = self.before
        if self.range is not None:
            self.range.__exit__(None, None, None)
            _native.phase(self.before)


class _Block:
    """`with phases(name):`. It holds nothing, so one serves all."""

    __slots__ = ("_name", "_phases")

    def __init__(self, phases: Phases, name: str) -> None:
        self._phases = phases
        self._name = name

    def __enter__(self) -> None:
        self._phases.enter(self._name)

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        self._phases.leave()


class Phases:
    """The stack of phases; there is one, `phases`."""

    def __init__(self) -> None:
        """Make one, with nothing entered."""
        self._stack: list[Optional[_Entered]] = []  # None: a phase that does nothing
        self._blocks = {name: _Block(self, name) for name in NAMES}
        self._annotation: Optional[Annotation] = None
        self._leader: Optional[object] = None

    def annotate(self, annotation: Optional[Annotation]) -> None:
        """Let each phase also be `annotation("kymo:NAME")`, as torch's record_function makes them; None: no longer."""
        self._annotation = annotation

    def enter(self, name: str) -> None:
        """Begin a phase. One that goes on already is not begun twice: a callback and a monitor may both say so."""
        if not _enabled() and self._annotation is None:
            self._stack.append(None)
        elif name not in _texts:
            raise _unknown(name)
        else:
            self._stack.append(None if _phase._now == name else _Entered(name, self._annotation))

    def leave(self) -> None:
        """End the phase that was entered last; what was there before goes on. Without one, do nothing."""
        if self._stack:
            entered = self._stack.pop()
            if entered is not None:
                entered.leave()

    def __call__(self, name: str) -> _Block:
        """`with phases("forward"):`."""
        block = self._blocks.get(name)
        if block is None:
            raise _unknown(name)
        return block

    @property
    def depth(self) -> int:
        """How many are entered; unwind() comes back to it."""
        return len(self._stack)

    @property
    def now(self) -> Optional[str]:
        """The phase that goes on, whoever began it."""
        name = _phase._now
        return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name

    def unwind(self, depth: int = 0) -> None:
        """Leave all but the first `depth`: an exception went past those who would have left them."""
        while len(self._stack) > depth:
            self.leave()

    # ---- who tells of iterations and epochs ----

    @property
    def leader(self) -> Optional[object]:
        """Who leads now."""
        return self._leader

    def lead(self, who: object) -> bool:
        """Whether `who` may tell of phases, iterations and epochs; the first one to ask, until follow()."""
        if self._leader is None:
            self._leader = who
        return self._leader is who

    def follow(self, who: object) -> None:
        """No longer lead, if `who` does."""
        if self._leader is who:
            self._leader = None


def _unknown(name: str) -> ValueError:
    return ValueError(f"{name!r} is no phase of training: the phases are {', '.join(NAMES)}; use kymo.range for others")


phases = Phases()
annotate = phases.annotate


def attach_model(model: Any) -> Callable[[], None]:
    """Make each call of `model`, an nn.Module, a phase "forward". Call what is returned to have the model as it was."""

    def begins(*_: Any) -> None:
        phases.enter("forward")

    def ends(*_: Any) -> None:
        phases.leave()

    # Around the hooks of others, whose work is the forward pass's too. An exception ends the phase as well.
    handles = (
        model.register_forward_pre_hook(begins, prepend=True),
        model.register_forward_hook(ends, always_call=True),
    )

    def detach() -> None:
        for handle in handles:
            handle.remove()

    return detach
