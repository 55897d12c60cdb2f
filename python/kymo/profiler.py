"""The call profiler."""

from __future__ import annotations

from kymo._signatures import register, signature

__all__ = ["register", "signature"]
