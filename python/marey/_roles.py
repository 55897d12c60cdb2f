"""Roles of tensor storages: parameters, gradients, optimizer state, inputs.

The memory timeline is drawn by category. torch's trace has allocations by address without their purpose, so
the addresses are recorded during a window, while the trainer has access to the tensors.
"""

from __future__ import annotations

import time

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_DEVICE_TYPES = {"cpu": 0, "cuda": 1}
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MAX_DEPTH = 4  # of containers that inputs may be in


def _row(kind: str, name: str, tensor: Any, now_ns: int) -> list[Any]:
    """Describe one storage as `marey artifacts` reads it."""
    if type(tensor) not in _PLAIN:
        tensor = getattr(tensor, "_local_tensor", tensor)  # of one that is spread over ranks, this rank's part
    storage = tensor.untyped_storage()
    device = tensor.device
    type_ = _DEVICE_TYPES[device.type]
    return [kind, storage.data_ptr(), storage.nbytes(), type_, device.index if type_ else -1, now_ns, name]


def _rows(kind: str, named: Iterable[tuple[str, Any]]) -> list[list[Any]]:
    """Describe those that have an address: a fake or a sparse tensor has none."""
    now_ns = time.time_ns()
    rows = []
    for name, tensor in named:
        try:
            rows.append(_row(kind, name, tensor, now_ns))
        except (RuntimeError, NotImplementedError, KeyError, AttributeError):
            continue
    return rows


class ModelRoles:
    """The storages of one model, whose parameters stay what they are while a window is recorded."""

    def __init__(self, model: Any) -> None:
        """Know the parameters; finding them takes as long as describing them."""
        self._named = list(model.named_parameters())

    def parameters(self) -> list[list[Any]]:
        """Describe the parameters."""
        return _rows("parameter", self._named)

    def gradients(self) -> list[list[Any]]:
        """Describe the gradients that there are now."""
        return _rows("gradient", ((name, p.grad) for name, p in self._named if p.grad is not None))

    def optimizer_state(self, optimizer: Any) -> list[list[Any]]:
        """Describe the tensors that an optimizer keeps for the parameters, not its single numbers."""
        optimizer = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
        names = {id(p): name for name, p in self._named}
        kept = (
            (f"{names.get(id(p), 'parameter')}.{key}", value)
            for p, state in optimizer.state.items()
            if isinstance(state, dict)
            for key, value in state.items()
            if isinstance(value, torch.Tensor) and value.dim()
        )
        return _rows("optimizer_state", kept)


def inputs(args: Any, kwargs: Any) -> list[list[Any]]:
    """Describe the tensors among the arguments of a call."""
    return _rows("input", _tensors("input", [*args, *[kwargs]], _MAX_DEPTH))


def _tensors(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth == 0:
        return
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _tensors(str(key), part, depth - 1)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(name, part, depth - 1)
