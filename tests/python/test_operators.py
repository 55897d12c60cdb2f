"""marey.operators(): the operators of a trace as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

import marey

TRACE = Path(__file__).parent.parent / "data/kineto/event_sync_trace.json.gz"


def test_operators_are_a_table_by_device_time():
    table = marey.operators(TRACE)
    assert table["name"][:3] == ["aten::mm", "ampere_sgemm_128x64_nn", "Memset (Device)"]
    assert table["self_device_ns"][:3] == [372000, 369000, 3000]
    assert table["kind"][0] == "operator"
    assert set(table["shapes"]) == {None}


def test_rows_can_be_by_name_and_sorted():
    table = marey.operators(str(TRACE), sort="count", by_name=True, stack_depth=0)
    calls = table["calls"]
    assert calls == sorted(calls, reverse=True)
    assert len(set(zip(table["name"], table["kind"]))) == len(calls)


def test_what_is_wrong_is_reported(tmp_path):
    (tmp_path / "trace.json").write_text('[{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1}]')
    with pytest.raises(ValueError, match="cannot be sorted by 'speed'"):
        marey.operators(tmp_path / "trace.json", sort="speed")
    with pytest.raises(marey.MareyError, match=r"cannot open .*none.json"):
        marey.operators(tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(marey.MareyError, match=r"not a trace of torch\.profiler"):
        marey.operators(tmp_path / "other.json")
