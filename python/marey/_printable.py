"""Escaping of untrusted strings before printing: file names, experiments in a store, error messages that quote them."""

from __future__ import annotations


def printable(text: object) -> str:
    """Escape characters that a terminal interprets: control characters, direction marks, line separators."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
