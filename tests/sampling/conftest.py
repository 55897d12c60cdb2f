"""What the tests of sampling share: long ones are asked for, and kymo works in the test's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from watching import IS_LONG, KYMO, Kymo


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: only with KYMO_LONG=1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long") and not IS_LONG:
            item.add_marker(pytest.mark.skip(reason="a long run: KYMO_LONG=1 (make check) asks for it"))


@pytest.fixture
def kymo(tmp_path: Path) -> Kymo:
    if not Path(KYMO).exists():
        pytest.fail(f"{KYMO} is not there; build it first, or set KYMO_BUILD to the build folder")
    return Kymo(tmp_path)
