"""marey.plot(): an interactive chart of calls, in a notebook or a browser."""

from __future__ import annotations

import os

from marey._page import Page, make_page
from marey._recording import Recording, load

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Sequence
    from typing import Any, Optional, Union

    Path = Union[str, os.PathLike[str]]

PATH = "marey-calls.html"
"""The default path of a page."""


def plot(
    p: Union[Recording, Path, Sequence[Path], Any],
    other: Union[Recording, Path, Sequence[Path], Any, None] = None,
    path: Optional[Path] = None,
    open_browser: Optional[bool] = None,
) -> Page:
    """Show calls as nested boxes: call paths, functions, their arguments, and changes.

    `p` is a marey.Profile, a recording or the result of marey.load(), or a profile of cProfile: its file, the
    cProfile.Profile or the pstats.Stats. `other` is another of these, with which `p` is compared: an earlier run.

    A notebook shows the page as the last value of a cell, and writes a file only if `path` is given. Elsewhere the page
    is written to `path` ("marey-calls.html" in the current directory, which is overwritten). It is opened in a browser
    if there is a display, else its path is printed; `open_browser` True or False overrides that.
    """
    import contextlib

    with contextlib.ExitStack() as stack:
        recording, name = _recording_of(p, stack, "this profile")
        before, name_before = (None, None) if other is None else _recording_of(other, stack, "the other profile")
        native = None if before is None else before._native
        page = make_page(lambda fd: recording._native.calls_page(fd, None, name, native, name_before))
    in_notebook = _is_notebook()
    if path is not None or not in_notebook:
        target = os.path.abspath(PATH if path is None else path)
        page.save(target)
        if not in_notebook or open_browser:
            _present(target, open_browser)
    return page


def _recording_of(p: Any, stack: Any, name: str) -> tuple[Recording, Optional[str]]:
    """Return calls as a recording, and a title if the file name is meaningless."""
    if isinstance(p, Recording):
        return p, None
    if isinstance(p, (str, os.PathLike, list, tuple)):
        return load(p), None
    if not hasattr(p, "dump_stats"):
        raise TypeError(f"marey.plot takes a profile, a recording or the path of one, not {type(p).__name__}")
    import tempfile

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="marey-plot-"))
    has_paths = hasattr(p, "save")  # a marey.Profile; others only have caller pairs
    file = os.path.join(folder, "profile.klog" if has_paths else "profile.prof")
    (p.save if has_paths else p.dump_stats)(file)
    return load(file), name


def _is_notebook() -> bool:
    """Whether a notebook shows values: in an IPython kernel, not in its terminal shell."""
    import sys

    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and getattr(get_ipython(), "kernel", None) is not None


def _present(path: str, open_browser: Optional[bool]) -> None:
    """Open the file in a browser, or print its path if there is no browser."""
    # Without a display, webbrowser would start a text browser in the program's terminal.
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if open_browser if open_browser is not None else has_display:
        import pathlib
        import webbrowser

        if webbrowser.open(pathlib.Path(path).as_uri()):
            return
    print(path)
