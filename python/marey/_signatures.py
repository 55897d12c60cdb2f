"""Call signatures: their levels, their strings, and the user's formatters."""

from __future__ import annotations

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing or inspect would take longer than the rest of the package
    from collections.abc import Callable
    from typing import Any, Optional, Union

LEVELS: dict[str, int] = {"none": 0, "types": 1, "dtype": 2, "shape": 3, "layout": 4}


def level_of(signatures: Union[bool, str]) -> int:
    """The number of a level: True is "shape", False is "none"."""
    if signatures is True or signatures is False:
        return LEVELS["shape" if signatures else "none"]
    if signatures in LEVELS:
        return LEVELS[signatures]
    raise ValueError(f"signatures={signatures!r} must be one of True, False, {', '.join(map(repr, LEVELS))}")


def register(type: type, formatter: Optional[Callable[[Any], str]]) -> None:
    """Describe values of a type and its subclasses by a function of the value that returns a str.

    It is called for each such argument of each profiled call, so it should be fast. Its callees are not profiled. If it
    raises, a message is printed once, and the value appears as the name of its type. None removes it.
    """
    _native.register(type, formatter)


def signature(
    function: Callable[..., Any],
    /,
    *args: Any,
    signature_level: Union[bool, str] = True,
    **kwargs: Any,
) -> str:
    """Return the signature of a call, as in a profile, without making the call.

    >>> marey.profiler.signature(dot, a, b)
    'dot(a:ndarray(dtype=float32, shape=(16,)), b:ndarray(dtype=float32, shape=(16,)))'
    """
    import inspect

    plain = inspect.unwrap(function)
    if inspect.ismethod(plain):
        args = (plain.__self__, *args)
        plain = plain.__func__
    plain = getattr(plain, "py_func", plain)  # compiled by numba
    if not inspect.isfunction(plain):
        raise TypeError(f"{function!r} is not written in Python, so its arguments cannot be recorded")
    bound = inspect.signature(plain).bind(*args, **kwargs)
    bound.apply_defaults()
    level = level_of(signature_level)
    if level == LEVELS["none"]:
        return plain.__name__
    signer = _native.Signer(level, 0, 0, False)
    number = signer.sign(1, plain.__code__, dict(bound.arguments))
    return _native.signature_display(plain.__name__, signer.texts()[number - 1][0])
