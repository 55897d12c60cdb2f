"""The methods of TensorDumper while it is on: walk data, put each value, keep counts and actions.

The extension calls these functions when the dumper is on; libmarey does files, copies and comparisons.
"""

from __future__ import annotations

import os
import warnings

from marey import _dump_flight, _native
from marey import _dump_leaves as leaves
from marey._dump_gradients import gradients
from marey._dump_module import dump_module, dump_optimizer
from marey._dump_state import GRADIENTS, TENSORS, How, Type, is_wanted, state
from marey._dump_walk import parts_of, put, put_tensor, walk_from

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Optional, Union

    from marey._dump_state import Axes

    Path = Union[str, os.PathLike[str]]

__all__ = ["Type", "dump_module", "dump_optimizer"]

LAYOUTS = ("marey", "accvlab")
MODES = ("full", "stats", "digests")
POLICIES = ("block", "drop", "stats")


# ---- on and off ----


def _follow_options() -> None:
    """Take over a dump that marey.start() or the environment enabled."""
    options = os.environ.get("MAREY_OPTIONS", "")
    if "dump.layout=accvlab" in options:
        state.layout = "accvlab"
    if "dump.flight=" in options:
        _dump_flight.watch()


if _native.TensorDumper().is_enabled:
    _follow_options()


def enable(
    dump_dir: Optional[Path] = None,
    *,
    layout: Optional[str] = None,
    mode: str = "full",
    policy: str = "block",
    memory: int = 0,
    disk: int = 0,
    writers: int = 0,
    durable: bool = False,
    first: int = 0,
    last: int = 0,
    every: int = 0,
    steps: Optional[Iterable[int]] = None,
    flight_steps: int = 0,
    stats: bool = True,
    on_nan: bool = False,
    on_inf: bool = False,
    over: Optional[float] = None,
    when: Optional[Callable[[str, Any], Any]] = None,
) -> None:
    """Switch the dumper on."""
    layout = layout or "marey"
    finds = on_nan or on_inf or over is not None
    if (finds or when is not None) and flight_steps == 0:
        flight_steps = 1
    _native.dump_enable(
        "" if dump_dir is None else dump_dir,
        _word("layout", layout, LAYOUTS),
        _word("mode", mode, MODES),
        _word("policy", policy, POLICIES),
        *(memory, disk, writers, durable, first, last, every, flight_steps, stats),
    )
    _renew()
    state.layout = layout
    state.steps = None if steps is None else frozenset(steps)
    state.find = (on_nan, on_inf, float("inf") if over is None else over) if finds else None
    state.when = when
    state.tell()
    if flight_steps:
        _dump_flight.watch()


def enable_accvlab(dump_dir: Optional[Path] = None, *, layout: Optional[str] = None, **options: Any) -> None:
    """Switch the dumper on for marey.accvlab.TensorDumper."""
    enable(dump_dir, layout=layout or "accvlab", **options)


def _renew() -> None:
    state.renew()
    state.tell()
    gradients.clear()
    _dump_flight.unwatch()


def _word(name: str, word: str, words: tuple[str, ...]) -> int:
    if word not in words:
        raise ValueError(f"{name} is one of {', '.join(map(repr, words))}, not {word!r}")
    return words.index(word)


def disable() -> None:
    """Switch the dumper off."""
    _renew()
    _native.dump_disable()


def wait() -> None:
    """Wait until everything is written."""
    _native.dump_wait()


# ---- adding ----


def add_tensor_data(
    path: str,
    data: Any,
    dump_type: Optional[Type] = None,
    dump_type_override: Optional[Mapping[str, Type]] = None,
    permute_axes: Axes = None,
    permute_axes_override: Optional[Mapping[str, Axes]] = None,
    exclude: Union[str, Iterable[str], None] = None,
    image: Optional[Mapping[str, Any]] = None,
    hand_over: bool = False,
) -> None:
    """Add data at a path."""
    if not is_wanted():
        return
    if leaves.is_torch(data) and not (state.converters or state.base_converters or data.is_nested):
        how = How(TENSORS, dump_type, None, permute_axes, None, None, image, hand_over)
        put_tensor(parts_of(path), data, how)  # the common case: nothing to walk
        return
    how = How(TENSORS, dump_type, dump_type_override, permute_axes, permute_axes_override, exclude, image, hand_over)
    walk_from(path, data, how, put)


def add_grad_data(
    path: str,
    data: Any,
    dump_type: Optional[Type] = None,
    dump_type_override: Optional[Mapping[str, Type]] = None,
    permute_grad_axes: Axes = None,
    permute_grad_axes_override: Optional[Mapping[str, Axes]] = None,
    exclude: Union[str, Iterable[str], None] = None,
    image: Optional[Mapping[str, Any]] = None,
) -> None:
    """Store tensors until their gradients are computed."""
    if not is_wanted():
        return
    how = How(GRADIENTS, dump_type, dump_type_override, permute_grad_axes, permute_grad_axes_override, exclude, image)
    walk_from(path, data, how, gradients.add)


def set_gradients(function_values: Any) -> None:
    """Compute the gradients of all stored tensors."""
    if gradients.entries:
        gradients.compute(function_values)


# ---- ranges ----


def push_range(range_name: Union[str, Callable[[], str]]) -> None:
    """Prefix paths with a name."""
    name = range_name() if callable(range_name) else range_name
    if not isinstance(name, str):
        raise TypeError(f"a range's name is a str or a function that returns one, not {type(name).__name__}")
    state.ranges.append(name)
    state.tell()


def pop_range() -> None:
    """Remove the last name."""
    if not state.ranges:
        raise IndexError("pop_range() without a push_range() before it")
    state.ranges.pop()
    state.tell()


# ---- steps ----


def _is_empty() -> bool:
    return not (gradients.entries or _native.dump_pending(TENSORS) or _native.dump_pending(GRADIENTS))


def dump(dump_if_empty: bool = True) -> None:
    """End the step."""
    if state.comparison is not None:
        compare_to_dumped_data(**state.comparison, compare_if_empty=dump_if_empty)
        return
    if _is_empty() and not dump_if_empty:
        return
    if not is_wanted():
        _pass_over()
        return
    gradients.put()
    reason = state.reason
    if state.find is not None and reason is None:
        reason = _native.dump_find(*state.find)
    state.reason = None
    if reason is not None:
        _native.dump_trigger(reason)
    count = _native.dump_flush()
    if state.layout == "accvlab" or count in state.actions:
        _native.dump_wait()  # ACCV-Lab's dump() returns when its files exist
    _act(count)


def _pass_over(is_failing: bool = False) -> None:
    """Count a step without writing. An action that exits must not hide a failed comparison."""
    _forget()
    count = _native.TensorDumper().dump_count + 1
    _native.dump_set_count(count)
    try:
        _act(count)
    except SystemExit:
        if not is_failing:
            raise


def _forget() -> None:
    _native.dump_clear(TENSORS)
    _native.dump_clear(GRADIENTS)
    gradients.clear()
    state.reason = None


def _act(count: int) -> None:
    action = state.actions.get(count)
    if action is not None:
        action()


def set_dump_count(count: int) -> None:
    """Set the count and run its action."""
    if count < 0:
        raise ValueError(f"a dump count is 0 or more, not {count}")
    _native.dump_set_count(count)
    _act(count)


def reset_dump_count() -> None:
    """Set the count to 0."""
    set_dump_count(0)


def perform_after_dump_count(count: int, action: Callable[[], Any]) -> None:
    """Store an action for a count."""
    state.actions[count] = action


def trigger(reason: str = "trigger") -> None:
    """Write the steps of the flight recorder."""
    _native.dump_trigger(reason)


# ---- comparing ----


def set_dump_is_compare(
    eps_numerical_data: float = 1e-6,
    num_errors_per_tensor_to_show: int = 1,
    allow_missing_data_in_current: bool = False,
    allow_missing_data_in_previous: bool = False,
    as_warning: bool = False,
    reference: Optional[Path] = None,
    allow_dtype: bool = False,
) -> None:
    """Make dump() compare."""
    state.comparison = {
        "eps_numerical_data": eps_numerical_data,
        "num_errors_per_tensor_to_show": num_errors_per_tensor_to_show,
        "allow_missing_data_in_current": allow_missing_data_in_current,
        "allow_missing_data_in_previous": allow_missing_data_in_previous,
        "as_warning": as_warning,
        "reference": reference,
        "allow_dtype": allow_dtype,
    }


def compare_to_dumped_data(
    eps_numerical_data: float = 1e-6,
    num_errors_per_tensor_to_show: int = 1,
    allow_missing_data_in_current: bool = False,
    allow_missing_data_in_previous: bool = False,
    as_warning: bool = False,
    compare_if_empty: bool = True,
    reference: Optional[Path] = None,
    allow_dtype: bool = False,
) -> None:
    """Compare the current step with an earlier dump of the same count."""
    if _is_empty() and not compare_if_empty:
        return
    if not is_wanted():
        _pass_over()
        return
    count = _native.TensorDumper().dump_count
    limits = (eps_numerical_data, num_errors_per_tensor_to_show)
    allowed = (allow_missing_data_in_current, allow_missing_data_in_previous, allow_dtype)
    try:
        _native.dump_wait()
        gradients.put()
        failures = _compare(reference, count, limits, allowed)
        if as_warning:
            for failure in failures:
                warnings.warn(failure, stacklevel=2)
        elif failures:
            raise ValueError("\n".join(failures))
    except BaseException:
        _pass_over(is_failing=True)
        raise
    _pass_over()


def _compare(
    reference: Optional[Path], count: int, limits: tuple[float, int], allowed: tuple[bool, bool, bool]
) -> list[str]:
    from marey import _tools

    directory = os.fspath(reference) if reference is not None else _native.TensorDumper().dump_dir
    rank = _native.rank()[0]
    failures = []
    for tree, name in ((TENSORS, "tensors"), (GRADIENTS, "gradients")):
        if tree == GRADIENTS and not _native.dump_pending(GRADIENTS):
            continue
        text = _tools.diff_pending(directory, count, tree, *limits, *allowed, rank)
        if text is None:
            within = f" within {limits[0]:g}" if limits[0] > 0 else ""
            print(f"`TensorDumper`: the {name} of dump {count} are consistent{within} with those in {directory}")
        else:
            failures.append(text)
    return failures


# ---- file types and converters ----


def set_dump_type_for_all(dump_type: Optional[Type], include_tensors: bool = True, include_grads: bool = True) -> None:
    """Set the file type of everything."""
    forced = None if dump_type is None else Type(dump_type)
    for tree, is_included in ((TENSORS, include_tensors), (GRADIENTS, include_grads)):
        if not is_included:
            continue
        if forced is Type.PICKLE and _native.dump_pending(tree):
            raise ValueError("pickles are made when data is added: call set_dump_type_for_all() before adding")
        state.forced[tree] = forced
        state.tell()
        if forced is not None:
            _native.dump_retype(tree, forced + 1)
            if tree == GRADIENTS:
                gradients.retype(forced)


def register_custom_converter(data_type: type, converter_func: Callable[[Any], Any], subclasses: bool = False) -> None:
    """Store the converter of a type."""
    if not isinstance(data_type, type):
        raise TypeError(f"data_type is a class, not {data_type!r}")
    (state.base_converters if subclasses else state.converters)[data_type] = converter_func
    state.tell()


def enable_ragged_batch_dumping(as_per_sample: bool = False) -> None:
    """Set how ragged batches are dumped."""
    state.ragged = as_per_sample


def run_if_enabled(func: Callable[[], Any]) -> None:
    """Call the function if this step will be dumped."""
    if is_wanted():
        func()
