"""A window of operators in Kineto's format, opened in the real Perfetto UI: nothing is rejected or missing."""

from __future__ import annotations

import collections
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from marey_command import run_marey

pytestmark = [
    pytest.mark.skipif(bool(perfetto_page.what_is_missing()), reason=perfetto_page.what_is_missing()),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="torch is not installed; tools/torch installs it"
    ),
]

TRAINING = """
import sys
import torch
import marey
from marey._operators import Operators

model = torch.nn.Linear(8, 4)
operators = Operators()
marey.start(sys.argv[1])
operators.start()
for step in range(3):
    with marey.range("ProfilerStep", category="step", payload=step):
        model(torch.ones(2, 8)).sum().backward()
operators.stop()
marey.stop()
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kineto") / "traces" / "run.marey"
    path.parent.mkdir()
    subprocess.run([sys.executable, "-c", TRAINING, path], check=True)
    run_marey("export", path, "--to", "kineto", "-o", path.with_name("run.pt.trace.json"))
    return path.with_name("run.pt.trace.json")


@pytest.fixture(scope="module")
def ui(browser: Any, trace: Path) -> Iterator[perfetto_page.PerfettoPage]:
    with perfetto_page.served(trace.parent) as address:
        page = perfetto_page.PerfettoPage(browser, address, trace.name)
        yield page
        page.close()


def test_nothing_is_refused(ui):
    assert ui.query("select name, idx, value from stats where severity in ('error', 'data_loss') and value > 0") == []


def test_each_range_is_a_slice(ui, trace):
    written = collections.Counter(
        (event["name"], event["cat"]) for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"
    )
    shown = ui.query("select name, category, count(*) n from slice group by name, category")
    assert written["aten::linear", "cpu_op"] == 3
    assert {(row["name"], row["category"]): row["n"] for row in shown} == dict(written)


def test_operators_lie_in_their_steps(ui):
    (row,) = ui.query(
        "select count(*) n from slice s join ancestor_slice(s.id) a "
        "where s.name = 'aten::addmm' and a.name glob 'ProfilerStep#*'"
    )
    assert row["n"] == 3
