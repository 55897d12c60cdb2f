"""The formats of exporters and importers, from the registries in C."""

from __future__ import annotations


def export_formats() -> dict[str, str]:
    """Return the formats of Recording.export() in this build, each with a description."""
    from marey import _tools

    return {entry["name"]: entry["brief"] for entry in _tools.export_formats if entry["missing"] is None}


def import_formats() -> dict[str, str]:
    """Return the formats of other tools that load() and import_trace() read, each with a description."""
    from marey import _tools

    return {entry["name"]: entry["brief"] for entry in _tools.import_formats}
