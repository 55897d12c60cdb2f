"""The examples that communicate, as their readers run them."""

from __future__ import annotations

import importlib.util
import json
import re

import pytest
from mpi_jobs import ROOT, torchrun


def test_mpi_loop(mpi, compiled, build, run, tool, recorded, tmp_path):
    libraries = build / "core"
    flags = (f"-L{libraries}", "-lmarey", f"-Wl,-rpath,{libraries}")
    program = compiled(str(ROOT / "examples" / "mpi_loop.c"), *flags)
    alone = run(mpi.run(2, program)).stdout
    within = run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, program, 1)]).stdout
    assert re.fullmatch(r"largest change in the last step: 0\.\d{6}\n", alone)
    assert within == alone
    for process in recorded(tmp_path / "run.marey"):
        names = [call["name"] for call in process["ranges"]]
        assert names.count("step") == 200
        assert names.count("update") == 200 * (4 if process["rank"] == 1 else 3)
        exchanges = [call["told"] for call in process["ranges"] if call["name"] == "MPI_Waitall"]
        assert {(told["out"], told["peer"]) for told in exchanges} == {(8, 1 - process["rank"])}
    found = json.loads(run([tool, "breakdown", "--json", "run.marey"]).stdout)
    assert {(device["rank"], device["window"]) for device in found["devices"]} >= {(0, "steps"), (1, "steps")}
    assert all(device["exposed_comm"] > 0 for device in found["devices"])
    assert [row["count"] for row in found["collectives"] if row["what"] == "all_reduce"] == [10]


needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
DDP_GLOO = (ROOT / "examples" / "ddp_gloo.py", "--steps", 20)


@needs_torch
@pytest.mark.slow
def test_ddp_gloo_computes_the_same_under_marey(run, tool):
    alone = run(torchrun(2, *DDP_GLOO)).stdout
    assert (
        run([tool, "run", "--only", "ranges", "-o", "run.marey", "--", *torchrun(2, *DDP_GLOO, "--slow", 1)]).stdout
        == alone
    )


@needs_torch
def test_ddp_gloo(run, tool, tmp_path):
    said = run([tool, "run", "--only", "ranges", "-o", "run.marey", "--", *torchrun(2, *DDP_GLOO, "--slow", 1)]).stdout
    assert re.fullmatch(r"loss 0\.\d{4}\n", said)
    found = json.loads(run([tool, "breakdown", "--json", "run.marey"]).stdout)
    reduce = next(row for row in found["collectives"] if row["what"] == "all_reduce")
    assert reduce["group"] == "default_pg 0-1"
    assert reduce["slowest_rank"].startswith("rank 1 ")
    assert all(device["hidden_comm"] > 0 for device in found["devices"])
