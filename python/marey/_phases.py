"""The phases of a training step, for every trainer: one vocabulary, one stack, one leader.

    from marey._phases import phases

    with phases("forward"):
        loss = model(batch)

Entering a phase makes it the recording's phase and begins a range of category "phase" with that name; leaving it
restores the previous phase. While a window of torch's profiler records, it is a `marey:NAME` annotation of torch's
trace as well. Without a recording and without a window a phase is a test of the enable word.

Phases are the program's, not a thread's: they are for the thread that trains.
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
    """`with phases(name):`. It holds nothing, so one serves all."""

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
    """The stack of phases; there is one, `phases`. The stack itself is in C: it is used where nothing is warm."""

    def __init__(self) -> None:
        """Make one, with nothing entered."""
        self._blocks = {name: _Block(name) for name in NAMES}
        self._leader: Optional[object] = None

    annotate = staticmethod(_native.phase_annotate)
    """Let each phase also be `annotation("marey:NAME")`, as torch's record_function makes them; None: no longer."""

    enter = staticmethod(_native.phase_enter)
    """Begin a phase. One that goes on already is not begun twice: a callback and a monitor may both say so."""

    leave = staticmethod(_native.phase_leave)
    """End the phase that was entered last; what was there before goes on. Without one, do nothing."""

    def __call__(self, name: str) -> _Block:
        """`with phases("forward"):`."""
        block = self._blocks.get(name)
        if block is None:
            raise _phase_names.unknown(name)
        return block

    @property
    def depth(self) -> int:
        """How many are entered; unwind() comes back to it."""
        return _native.phase_depth()

    @property
    def now(self) -> Optional[str]:
        """The current phase, from any driver."""
        name = _native.phase_now()
        return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name

    def unwind(self, depth: int = 0) -> None:
        """Leave all but the first `depth`: an exception went past those who would have left them."""
        while self.depth > depth:
            self.leave()

    # ---- the driver of iterations and epochs ----

    @property
    def leader(self) -> Optional[object]:
        """Who leads now."""
        return self._leader

    def lead(self, who: object) -> bool:
        """Whether `who` drives phases, iterations and epochs: the first one to ask, until follow()."""
        if self._leader is None:
            self._leader = who
        return self._leader is who

    def follow(self, who: object) -> None:
        """No longer lead, if `who` does."""
        if self._leader is who:
            self._leader = None


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
