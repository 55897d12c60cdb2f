"""Optional dependencies: error messages that name a missing package, and how to install it."""

from __future__ import annotations

import importlib.util

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


def need(who: str, package: str, install: Optional[str] = None) -> None:
    """Raise ImportError if a package is missing, without importing anything."""
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"{who} needs {package}: pip install {install or package}")


def cannot_import(who: str, error: ImportError, *packages: str) -> ImportError:
    """Return an error with the install command. The missing package may be a dependency of the named ones."""
    for package in packages:
        try:
            need(who, package)
        except ImportError as sentence:
            return sentence
    return ImportError(f"{who} needs {packages[0]}, which cannot be imported: {error}")
