"""Hooks of auto mode in torch.compile: when it compiles, what it compiled, and updates inside compiled code."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from marey._auto import Function

_auto: Any = sys.modules["marey._auto"]
_native = _auto._native
_state = _auto.state

_TEXT = 120  # characters kept of a reason
_ROWS = 8


# ---- compilations ----

_compile_range = _native.range("compile", category="compile")
_compiling: list[int] = []  # the compiling thread


def _on_start(*_: Any) -> None:
    _compiling.append(_auto.get_ident())
    _state.compiling += 1
    _compile_range.__enter__()


def _on_end(*_: Any) -> None:
    if _compiling and _compiling.pop() == _auto.get_ident():
        _compile_range.__exit__()
    _state.compiling = max(0, _state.compiling - 1)


def hook_compilations(module: ModuleType) -> None:
    """Record compilations as ranges, and a summary at exit. torch before 2.3 has no callbacks for this."""
    module.callback_handler.register_start_callback(_on_start)
    module.callback_handler.register_end_callback(_on_end)
    atexit.register(finish)


def finish() -> None:
    """Record the compilations so far."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    if not counters or not _native.enabled():
        return
    with contextlib.suppress(Exception):
        breaks = counters["graph_break"]
        record = {
            "frames": counters["frames"].get("ok", 0),
            "graphs": counters["stats"].get("unique_graphs", 0),
            "graph_breaks": sum(breaks.values()),
            "reasons": [[_short(reason), count] for reason, count in breaks.most_common(_ROWS)],
            **_recompilations(utils),
        }
        _native.mark("torch.compile", json.dumps(record, separators=(",", ":")))


def _recompilations(utils: Any) -> dict[str, Any]:
    """Count recompilations by function, from the recent compilations that torch keeps."""
    rows: dict[tuple[str, str, int], list[Any]] = {}
    compilations = utils.get_compilation_metrics() if hasattr(utils, "get_compilation_metrics") else []
    for each in compilations:
        number = str(each.compile_id or "").strip("[]").rsplit("/", 1)[-1].split("_")[0]
        if number.isdecimal() and int(number) > 0:
            key = (each.co_name, each.co_filename, each.co_firstlineno)
            row = rows.setdefault(key, [0, ""])
            row[0] += 1
            row[1] = _short(getattr(each, "recompile_reason", None) or row[1])
    order = sorted(rows.items(), key=lambda item: -item[1][0])[:_ROWS]
    return {
        "recompiles": sum(row[0] for row in rows.values()),
        "recompiled": [
            {"function": key[0], "file": key[1], "line": key[2], "count": row[0], "reason": row[1]}
            for key, row in order
        ],
    }


def _short(text: str) -> str:
    return " ".join(str(text).split())[:_TEXT]


# ---- updates inside compiled code ----


def hook_traced_optimizers(module: ModuleType) -> None:
    """Note in a graph which optimizers it updates, because running the graph does not call their `step`."""

    def calling(original: Function) -> Function:
        @functools.wraps(original)
        def call_method(self: Any, tx: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            if name == "_init_group":
                with contextlib.suppress(Exception):
                    _note(tx.output, id(self.value))
            return original(self, tx, name, *args, **kwargs)

        return call_method

    _auto.wrap(module.OptimizerVariable, "call_method", calling)


def _note(output: Any, who: int) -> None:
    if not hasattr(output, "_marey_optimizers"):
        output._marey_optimizers = {}
        operations = ("call_function", "call_method", "call_module")
        output._marey_is_update = not any(node.op in operations for node in output.graph.nodes)
    output._marey_optimizers[who] = True


def hook_graphs(module: ModuleType) -> None:
    """Make a compiled graph with updates report them after each run."""

    def compiling(original: Function) -> Function:
        @functools.wraps(original)
        def call_user_compiler(self: Any, *args: Any, **kwargs: Any) -> Any:
            compiled = original(self, *args, **kwargs)
            who = list(getattr(self, "_marey_optimizers", ()))
            return _updating(compiled, who, self._marey_is_update) if who else compiled

        return call_user_compiler

    _auto.wrap(module.OutputGraph, "call_user_compiler", compiling)


def _updating(original: Function, who: list[int], is_update: bool) -> Function:
    """Wrap a graph with updates; `is_update`: it contains nothing else."""
    torch_hooks = _auto.part("_auto_torch")

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _auto.is_compiling() or not torch_hooks._counts():
            return original(*args, **kwargs)
        _state.stepping = True
        depth = _auto.begin("optimizer") if is_update else -1
        try:
            result = original(*args, **kwargs)
        except BaseException:
            if is_update:
                _auto.unwind(depth)
            raise
        finally:
            _state.stepping = False
        if is_update:
            _auto.end()
        for each in who:
            torch_hooks.updated(each)
        return result

    return run


def hook_frames(module: ModuleType) -> None:
    """Prepare for the first use of torch.compile, which may remove the wrappers of optimizers."""

    def patching(original: Function) -> Function:
        @functools.wraps(original)
        def patch() -> None:
            original()
            _auto.part("_auto_torch").cover_again()
            _auto.part("_auto_models").prepare_for_compiling()

        return patch

    _auto.wrap(module.TorchPatcher, "patch", patching)
