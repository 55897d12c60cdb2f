"""What the tests of sampling share: long ones are asked for, and marey works in the test's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from watching import IS_LONG, MAREY, Marey


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: only with MAREY_LONG=1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long") and not IS_LONG:
            item.add_marker(pytest.mark.skip(reason="a long run: MAREY_LONG=1 (make check) asks for it"))


@pytest.fixture
def marey(tmp_path: Path) -> Marey:
    if not Path(MAREY).exists():
        pytest.fail(f"{MAREY} is not there; build it first, or set MAREY_BUILD to the build folder")
    return Marey(tmp_path)
