"""Names from outside, safe to print: of files, of experiments in a store, of errors that quote them."""

from __future__ import annotations


def printable(text: object) -> str:
    """Spell out what a terminal obeys or reorders: control characters, marks of direction, line separators."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
