"""Walks nested data: dicts, lists, converters and records, down to single values."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from marey import _dump_leaves as leaves
from marey import _native
from marey._dump_state import How, Type, name_of, state

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable
    from typing import Any, Optional

    from marey._dump_state import Parts

    Give = Callable[[Parts, Any, How], None]

# Limits of conversions in a row and of nesting; beyond them, data is assumed to be recursive.
MAX_CONVERSIONS = 100
MAX_DEPTH = 100


def add_from_hook(tree: int, parts: Parts, data: Any, dump_type: Optional[Type], phase: str) -> None:
    """Add values from a model's hook. A value that cannot be dumped is reported once and skipped."""
    how = How(tree, dump_type, None, None, None, None, None)

    def give(parts: Parts, value: Any, how: How) -> None:
        try:
            put(parts, value, how, phase)
        except (TypeError, ValueError, _native.MareyError) as error:
            leaves.tell_once(f"TensorDumper: {error}")

    _walk((*ranges(), *parts), data, how, give, 0)


def ranges() -> Parts:
    """The current prefix of paths."""
    return tuple(".".join(state.ranges).split(".")) if state.ranges else ()


def parts_of(path: str) -> Parts:
    """The given path after the prefix of open ranges."""
    if not isinstance(path, str):
        raise TypeError(f"a path is a str, not {type(path).__name__}")
    return (*ranges(), *path.split("."))


def walk_from(path: str, data: Any, how: How, give: Give) -> None:
    """Yield each value in the data added at a path."""
    parts = parts_of(path)
    if callable(data) and _converter(data) is None:
        data = data()
    if state.layout == "accvlab" and (data is None or isinstance(data, (bool, int, float))):
        raise ValueError(f"{path}: ACCV-Lab's layout cannot hold a bare {type(data).__name__}; put it into a dict")
    _walk(parts, data, how, give, 0)


def _walk(parts: Parts, data: Any, how: How, give: Give, depth: int) -> None:
    """Walk dicts, lists and results of converters, and put each leaf."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{name_of(parts)}: data is nested deeper than {MAX_DEPTH} levels; does it contain itself?")
    data = _converted(parts, data)
    if isinstance(data, Mapping):
        if not data:
            give(parts, EMPTY_DICT, how)
        for key, value in data.items():
            name = str(key)
            if name not in how.exclude:
                _walk((*parts, name), value, how.below(name), give, depth + 1)
    elif isinstance(data, (list, tuple)):
        if not data:
            give(parts, EMPTY_LIST, how)
        for i, value in enumerate(data):
            _walk((*parts, i), value, how, give, depth + 1)
    else:
        give(parts, data, how)


EMPTY_DICT, EMPTY_LIST = object(), object()


def _converter(data: Any) -> Optional[Callable[[Any], Any]]:
    """Return its converter: the user's, or marey's own for records and ragged batches."""
    kind = type(data)
    found = state.converters.get(kind)
    if leaves.is_torch(data) and found is None and not state.base_converters:  # the common case
        return _unbound if data.is_nested else None
    if found is None and state.base_converters:
        found = next((function for base, function in state.base_converters.items() if isinstance(data, base)), None)
    if found is not None:
        return found
    if isinstance(data, tuple):
        # The reference writes a named tuple as a list, and its readers expect that.
        return _fields_of_tuple if hasattr(kind, "_fields") and state.layout != "accvlab" else None
    if hasattr(kind, "__dataclass_fields__"):
        return _fields_of_dataclass
    if state.ragged is not None and leaves.is_ragged(data):
        as_per_sample = state.ragged
        return lambda batch: leaves.ragged(batch, as_per_sample)
    return None


def _unbound(data: Any) -> list[Any]:
    return list(data.unbind())


def _fields_of_tuple(data: Any) -> dict[str, Any]:
    return dict(zip(data._fields, data))


def _fields_of_dataclass(data: Any) -> dict[str, Any]:
    return {name: getattr(data, name) for name in data.__dataclass_fields__ if hasattr(data, name)}


def _converted(parts: Parts, data: Any) -> Any:
    for _ in range(MAX_CONVERSIONS):
        converter = _converter(data)
        if converter is None:
            return data
        data = converter(data)
    raise ValueError(
        f"{name_of(parts)}: converters went on for {MAX_CONVERSIONS} rounds and gave a {type(data).__name__} again; "
        f"a converter must not return what it, or another one, takes"
    )


def put(parts: Parts, data: Any, how: How, phase: Optional[str] = None) -> None:
    """Pass a leaf to libmarey, which copies it."""
    if data is EMPTY_DICT or data is EMPTY_LIST:
        _native.dump_put_value(how.tree, parts, leaves.DICT if data is EMPTY_DICT else leaves.LIST, b"")
        return
    literal = leaves.literal(data) if not leaves.is_torch(data) else None
    if literal is not None:
        _native.dump_put_value(how.tree, parts, *literal)
        return
    if not put_tensor(parts, data, how, phase):
        raise TypeError(
            f"{name_of(parts)}: a {type(data).__name__} cannot be dumped; TensorDumper().register_custom_converter() "
            f"takes a function that turns it into tensors, dicts and lists"
        )


def put_tensor(parts: Parts, data: Any, how: How, phase: Optional[str] = None) -> bool:
    """Pass a tensor to libmarey. Returns False if it is not a tensor."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, numpy.ndarray):
        readable = leaves.numpy_array(data)
        if readable is None:
            _walk(parts, data.tolist(), how, put, 1)
            return True
        data = readable
    if state.when is not None and state.reason is None and state.when(name_of(parts), data):
        state.reason = f"{name_of(parts)} met the condition"
    if how.type is Type.PICKLE:
        _native.dump_put_value(how.tree, parts, leaves.BYTES, leaves.pickled(data, how.permutation))
        return True
    number = 0 if how.type is None else how.type + 1
    return _native.dump_put(how.tree, parts, data, number, how.permutation, phase, how.image, how.hand_over)
