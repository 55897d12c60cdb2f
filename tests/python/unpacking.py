"""Which tests need a build that unpacks: packed traces and PNGs are both read by ISA-L or zlib."""

from __future__ import annotations

from pathlib import Path

import pytest

import kymo

PACKED = Path(__file__).parent.parent / "data" / "kineto" / "triton_example.json.gz"


def can_unpack() -> bool:
    try:
        kymo.load(PACKED)
    except kymo.KymoError as error:
        assert "without gzip" in str(error)
        return False
    return True


needs_unpacking = pytest.mark.skipif(not can_unpack(), reason="this build has neither ISA-L nor zlib")
