"""Escaping of untrusted names before printing: of files, of experiments in a store, of errors that quote them."""

from __future__ import annotations


def printable(text: object) -> str:
    """Escape characters that a terminal interprets: control characters, direction marks, line separators."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
