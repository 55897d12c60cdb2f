"""Gradients by torch.autograd.grad, for tensors between add_grad_data() and dump()."""

from __future__ import annotations

from marey import _dump_leaves as leaves
from marey import _native
from marey._dump_state import How, Type, name_of
from marey._dump_walk import EMPTY_DICT, EMPTY_LIST, put

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from typing import Any

    from marey._dump_state import Parts

NO_GRADIENT = "`.requires_grad == False`"  # ACCV-Lab's text, so that its dumps compare as equal


class _Entry:
    """A tensor whose gradient is requested, or another value of the same call."""

    def __init__(self, parts: Parts, value: Any, how: How) -> None:
        self.parts = parts
        self.value = value
        self.how = how
        self.gradient: Any = None
        self.is_set = False
        self.is_asked = leaves.is_torch(value) and value.requires_grad

    def outcome(self) -> Any:
        """The value to write: the gradient, null if the outputs do not depend on the tensor, or a note."""
        if self.is_asked:
            return self.gradient
        is_plain = self.value is EMPTY_DICT or self.value is EMPTY_LIST or leaves.literal(self.value) is not None
        return self.value if is_plain else NO_GRADIENT


class Gradients:
    """The requested gradients of the current step."""

    def __init__(self) -> None:
        """Start empty."""
        self.entries: list[_Entry] = []
        self._paths: dict[tuple[str, ...], bool] = {}  # True: a value; False: a parent of values

    def clear(self) -> None:
        """Drop them."""
        self.entries = []
        self._paths = {}

    def add(self, parts: Parts, data: Any, how: How) -> None:
        """Store a value. The path is checked now, so that the error points to this call."""
        self._claim(parts, is_value=data is not EMPTY_DICT)
        self.entries.append(_Entry(parts, data, how))

    def _claim(self, parts: Parts, is_value: bool) -> None:
        path = tuple(map(str, parts))
        paths = self._paths
        is_below_value = any(paths.get(path[:i], False) for i in range(1, len(path)))
        if is_below_value or paths.get(path, False) or (is_value and path in paths):
            raise _native.StateError(
                f"the gradient '{name_of(parts)}' cannot be added: something was added there already in this step; "
                f"end the step with dump() before adding it again"
            )
        for i in range(1, len(path)):
            paths.setdefault(path[:i], False)
        if is_value:
            paths[path] = True

    def compute(self, function_values: Any) -> None:
        """Compute all gradients. A second call computes them again, because the tensors are kept."""
        import torch

        outputs = list(function_values) if isinstance(function_values, (list, tuple)) else [function_values]
        asked = [entry for entry in self.entries if entry.is_asked]
        if asked:
            inputs = [entry.value for entry in asked]
            found = torch.autograd.grad(outputs, inputs, retain_graph=True, allow_unused=True)
            for entry, gradient in zip(asked, found):
                entry.gradient = gradient
        for entry in self.entries:
            entry.is_set = True

    def retype(self, dump_type: Type) -> None:
        """Change the file type of all."""
        for entry in self.entries:
            entry.how.type = dump_type

    def put(self) -> None:
        """Pass them to libmarey. Raises ValueError, without passing any, if one was not computed."""
        missing = next((entry for entry in self.entries if not entry.is_set), None)
        if missing is not None:
            raise ValueError(
                f"'{name_of(missing.parts)}' waits for its gradient: call set_gradients() after the last "
                f"add_grad_data() and before dump()"
            )
        for entry in self.entries:
            put(entry.parts, entry.outcome(), entry.how, "backward")
        self.clear()


gradients = Gradients()
