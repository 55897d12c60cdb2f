"""An independent reader of report pages, written only from docs/formats/page.md."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from built import BUILD

HAS_VIEWER = len((BUILD / "viewer" / "page_template.c").read_bytes()) >= 1000
needs_viewer = pytest.mark.skipif(not HAS_VIEWER, reason="this build was made without Node.js")

BLOCK = re.compile(r'<script type="application/octet-stream" id="([^"]+)">([A-Za-z0-9+/=]*)</script>')


class Event(NamedTuple):
    start: int
    value: float  # a duration in nanoseconds; of a counter its value; of links and texts a number
    id: int


def planes(section: bytes, at: int, width: int, n: int) -> list[int]:
    return [sum(section[at + p * n + i] << (8 * p) for p in range(width)) for i in range(n)]


def chunk(section: bytes, offset: int) -> list[Event]:
    n, *widths, kind, first = struct.unpack_from("<IBBBBQ", section, offset)
    at = offset + 16
    columns = []
    for width in widths:
        columns.append(planes(section, at, width, n))
        at += width * n
    end, events = first, []
    for gap, value, number in zip(*columns):
        start = end + (gap >> 1 if gap % 2 == 0 else -(gap >> 1) - 1)
        end = start + value if kind == 0 else start
        told = struct.unpack("<d", value.to_bytes(8, "little"))[0] if kind == 1 else value
        events.append(Event(start, told, number))
    return events


class Page:
    """The content of a page's blocks."""

    def __init__(self, path: Path) -> None:
        """Read the file at `path`."""
        self.html = path.read_text(encoding="utf-8")
        packed = {name: base64.b64decode(text, validate=True) for name, text in BLOCK.findall(self.html)}
        self.blocks = {name: zlib.decompress(data, -15) for name, data in packed.items()}
        self.index: dict[str, Any] = json.loads(self.blocks["index"])
        self.names: dict[str, Any] = json.loads(self.blocks.get("names", b"{}"))

    def row(self, row: list[Any]) -> list[Event]:
        """Return the events of a row of the index."""
        events = []
        for section, offset, n, first, last in row[1:]:
            found = chunk(self.blocks[f"events-{section}"], offset)
            assert len(found) == n
            assert found[0].start == first
            assert last >= max(event.start for event in found)
            events += found
        return events

    def call_nodes(self, number: int) -> list[list[int]]:
        """Return the nodes of a call profile: parent, function, signature, thread, then sums; parents by number."""
        data = self.blocks[f"calls-{number}"]
        n, n_columns = struct.unpack_from("<IB", data)
        at, columns = 5 + n_columns, []
        for width in data[5:at]:
            columns.append(planes(data, at, width, n))
            at += width * n
        assert at == len(data)
        return [[i - back, *rest] for i, (back, *rest) in enumerate(zip(*columns))]

    def tracks(self, kind: str) -> list[dict[str, Any]]:
        """Return the tracks of one kind."""
        return [track for track in self.index["tracks"] if track["kind"] == kind]

    def texts(self, track: dict[str, Any]) -> dict[tuple[int, int], Any]:
        """Return further data of a track's events, by begin and site."""
        data = self.blocks.get(f"texts-{track['process']}", b"")
        found: dict[tuple[int, int], Any] = {}
        for event in self.row(track.get("texts", [0])):
            at = int(event.value)
            found[event.start, event.id] = json.loads(data[at : data.index(b"\0", at)])
        return found

    def name(self, process: int, site: int) -> str:
        """Return the name of a process's call site."""
        return self.names["names"][self.names["sites"][process][site]][0]

    def table(self, name: str) -> list[dict[str, Any]]:
        """Return a table as in --json; numbers beyond 2^53, strings in the page, as numbers."""
        table = next(table for table in self.index["tables"] if table["name"] == name)
        columns = [
            [int(cell) if isinstance(cell, str) and column["type"] != "text" else cell for cell in cells]
            for column, cells in zip(table["columns"], table["cells"])
        ]
        names = [column["name"] for column in table["columns"]]
        return [dict(zip(names, row)) for row in zip(*columns)]
