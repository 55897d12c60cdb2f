"""Call a function when a module is imported, without importing it.

`marey run` loads this file without the package around it, so it must not import the package.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional

    Function = Callable[[ModuleType], None]


class _Finder:
    """Calls functions when a module is loaded. Other finders find the module."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Function]] = {}
        self.is_searching = False

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Find the module through the other finders."""
        if name not in self.waiting or self.is_searching:
            return None
        self.is_searching = True  # a finder may call all finders, as this one does
        try:
            spec = self._ask_others(name, path, target)
        finally:
            self.is_searching = False
        if spec is not None and spec.loader is not None:
            self._follow(name, spec.loader)
        return spec

    def _ask_others(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType]
    ) -> Optional[ModuleSpec]:
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                return spec
        return None

    def _follow(self, name: str, loader: Any) -> None:
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)  # a failed import may be repeated
            for function in self.waiting.pop(name, ()):
                function(module)

        loader.exec_module = exec_module


_finder = _Finder()


def when_imported(name: str, function: Function) -> None:
    """Call `function` with the module once: now if it is imported, else after its import."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        function(module)
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    functions = _finder.waiting.setdefault(name, [])
    if function not in functions:
        functions.append(function)
