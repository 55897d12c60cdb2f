"""What the tests in a browser share: the browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import perfetto_page
import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with perfetto_page.launched() as launched:
        yield launched
