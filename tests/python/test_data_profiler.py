"""The lines of accelerate.profiler's document, and what data_profiler has besides, with one import changed."""

from __future__ import annotations

import pstats
import re
import subprocess
import sys

import pytest
from optional_parts import needs_viewer

from marey import profiler  # was: from accelerate import profiler

np = pytest.importorskip("numpy")

PROGRAM = """
from marey import profiler
import numpy as np

def dot(a, b):
  sum=0
  for i in range(len(a)):
      sum += a[i]*b[i]
  return sum

a = np.arange(16, dtype=np.float32)
b = np.arange(16, dtype=np.float32)

p = profiler.Profile(signatures=False)
p.enable()
dot(a, b)
p.disable()
p.print_stats()

p = profiler.Profile()
p.enable()
dot(a, b)
p.disable()
p.print_stats()
profiler.plot(p)
"""


def dot(a, b):
    total = 0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


LINE = dot.__code__.co_firstlineno
ARRAY = "ndarray(dtype=float32, shape=(16,))"


@pytest.fixture
def arrays():
    return np.arange(16, dtype=np.float32), np.arange(16, dtype=np.float32)


@needs_viewer
def test_the_program_of_the_document(tmp_path):
    (tmp_path / "dot.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "dot.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    plain, signed = re.split(r"(?m)^(?= *\d+ function calls)", done.stdout)[1:]
    for table in (plain, signed):
        assert "3 function calls in " in table
        assert "Ordered by: standard name" in table
        assert "ncalls  tottime  percall  cumtime  percall filename:lineno(function)" in table
    assert "dot.py:5(dot)" in plain
    assert f"dot.py:5(dot(a:{ARRAY}, b:{ARRAY}))" in signed
    # The documented call writes a page; the window of a notebook it asked for is not needed.
    assert "<html" in (tmp_path / "marey-calls.html").read_text()


def test_stats_are_those_of_the_standard_library():
    assert profiler.Stats is pstats.Stats
    with pytest.raises(AttributeError, match="stats"):
        profiler.stats  # noqa: B018


def test_importing_marey_does_not_import_them():
    program = "import sys, marey; assert 'pstats' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_signatures_are_in_the_statistics(arrays):
    p = profiler.Profile()
    p.enable()
    dot(*arrays)
    p.disable()
    stats = profiler.Stats(p).strip_dirs()
    assert ("test_data_profiler.py", LINE, f"dot(a:{ARRAY}, b:{ARRAY})") in stats.stats


def test_without_signatures_the_name_is_there(arrays):
    a, b = arrays
    p = profiler.Profile(signatures=False)
    p.runctx("dot(a, b)", globals(), locals())
    stats = profiler.Stats(p).strip_dirs()
    assert ("test_data_profiler.py", LINE, "dot") in stats.stats


def test_a_dumped_file_is_read_back(arrays, tmp_path):
    p = profiler.Profile(signatures=False)
    p.runcall(dot, *arrays)
    p.dump_stats(tmp_path / "x.prof")
    stats = profiler.Stats(str(tmp_path / "x.prof")).strip_dirs()
    assert stats.stats[("test_data_profiler.py", LINE, "dot")][:2] == (1, 1)
