"""Report pages, as files and in notebooks."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable
    from typing import Union

    Path = Union[str, os.PathLike[str]]
    Writer = Callable[[int], None]

HEIGHT = 640
"""The height of a page in a notebook, in pixels."""


class Page:
    """A report page. Made by Recording.page() and Comparison.page(); a notebook shows it as the last value of a cell.

    `html` is the whole self-contained file; `save(path)` writes it.
    """

    def __init__(self, html: str) -> None:
        """Wrap a page."""
        self.html = html

    def save(self, path: Path) -> None:
        """Write the page to a file, for any browser."""
        from marey._replace import replacing

        with replacing(path, encoding="utf-8", newline="") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        """Show it in a notebook: in a sandboxed frame."""
        import html

        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" title="marey report" '
            f'style="width: 100%; height: {HEIGHT}px; border: 1px solid #ccc"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<marey page, {len(self.html):,} characters; save(path) writes it>"


def make_page(write: Writer) -> Page:
    """Create a page from a function that writes one to a file descriptor."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        write(file.fileno())
        file.seek(0)
        return Page(file.read().decode("utf-8"))


def write_page(path: Path, write: Writer) -> None:
    """Write a page to a file; an incomplete one is removed."""
    from marey._replace import replacing

    with replacing(path, "wb") as file:
        write(file.fileno())
