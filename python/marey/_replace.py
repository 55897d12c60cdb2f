"""Atomic replacement of output files: an old file is kept until the new one is complete."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from typing import IO, TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = Union[str, "os.PathLike[str]"]


@contextlib.contextmanager
def replacing(path: Path, mode: str = "w", **how: Any) -> Iterator[IO[Any]]:
    """Open a file like open(). The new content replaces `path` when the block ends without an exception.

    Links are followed and permissions kept. Pipes and devices are written to directly.
    """
    try:
        old: Optional[os.stat_result] = os.stat(path)
    except FileNotFoundError:
        old = None
    final = os.path.realpath(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, mode, **how) as file:
            yield file
    elif old is not None and not _is_ours(final, old):
        with open(path, "r+b") as target, tempfile.TemporaryFile() as apart:
            with open(os.dup(apart.fileno()), mode, **how) as file:
                yield file
            apart.seek(0)
            target.truncate()
            shutil.copyfileobj(apart, target)
    else:
        fd, temporary = tempfile.mkstemp(prefix=os.path.basename(final) + ".", dir=os.path.dirname(final))
        try:
            with open(fd, mode, **how) as file:
                os.chmod(temporary, 0o666 & ~_umask() if old is None else stat.S_IMODE(old.st_mode))
                yield file
            os.replace(temporary, final)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def _is_ours(path: str, old: os.stat_result) -> bool:
    """Whether the file may be replaced: not with several links, another owner, or in a read-only folder."""
    return old.st_nlink == 1 and old.st_uid == os.geteuid() and os.access(os.path.dirname(path), os.W_OK)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
