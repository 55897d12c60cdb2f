"""What all tests share: the mark for slow ones; programs under test react to Ctrl-C, also in the background."""

from __future__ import annotations

import signal

import pytest
from long_run import IS_LONG

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that are started then have the default


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not IS_LONG:
            item.add_marker(pytest.mark.skip(reason="slow: MAREY_LONG=1 (make check) runs it"))
