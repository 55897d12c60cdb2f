"""The gzipped trace of a ProfCallback, opened in the real Perfetto UI."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import perfetto_page
import pytest

from marey import _background

pytestmark = pytest.mark.skipif(bool(perfetto_page.what_is_missing()), reason=perfetto_page.what_is_missing())


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without stacks: with them annotations outlive the Python functions that begin them, and Perfetto drops them."""
    pytest.importorskip("transformers", reason="transformers is not installed; tools/setup test installs it")
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate; tools/setup test installs it")
    from tiny_trainer import make_trainer

    from marey.hf import ProfCallback

    folder = tmp_path_factory.mktemp("trainer")
    less = {"profile_memory": False, "with_stack": False}
    callback = ProfCallback(output_dir=folder, wait_steps=0, warmup_steps=1, active_steps=2, num_cycles=1, **less)
    make_trainer(folder, callback, steps=4).train()
    _background.wait()
    (path,) = (folder / "iteration_3").glob("*.pt.trace.json.gz")
    (folder / "traces").mkdir()
    return path.rename(folder / "traces" / path.name)


def test_steps_phases_and_operators_are_slices(browser: Any, trace: Path) -> None:
    with gzip.open(trace) as file:
        events = json.load(file)["traceEvents"]
    with perfetto_page.served(trace.parent) as address:
        ui = perfetto_page.PerfettoPage(browser, address, trace.name)
        try:
            assert (
                ui.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0") == []
            )
            for name in ("ProfilerStep#1", "ProfilerStep#2", "marey:forward", "marey:optimizer", "aten::addmm"):
                (row,) = ui.query(f"select count(*) n from slice where name = '{name}'")
                assert row["n"] == len([e for e in events if e["name"] == name and e["ph"] == "X"]) > 0, name
        finally:
            ui.close()
