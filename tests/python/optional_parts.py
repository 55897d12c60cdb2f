"""Which tests need parts that a build may lack.

xxHash makes digests of tensors; Node.js builds the template of pages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import marey


def has_digests() -> bool:
    """Asked in a process of its own, whose dumper may be switched."""
    switch = "import sys, marey; marey.TensorDumper().enable(sys.argv[1], mode='digests')"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", switch, folder]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0 or "libxxhash-dev" in done.stderr, done.stderr
    return done.returncode == 0


def has_viewer() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "meta.json").write_text('{\n  "format": "marey recording"\n}\n')
        try:
            marey.load(folder).page()
        except marey.MareyError as error:
            assert "Node.js was missing" in str(error)
            return False
    return True


needs_viewer = pytest.mark.skipif(not has_viewer(), reason="this build was made without Node.js")
needs_digests = pytest.mark.skipif(not has_digests(), reason="this build has no xxHash")
