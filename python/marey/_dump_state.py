"""Settings of a TensorDumper (ranges, converters, actions) and of the values of one call."""

from __future__ import annotations

import enum

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Optional, Union

    Parts = tuple[Union[str, int], ...]
    Axes = Optional[Sequence[int]]

TENSORS, GRADIENTS = 0, 1


class Type(enum.IntEnum):
    """The file type of a value."""

    JSON = 0
    BINARY = 1
    IMAGE_RGB = 2
    IMAGE_BGR = 3
    IMAGE_I = 4
    PICKLE = 5
    NPY = 6
    SAFETENSORS = 7

    @classmethod
    def is_image(cls, dump_type: Type) -> bool:
        """Whether it is an image format."""
        return dump_type in (cls.IMAGE_RGB, cls.IMAGE_BGR, cls.IMAGE_I)


class State:
    """The settings made since the dumper was enabled."""

    def __init__(self) -> None:
        """Start with the defaults."""
        self.renew()

    def renew(self) -> None:
        """Restore the defaults."""
        self.layout = "marey"
        self.steps: Optional[frozenset[int]] = None
        self.ranges: list[str] = []
        self.converters: dict[type, Callable[[Any], Any]] = {}
        self.base_converters: dict[type, Callable[[Any], Any]] = {}
        self.ragged: Optional[bool] = None  # True: as samples
        self.forced: list[Optional[Type]] = [None, None]  # by tree
        self.comparison: Optional[dict[str, Any]] = None
        self.actions: dict[int, Callable[[], Any]] = {}
        self.find: Optional[tuple[bool, bool, float]] = None  # NaN, infinities, limit
        self.when: Optional[Callable[[str, Any], Any]] = None
        self.reason: Optional[str] = None  # why this step is written, if known

    def tell(self) -> None:
        """Update in the extension whether plain tensors need Python code; call it after each change."""
        asks = (self.ranges, self.converters, self.base_converters, self.when, self.steps is not None)
        _native.dump_simple(not any(asks) and self.forced[TENSORS] is None)


state = State()
state.tell()


def is_wanted() -> bool:
    """Whether values added now are kept."""
    if state.steps is not None and _native.TensorDumper().dump_count not in state.steps:
        return False
    return _native.dump_is_wanted()


def name_of(parts: Parts) -> str:
    """Format a path for messages: "a.b[3]"."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text[1:] if text.startswith(".") else text


_NOTHING: frozenset[str] = frozenset()
_NO_TYPES: Mapping[str, Type] = {}
_NO_AXES: Mapping[str, Axes] = {}


class How:
    """Settings for the values of one call."""

    __slots__ = ("exclude", "hand_over", "image", "permutation", "permutations", "tree", "type", "types")

    def __init__(
        self,
        tree: int,
        dump_type: Optional[Type],
        types: Optional[Mapping[str, Type]],
        permutation: Axes,
        permutations: Optional[Mapping[str, Axes]],
        exclude: Union[str, Iterable[str], None],
        image: Optional[Mapping[str, Any]],
        hand_over: bool = False,
    ) -> None:
        forced = state.forced[tree]
        self.tree = tree
        self.type = forced if forced is not None else None if dump_type is None else Type(dump_type)
        self.types = types if forced is None and types else _NO_TYPES
        self.permutation = permutation
        self.permutations = permutations or _NO_AXES
        self.exclude = frozenset((exclude,) if isinstance(exclude, str) else exclude) if exclude else _NOTHING
        self.image = image
        self.hand_over = hand_over

    def below(self, key: str) -> How:
        """Return the settings below a key. The nearest key with an override decides."""
        if key not in self.types and key not in self.permutations:
            return self
        how = object.__new__(How)
        for name in How.__slots__:
            setattr(how, name, getattr(self, name))
        if key in self.types:
            how.type = Type(self.types[key])
        how.permutation = self.permutations.get(key, self.permutation)
        return how
