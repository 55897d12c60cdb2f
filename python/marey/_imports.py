"""Do something to a module of others as soon as it is imported, without importing it.

`marey run` loads this file without the package around it, so it imports nothing of the package.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional


class _Finder:
    """Calls a function with a module once that is loaded; finds nothing by itself."""

    def __init__(self, name: str, function: Callable[[ModuleType], None]) -> None:
        self.name = name
        self.function = function

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Find the module, as others would."""
        if name != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: Any) -> None:
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            self.function(module)

        loader.exec_module = exec_module


_waiting: dict[str, _Finder] = {}


def when_imported(name: str, function: Callable[[ModuleType], None]) -> None:
    """Call `function` with the module: now if it is there, else when it has been imported. Once for a name."""
    module = sys.modules.get(name)
    if module is not None:
        function(module)
    elif name not in _waiting:
        _waiting[name] = _Finder(name, function)
        sys.meta_path.insert(0, _waiting[name])
