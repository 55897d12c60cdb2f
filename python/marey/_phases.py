"""The phases of a training step, for every trainer: one set of names, one stack, one leader.

    from marey._phases import phases

    with phases("forward"):
        loss = model(batch)

Entering a phase makes it the recording's phase and begins a range of category "phase" with that name; leaving it
restores the previous phase. While a window of torch's profiler records, it is a `marey:NAME` annotation of torch's
trace as well. Without a recording and without a window a phase is a test of the enable word.

Phases belong to the process, not to a thread: only the training thread uses them.
"""

from __future__ import annotations

from marey import _native, _phase_names

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any, Optional

    Annotation = Callable[[str], AbstractContextManager[Any]]

NAMES = _phase_names.NAMES


class _Block:
    """`with phases(name):`. It has no state, so one object is enough."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        _native.phase_enter(self._name)

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        _native.phase_leave()


class Phases:
    """The only instance, `phases`, is the stack of phases. It is implemented in C, because it runs with cold caches."""

    def __init__(self) -> None:
        """Create an empty stack."""
        self._blocks = {name: _Block(name) for name in NAMES}
        self._leader: Optional[object] = None

    annotate = staticmethod(_native.phase_annotate)
    """Make each phase also an `annotation("marey:NAME")`, such as torch's record_function; None ends this."""

    enter = staticmethod(_native.phase_enter)
    """Begin a phase. Beginning the current phase again has no effect: a callback and a monitor may both do it."""

    leave = staticmethod(_native.phase_leave)
    """End the innermost phase and restore the previous one. Does nothing without an open phase."""

    def __call__(self, name: str) -> _Block:
        """`with phases("forward"):`."""
        block = self._blocks.get(name)
        if block is None:
            raise _phase_names.unknown(name)
        return block

    @property
    def depth(self) -> int:
        """The current depth, for unwind()."""
        return _native.phase_depth()

    @property
    def now(self) -> Optional[str]:
        """The current phase, from any driver."""
        name = _native.phase_now()
        return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name

    def unwind(self, depth: int = 0) -> None:
        """Leave all but the first `depth` phases, after an exception."""
        while self.depth > depth:
            self.leave()

    # ---- the driver of iterations and epochs ----

    @property
    def leader(self) -> Optional[object]:
        """The current leader."""
        return self._leader

    def lead(self, who: object) -> bool:
        """Whether `who` drives phases, iterations and epochs: the first caller does, until follow()."""
        if self._leader is None:
            self._leader = who
        return self._leader is who

    def follow(self, who: object) -> None:
        """Give up the lead, if `who` has it."""
        if self._leader is who:
            self._leader = None


phases = Phases()
annotate = phases.annotate


def attach_model(model: Any) -> Callable[[], None]:
    """Make each call of `model`, an nn.Module, a phase "forward". Call the returned function to restore the model."""

    def begins(*_: Any) -> None:
        phases.enter("forward")

    def ends(*_: Any) -> None:
        phases.leave()

    # Encloses other hooks, which belong to the forward pass. An exception also ends the phase.
    handles = (
        model.register_forward_pre_hook(begins, prepend=True),
        model.register_forward_hook(ends, always_call=True),
    )

    def detach() -> None:
        for handle in handles:
            handle.remove()

    return detach
