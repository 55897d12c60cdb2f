"""Damage to a log that a test can count on: events are lost between others of the same thread."""

from __future__ import annotations

import struct
from pathlib import Path

HEADER = struct.Struct("<IBBHIIII")
HEADER_SIZE = 48
MAGIC = 0x4B4C424D
WORDS = 4


def damage_events(recording: Path) -> None:
    """Flip a byte in the middle event block of the lane with the most blocks."""
    log = next(recording.glob("*.klog"))
    data = bytearray(log.read_bytes())
    blocks: dict[int, list[int]] = {}
    at = 0
    while at < len(data):
        magic, kind, _, _, lane, _, _, packed = HEADER.unpack_from(data, at)
        assert magic == MAGIC
        if kind == WORDS:
            blocks.setdefault(lane, []).append(at + HEADER_SIZE + packed // 2)
        at += HEADER_SIZE + (packed + 7) // 8 * 8
    most = max(blocks.values(), key=len)
    assert len(most) >= 3
    data[most[len(most) // 2]] ^= 0xFF
    log.write_bytes(data)
