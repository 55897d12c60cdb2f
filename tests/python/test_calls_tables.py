"""Calls as tables for programs: of a log of calls, of a profile of cProfile, of ranges."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest

import marey

TREE = Path(__file__).parents[1] / "fuzz" / "corpus" / "calls" / "tree.klog"


def test_every_way_of_adding_up():
    recording = marey.load(TREE)
    functions = {row["function"]: row for row in recording.calls()}
    assert functions["dot"]["calls"] == 25 and functions["dot"]["primitive_calls"] == 19
    assert functions["<built-in method builtins.len>"]["kind"] == "built-in"
    signatures = [row for row in recording.calls("signature") if row["function"] == "dot"]
    assert sorted(row["elements"] for row in signatures) == [32, 64]
    assert {row["function"] for row in recording.calls("shape")} == {"dot"}
    paths = recording.calls("path")
    assert sum(row["self_ns"] for row in paths) == sum(row["self_ns"] for row in functions.values())
    assert [row["thread"] for row in recording.calls("thread")] == ["MainThread", "worker"]
    (total,) = recording.calls("total")
    assert total["calls"] == 36 and total["source"] == "calls"
    assert any("were not recorded" in row["text"] for row in recording.calls("note"))


def test_callers_callees_and_order():
    recording = marey.load(TREE)
    assert {(row["caller"], row["calls"]) for row in recording.calls(callers="dot")} == {("main", 4), ("dot", 6)}
    assert {row["callee"] for row in recording.calls(callees="main")} == {"dot"}
    apart = {row["callee"] for row in recording.calls("signature", callees="main")}
    assert apart == {"dot(a:ndarray(dtype=float32, shape=(16,)), b:int)"}
    names = [row["function"] for row in recording.calls(sort="name")]
    assert names == sorted(names)
    plain, less = (sum(row["self_ns"] for row in recording.calls(subtract=s)) for s in (False, True))
    assert less < plain
    with pytest.raises(ValueError, match="exclude one another"):
        recording.calls(callers="a", callees="b")
    with pytest.raises(ValueError, match="function, signature"):
        recording.calls("color")
    with pytest.raises(ValueError, match="cannot be sorted"):
        recording.calls(sort="color")


def test_a_profile_of_cprofile_has_its_functions(tmp_path):
    profile = cProfile.Profile()
    profile.runcall(sorted, [3, 1, 2], key=lambda x: -x)
    profile.dump_stats(tmp_path / "x.prof")
    stats = pstats.Stats(str(tmp_path / "x.prof")).stats
    recording = marey.load(tmp_path / "x.prof")
    assert {(row["function"], row["calls"]) for row in recording.calls()} == {
        (name, values[1]) for (_file, _line, name), values in stats.items()
    }
    recording.export("callgrind", tmp_path / "x.callgrind")
    assert "fn=" in (tmp_path / "x.callgrind").read_text()


def test_what_is_not_there_is_reported(tmp_path):
    marey.start(tmp_path / "plain.marey")
    with marey.range("step"):
        pass
    marey.stop()
    recording = marey.load(tmp_path / "plain.marey")
    assert [row["function"] for row in recording.calls()] == ["step"]
    with pytest.raises(ValueError, match="--calls"):
        recording.export("collapsed", tmp_path / "x", calls=True)
