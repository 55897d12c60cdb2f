"""The formats that exporters write and importers read, as the registries in C have them."""

from __future__ import annotations


def export_formats() -> dict[str, str]:
    """Give the formats of Recording.export() that this build has, each with a line about it."""
    from marey import _tools

    return {entry["name"]: entry["brief"] for entry in _tools.export_formats if entry["missing"] is None}


def import_formats() -> dict[str, str]:
    """Give the formats of other tools that load() and import_trace() read, each with a line about it."""
    from marey import _tools

    return {entry["name"]: entry["brief"] for entry in _tools.import_formats}
