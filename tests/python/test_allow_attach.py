"""marey.allow_attach: permission to attach to this process. Its effect needs Yama."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import marey

SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")


def scope() -> int | None:
    """kernel.yama.ptrace_scope; None where the kernel has no Yama."""
    return int(SCOPE.read_text()) if SCOPE.exists() else None


@pytest.mark.skipif((scope() or 0) >= 2, reason="no process may allow it here")
def test_any_process_or_one_may_be_allowed():
    marey.allow_attach()
    marey.allow_attach(None)
    marey.allow_attach(pid=os.getppid())


@pytest.mark.parametrize("wrong", [0, -1, 2**40, "one"])
def test_what_is_no_process_is_refused(wrong):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        marey.allow_attach(wrong)
