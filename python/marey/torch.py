"""Communication of torch.distributed, as ranges of category "communication".

    import marey.torch

    marey.torch.trace_distributed()
    model = DistributedDataParallel(model)
    marey.torch.trace_ddp(model)

Each call of torch.distributed becomes a range with the number of bytes that this rank sent and received, the group or
peer, and the sequence number in the group, so that `marey breakdown` can match the operation on all ranks. With
`async_op=True` the wait() is such a range too, and the operation itself is an async range from its start to its end.

The backward pass of DistributedDataParallel reduces gradients in C++, where function calls cannot be wrapped;
trace_ddp() records it.

Messages and results are unchanged. While recording is off, a traced call costs one microsecond more.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import sys
import threading
import time
import weakref

from marey import _native
from marey._needs import cannot_import

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    raise cannot_import("marey.torch", error, "torch") from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any, Optional

    Function = Callable[..., Any]

__all__ = ["Tracing", "trace_ddp", "trace_distributed"]

CATEGORY = "communication"


def _range(name: str) -> _native.Range:
    return _native.range(name, category=CATEGORY, domain="torch")


# ---- groups ----


def _ranks_text(ranks: list[int]) -> str:
    """Format ranks, in order, as recordings do: "0-3,8,10-16:2"."""
    parts = []
    i = 0
    while i < len(ranks):
        step = ranks[i + 1] - ranks[i] if i + 1 < len(ranks) else 0
        n = 1
        while step > 0 and i + n < len(ranks) and ranks[i + n] - ranks[i + n - 1] == step:
            n += 1
        if n >= 2 and step == 1:
            parts.append(f"{ranks[i]}-{ranks[i + n - 1]}")
        elif n >= 3:
            parts.append(f"{ranks[i]}-{ranks[i + n - 1]}:{step}")
        else:
            parts.append(str(ranks[i]))
            n = 1
        i += n
    return ",".join(parts)


class _Group:
    """A process group. Its name and ranks are the same on all its ranks."""

    def __init__(self, group: Any) -> None:
        self.ranks: list[int] = list(dist.get_process_group_ranks(group))
        self.rank: int = dist.get_rank()
        described = group.group_desc.replace("undefined", "group")
        name = described if described == "default_pg" else f"{described} {group.group_name}"
        self.key = (name, _ranks_text(self.ranks))
        self.id = _native.communication_group(*self.key)

    def next(self) -> int:
        """The number of the next operation; it continues when the group is created again."""
        number = _counts.get(self.key, 0)
        _counts[self.key] = number + 1
        return number

    def tell(self, what: str, given: int, got: int, sequence: int, peer: int = -1) -> None:
        """Add these to the innermost range."""
        _native.communication(self.id, what, given, got, sequence, len(self.ranks), peer)


_counts: dict[tuple[str, str], int] = {}
_groups: weakref.WeakKeyDictionary[Any, _Group] = weakref.WeakKeyDictionary()


def _group_of(group: Any) -> Optional[_Group]:
    """None if unknown: before init_process_group(), or for a group without this rank."""
    if group is None:
        if not dist.is_initialized():
            return None
        group = dist.group.WORLD
    known = _groups.get(group) if isinstance(group, dist.ProcessGroup) else None
    if known is None and isinstance(group, dist.ProcessGroup) and dist.get_rank(group) >= 0:
        known = _groups[group] = _Group(group)
        _tell_rank()
    return known


def _tell_rank() -> None:
    """Set rank and world size of the recording from torch.distributed, unless there is only one rank."""
    here = (dist.get_rank(), dist.get_world_size())
    known = _native.rank()
    if known[0] < 0 or (here[1] > 1 and known != here):
        _native.set_rank(*here)


# ---- descriptions of functions ----


class _Call:
    """One function of torch.distributed: the names of its relevant parameters."""

    def __init__(self, what: str, given: str = "", got: str = "", peer: str = "", is_for_all: bool = True) -> None:
        self.what = what
        self.given = given
        self.got = got
        self.peer = peer  # "src" or "dst"; the alternative is "group_src" or "group_dst"
        self.is_for_all = is_for_all

    def bytes_of(self, group: _Group, arguments: _Arguments, peer: int) -> tuple[int, int]:
        """The bytes that this rank sends and receives."""
        given, got = _bytes(arguments.get(self.given)), _bytes(arguments.get(self.got))
        is_root = peer == group.rank
        if self.what == "broadcast":
            return (given, 0) if is_root else (0, got)
        if self.what == "reduce":
            return given, got if is_root else 0
        return given, got

    def peer_of(self, group: _Group, arguments: _Arguments) -> int:
        """The rank of the peer in the world, or -1."""
        peer = arguments.get(self.peer)
        in_group = arguments.get("group_" + self.peer)
        if peer is None and in_group is not None:
            peer = group.ranks[in_group]
        elif peer is None:
            peer = 0 if self.what in ("gather", "scatter") else -1
        return int(peer)

    def describe(self, group: _Group, arguments: _Arguments) -> tuple[int, int, int]:
        """Bytes sent and received, and the peer. torch reports invalid arguments."""
        try:
            peer = self.peer_of(group, arguments)
            return (*self.bytes_of(group, arguments, peer), peer)
        except Exception:
            return 0, 0, -1


_CALLS = {
    "all_reduce": _Call("all_reduce", "tensor", "tensor"),
    "all_reduce_coalesced": _Call("all_reduce", "tensors", "tensors"),
    "all_gather": _Call("all_gather", "tensor", "tensor_list"),
    "all_gather_into_tensor": _Call("all_gather", "input_tensor", "output_tensor"),
    "all_gather_coalesced": _Call("all_gather", "input_tensor_list", "output_tensor_lists"),
    "reduce_scatter": _Call("reduce_scatter", "input_list", "output"),
    "reduce_scatter_tensor": _Call("reduce_scatter", "input", "output"),
    "all_to_all": _Call("all_to_all", "input_tensor_list", "output_tensor_list"),
    "all_to_all_single": _Call("all_to_all", "input", "output"),
    "broadcast": _Call("broadcast", "tensor", "tensor", "src"),
    "reduce": _Call("reduce", "tensor", "tensor", "dst"),
    "gather": _Call("gather", "tensor", "gather_list", "dst"),
    "scatter": _Call("scatter", "scatter_list", "tensor", "src"),
    "barrier": _Call("barrier"),
    "monitored_barrier": _Call("barrier"),
    "send": _Call("send", "tensor", "", "dst", is_for_all=False),
    "recv": _Call("recv", "", "tensor", "src", is_for_all=False),
}


class _Arguments:
    """The arguments of one call, by name."""

    def __init__(self, names: dict[str, int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.names = names
        self.args = args
        self.kwargs = kwargs

    def get(self, name: str) -> Any:
        position = self.names.get(name, len(self.args))
        return self.args[position] if position < len(self.args) else self.kwargs.get(name)


def _bytes(tensors: Any) -> int:
    """The bytes of a tensor, of nested lists of tensors, or of None."""
    if tensors is None:
        return 0
    if isinstance(tensors, torch.Tensor):
        return int(tensors.numel() * tensors.element_size())
    return sum(map(_bytes, tensors))


# ---- operations in progress ----


class _Flight:
    """The async range of an operation. It ends once: in the operation's callback, or at the latest with the wait."""

    def __init__(self, range_: _native.Range) -> None:
        self.handle = _native.async_begin(range_)

    def end(self, _: Any = None) -> None:
        handle, self.handle = self.handle, 0
        _native.async_end(handle)

    def end_with(self, work: Any) -> None:
        """Make it end without a wait, if this kind of operation has callbacks."""
        with contextlib.suppress(RuntimeError):
            work.get_future().add_done_callback(self.end)


class _Started:
    """An operation between its start and the wait."""

    def __init__(self, group: _Group, what: str, sequence: int, peer: int, flight: Optional[_Flight] = None) -> None:
        self.group = group
        self.what = what
        self.sequence = sequence
        self.peer = peer
        self.flight = flight


_started: weakref.WeakKeyDictionary[Any, _Started] = weakref.WeakKeyDictionary()
_WAIT = _range("dist.wait")
_here = threading.local()  # .inside: this thread is in a traced function, which covers its callees


def _waiting(original: Function) -> Function:
    """Work.wait as a range, for works started by a traced call."""

    @functools.wraps(original)
    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
        started = _started.pop(work, None)
        if started is None:
            return original(work, *args, **kwargs)
        with _WAIT:
            started.group.tell(started.what, 0, 0, started.sequence, started.peer)
            try:
                return original(work, *args, **kwargs)
            finally:
                if started.flight is not None:
                    started.flight.end()

    return wait


# ---- functions ----


def _is_inside() -> bool:
    return getattr(_here, "inside", False)


@contextlib.contextmanager
def _speaking() -> Iterator[None]:
    was_inside = _is_inside()
    _here.inside = True
    try:
        yield
    finally:
        _here.inside = was_inside


def _traced(name: str, call: _Call, original: Function) -> Function:
    """`original` with a range around it that describes the operation."""
    names = {parameter: i for i, parameter in enumerate(inspect.signature(original).parameters)}
    range_, flying = _range(f"dist.{name}"), _range(f"dist.{name} (in flight)")

    @functools.wraps(original)
    def traced(*args: Any, **kwargs: Any) -> Any:
        arguments = _Arguments(names, args, kwargs)
        group = None if _is_inside() else _group_of(arguments.get("group"))
        if group is None:
            return original(*args, **kwargs)
        sequence = group.next() if call.is_for_all else -1
        if not _native.enabled():
            return original(*args, **kwargs)
        given, got, peer = call.describe(group, arguments)
        is_async = bool(arguments.get("async_op"))
        with range_, _speaking():
            group.tell(call.what, given, got, sequence, peer)
            flight = _Flight(flying) if is_async else None
            result = original(*args, **kwargs)
            if flight is not None and isinstance(result, dist.Work):
                flight.end_with(result)
                _started[result] = _Started(group, call.what, sequence, peer, flight)
            elif call.what == "recv" and peer < 0 and isinstance(result, int):
                group.tell(call.what, given, got, sequence, result)
            return result

    return traced


# ---- isend and irecv ----
#
# P2POp and batch_isend_irecv compare functions with torch's isend and irecv, so these are not replaced. Instead, the
# method of the group that they call is wrapped; send and recv call it as well.

_METHODS = {"send": "isend", "recv": "irecv", "recv_anysource": "irecv"}


def _traced_method(method: str, original: Function) -> Function:
    what = "send" if method == "send" else "recv"
    range_ = _range(f"dist.{_METHODS[method]}")

    @functools.wraps(original)
    def traced(process_group: Any, tensors: list[torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        group = None if _is_inside() or not _native.enabled() else _group_of(process_group)
        if group is None:
            return original(process_group, tensors, *args, **kwargs)
        peer = group.ranks[args[0]] if method != "recv_anysource" and args else -1
        size = _bytes(tensors)
        with range_:
            group.tell(what, size if what == "send" else 0, size if what == "recv" else 0, -1, peer)
            work = original(process_group, tensors, *args, **kwargs)
            if work is not None:
                _started[work] = _Started(group, what, -1, peer)
            return work

    return traced


# ---- on and off ----


class _Patch:
    """A replaced attribute of a module or class."""

    def __init__(self, owner: Any, name: str, new: Any) -> None:
        self.owner, self.name, self.new = owner, name, new
        self.old = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        setattr(owner, name, new)

    def undo(self) -> None:
        if getattr(self.owner, self.name, None) is self.new:  # otherwise replaced by other code
            setattr(self.owner, self.name, self.old)


def _patch_modules(traced: dict[Function, Function]) -> Iterator[_Patch]:
    """Patch all modules that have one of the functions, under any name: `from torch.distributed import all_reduce`."""
    by_id = {id(original): function for original, function in traced.items()}
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in by_id:
                yield _Patch(module, name, by_id[id(value)])


def _patch_all() -> list[_Patch]:
    there = {name: getattr(dist, name) for name in _CALLS if hasattr(dist, name)}
    functions = {original: _traced(name, _CALLS[name], original) for name, original in there.items()}
    functions[dist.batch_isend_irecv] = _range("dist.batch_isend_irecv")(dist.batch_isend_irecv)
    patches = list(_patch_modules(functions))
    for method in _METHODS:
        patches.append(_Patch(dist.ProcessGroup, method, _traced_method(method, getattr(dist.ProcessGroup, method))))
    patches.append(_Patch(dist.Work, "wait", _waiting(dist.Work.wait)))
    return patches


_patches: list[_Patch] = []
_tracings: set[Tracing] = set()  # active


class Tracing:
    """The result of trace_distributed(): undo() ends the tracing, and so does the end of a `with` block."""

    def undo(self) -> None:
        """Restore torch.distributed, once all tracings are undone."""
        _tracings.discard(self)
        if not _tracings:
            for patch in reversed(_patches):
                patch.undo()
            _patches.clear()

    def __enter__(self) -> Tracing:
        return self

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        self.undo()


def trace_distributed() -> Tracing:
    """Record each call of torch.distributed as a range, in all loaded modules.

    Ranges are recorded while a recording is open, which may begin later and end earlier. A second call does not wrap
    functions twice.
    """
    if not dist.is_available():
        raise _native.MareyError("this torch was built without torch.distributed, so there is nothing to trace")
    if not _tracings:
        _patches.extend(_patch_all())
    tracing = Tracing()
    _tracings.add(tracing)
    return tracing


# ---- DistributedDataParallel ----

_BUCKET = _range("ddp.all_reduce")
_BUCKET_FLYING = _range("ddp.all_reduce (in flight)")
_BUCKET_WAIT = _range("ddp.wait")


class _Reductions:
    """The gradients of one model: buckets whose reduction was started but not waited for."""

    def __init__(self, group: Any, hook: Function, state: Any) -> None:
        self.group = group
        self.hook = hook
        self.state = state
        self.started: list[tuple[int, Any, _Flight]] = []

    def reduce(self, bucket: Any) -> Any:
        """Called by DistributedDataParallel when the gradients of a bucket are ready."""
        group = _group_of(self.group)
        if group is None:
            return self.hook(self.state, bucket)
        sequence = group.next()
        if not _native.enabled():
            with _speaking():
                return self.hook(self.state, bucket)
        size = _bytes(bucket.buffer())
        with _BUCKET, _speaking():
            group.tell("all_reduce", size, size, sequence)
            flight = _Flight(_BUCKET_FLYING)
            future = self.hook(self.state, bucket)
        future.add_done_callback(flight.end)
        self.started.append((sequence, future, flight))
        if bucket.is_last():
            # Added before the reducer's callback, so that its waiting time is measured.
            torch.autograd.Variable._execution_engine.queue_callback(self.wait)
        return future

    def wait(self) -> None:
        """The end of the backward pass."""
        group = _group_of(self.group)
        started, self.started = self.started, []
        for sequence, future, flight in started:
            with _BUCKET_WAIT:
                if group is not None:
                    group.tell("all_reduce", 0, 0, sequence)
                with contextlib.suppress(RuntimeError):  # the reducer gets it next, and raises it
                    future.wait()
                flight.end()


def trace_ddp(model: Any, hook: Optional[Function] = None, state: Any = None) -> None:
    """Record how a DistributedDataParallel reduces its gradients.

    Each bucket has a range where its reduction starts, an async range while it runs, and a range where the end of the
    backward pass waits for it. This uses the model's only communication hook. It calls `hook` with its `state`, by
    default torch's all-reduce, which is equivalent to no hook.
    """
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise TypeError(f"trace_ddp() takes a DistributedDataParallel, not {type(model).__name__}")
    group = model.process_group
    if hook is None:
        hook, state = allreduce_hook, group
    reductions = _Reductions(group, hook, state)
    model.register_comm_hook(reductions, _hook)
    atexit.unregister(_let_go)
    atexit.register(_let_go)


def _let_go() -> None:
    """Make the backend's threads release Python objects in time: torch aborts the process if they do so too late."""
    time.sleep(0.05)


def _hook(reductions: _Reductions, bucket: Any) -> Any:
    return reductions.reduce(bucket)


_hook.__annotations__.clear()  # torch compares them with its classes, but these are strings
