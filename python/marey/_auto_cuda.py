"""Report CUDA graph captures, and the first CUDA graph, to GPU tracing.

CUDA forbids most calls of other threads during a capture, so tracing neither starts nor stops then. Once graphs exist,
CUPTI stays initialized: a second initialization breaks their launches (CUDA 11 to 13).

`marey run` loads this file without the package around it, so it must not import it.
"""

from __future__ import annotations

import functools
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_native = sys.modules["marey._native"]
_MODULE = "torch.cuda.graphs"


def watch() -> None:
    """Install the hooks after torch is imported."""
    sys.modules["marey._imports"].when_imported(_MODULE, _hook)


def _hook(module: ModuleType) -> None:
    graph: Any = getattr(module, "CUDAGraph", None)
    begin, end = getattr(graph, "capture_begin", None), getattr(graph, "capture_end", None)
    if begin is None or end is None or hasattr(graph, "_marey_is_hooked"):
        return

    @functools.wraps(begin)
    def capture_begin(*args: Any, **kwargs: Any) -> Any:
        _native.gpu_capture(True)
        try:
            return begin(*args, **kwargs)
        except BaseException:
            _native.gpu_capture(False)
            raise

    @functools.wraps(end)
    def capture_end(*args: Any, **kwargs: Any) -> Any:
        try:
            return end(*args, **kwargs)
        finally:
            _native.gpu_capture(False)

    graph.capture_begin, graph.capture_end = capture_begin, capture_end
    graph._marey_is_hooked = True
