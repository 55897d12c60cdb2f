"""Operators of PyTorch as ranges of the recording, without torch.profiler.

PyTorch runs callbacks at the start and at the end of each operator; python/ext/torch_observer.c is such a callback.
Operators with known shapes show once where their inputs are in memory.
"""

from __future__ import annotations

import functools
import os

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class Operators:
    """Records operators between start() and stop(), on all threads. MareyError if this PyTorch is not supported."""

    def __init__(self, shapes: bool = True) -> None:
        import torch

        self._shapes = shapes
        _native.torch_open(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
        knows_shapes, self._sequence = _learn()
        self.missing: Optional[str] = None  # a sentence
        if shapes and not knows_shapes:
            self.missing = f"the memory layout of PyTorch {torch.__version__} is unknown: operators have no shapes"

    def start(self) -> None:
        _native.torch_operators(True, self._shapes, self._sequence)

    def stop(self) -> None:
        _native.torch_operators(False, False, False)


@functools.cache
def _learn() -> tuple[bool, bool]:
    """Whether shapes and sequence numbers of autograd can be read."""
    sequence = -1
    try:
        sequence = _try_operators()
    finally:
        found = _native.torch_learn(0)
    return _native.torch_operators(False, False, False), sequence >= 0 and found == sequence


def _try_operators() -> int:
    """Run the operators that torch_layout.c expects. Returns the sequence number of the multiplication in autograd."""
    import torch

    options: dict[str, Any] = {"device": "cpu", "dtype": torch.float32}
    rows, columns = torch.ones(5, 3, **options), torch.ones(1, 3, **options)
    short, long = torch.ones(2, 3, **options), torch.ones(4, 3, **options)
    large, square = torch.ones(1, 2, 1, 2, 1, 3, **options), torch.ones(3, 3, **options)
    with torch.enable_grad():
        weight = torch.ones(3, requires_grad=True, **options)
        for phase in (1, 2):
            _native.torch_learn(phase)
            torch.add(rows, columns)
            torch.addmm(square, square, square)
            torch.neg(large)
            torch.cat([short, long])
            product = torch.mul(weight, weight)
    node = product.grad_fn
    return int(node._sequence_nr()) if hasattr(node, "_sequence_nr") else -1
