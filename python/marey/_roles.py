"""Roles of tensor storages: parameters, gradients, optimizer state, inputs.

The memory timeline has categories, but torch's trace has only addresses of allocations. So the addresses of tensors are
recorded during a window.
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
_MAX_DEPTH = 4  # of nested containers of inputs


def _row(kind: str, name: str, tensor: Any, now_ns: int) -> list[Any]:
    """Describe one storage in the format of `marey artifacts`."""
    if type(tensor) not in _PLAIN:
        tensor = getattr(tensor, "_local_tensor", tensor)  # the local shard of a DTensor
    storage = tensor.untyped_storage()
    device = tensor.device
    type_ = _DEVICE_TYPES[device.type]
    return [kind, storage.data_ptr(), storage.nbytes(), type_, device.index if type_ else -1, now_ns, name]


def _rows(kind: str, named: Iterable[tuple[str, Any]]) -> list[list[Any]]:
    """Describe tensors that have an address: fake and sparse ones do not."""
    now_ns = time.time_ns()
    rows = []
    for name, tensor in named:
        try:
            rows.append(_row(kind, name, tensor, now_ns))
        except (RuntimeError, NotImplementedError, KeyError, AttributeError):
            continue
    return rows


class ModelRoles:
    """The storages of one model, whose parameters do not change during a window."""

    def __init__(self, model: Any) -> None:
        """List the parameters once, because finding them takes as long as describing them."""
        self._named = list(model.named_parameters())

    def parameters(self) -> list[list[Any]]:
        """Describe the parameters."""
        return _rows("parameter", self._named)

    def gradients(self) -> list[list[Any]]:
        """Describe the current gradients."""
        return _rows("gradient", ((name, p.grad) for name, p in self._named if p.grad is not None))

    def optimizer_state(self, optimizer: Any) -> list[list[Any]]:
        """Describe the tensors in the optimizer's state, without scalars."""
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
