"""Ranges over functions that suspend and resume: generators, coroutines, async generators.

A generator runs from a resume to the next yield, on the resuming thread; each such run is a range. A coroutine waits
while other tasks run, so it is one async range, which is not on a thread's stack; an async generator has one for each
requested item.

Each wrapper has the same kind as the wrapped function, so that inspect and asyncio still recognize it.
"""

from __future__ import annotations

import functools

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from typing import Any, TypeVar

    Yielded = TypeVar("Yielded")
    Sent = TypeVar("Sent")
    Returned = TypeVar("Returned")


def wrap_generator(
    range_: _native.Range, function: Callable[..., Generator[Yielded, Sent, Returned]]
) -> Callable[..., Generator[Yielded, Sent, Returned]]:
    """Make each resume of the generator a range."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Yielded, Sent, Returned]:
        generator = function(*args, **kwargs)
        # throw() also handles close(), which raises GeneratorExit here.
        resume: Callable[[Any], Yielded] = generator.send
        value: Any = None
        while True:
            try:
                with range_:
                    item = resume(value)
            except StopIteration as stop:
                returned: Returned = stop.value
                return returned
            finally:
                value = None  # a stored exception would keep its frames alive
            try:
                value = yield item
                resume = generator.send
            except BaseException as error:
                value = error
                resume = generator.throw

    return wrapper


def wrap_coroutine(
    range_: _native.Range, function: Callable[..., Coroutine[Any, Any, Returned]]
) -> Callable[..., Coroutine[Any, Any, Returned]]:
    """Make the coroutine an async range from its first step to its end."""

    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Returned:
        handle = _native.async_begin(range_)
        try:
            return await function(*args, **kwargs)
        finally:
            _native.async_end(handle)

    return wrapper


def wrap_async_generator(
    range_: _native.Range, function: Callable[..., AsyncGenerator[Yielded, Sent]]
) -> Callable[..., AsyncGenerator[Yielded, Sent]]:
    """Make each item of the async generator an async range, from the request to the item."""

    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Yielded, Sent]:
        generator = function(*args, **kwargs)
        resume: Callable[[Any], Coroutine[Any, Any, Yielded]] = generator.asend
        value: Any = None
        while True:
            handle = _native.async_begin(range_)
            try:
                item = await resume(value)
            except StopAsyncIteration:
                return
            finally:
                _native.async_end(handle)
                value = None
            try:
                value = yield item
                resume = generator.asend
            except BaseException as error:
                value = error
                resume = generator.athrow

    return wrapper
