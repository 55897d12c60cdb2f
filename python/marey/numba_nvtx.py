"""Ranges for code compiled by Numba, and plain Python: by handle, without the GIL.

    from marey import numba_nvtx

    STEP = numba_nvtx.register_string("step")

    @numba.njit(nogil=True)
    def solve(x):
        numba_nvtx.range_push(STEP)
        ...
        numba_nvtx.range_pop()

They are ordinary ranges of the open recording, and of an NVTX tool if there is one. A handle depends only on its name,
so a function that Numba caches on disk (cache=True) also works in the next process, after it registers the name.
Without Numba the three functions work in plain Python.
"""

from __future__ import annotations

import contextlib

from marey._native import nvtx_addresses as _addresses
from marey._native import nvtx_pop_handle as range_pop
from marey._native import nvtx_push_handle as range_push
from marey._native import nvtx_register as register_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

__all__ = ["range_pop", "range_push", "register_string"]


def _teach_numba() -> None:
    """Make compiled code call libmarey's two functions directly by address, without Python in between."""
    import llvmlite.binding
    from numba.core import types
    from numba.extending import overload

    for name, address in _addresses().items():
        llvmlite.binding.add_symbol(name, address)
    push = types.ExternalFunction("marey_nvtx_push_handle", types.void(types.uint64))
    pop = types.ExternalFunction("marey_nvtx_pop_handle", types.void())

    # Numba compares the signatures of compiled functions with those of their wrappers, including annotations.
    @overload(range_push)
    def compile_push(handle: Any) -> Optional[Callable[[Any], None]]:
        def compiled(handle: Any) -> None:
            push(handle)

        return compiled if isinstance(handle, types.Integer) else None

    @overload(range_pop)
    def compile_pop() -> Callable[[], None]:
        def compiled() -> None:
            pop()

        return compiled


with contextlib.suppress(ImportError):
    _teach_numba()
