"""Shared by the tests in a browser: the browser, and report pages open in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from page_in_browser import PageInBrowser


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with perfetto_page.launched() as launched:
        yield launched


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Any]:
    """Open pages by name in the `folder` of the tests; each must end without errors."""
    pages: list[PageInBrowser] = []

    def open_page(name: str, **more: Any) -> PageInBrowser:
        pages.append(PageInBrowser(browser, folder / name, **more))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()
