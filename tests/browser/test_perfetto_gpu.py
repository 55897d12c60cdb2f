"""Traces with GPU activity, converted by marey, opened in the real Perfetto UI and queried in SQL.

The traces are PyTorch's, from tests/data/kineto; the expected events are read from their JSON.
"""

from __future__ import annotations

import collections
import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from marey_command import run_marey

pytestmark = pytest.mark.skipif(bool(perfetto_page.what_is_missing()), reason=perfetto_page.what_is_missing())

KINETO = Path(__file__).parents[1] / "data" / "kineto"
GPU = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync")
TRACES = ("mi250_minitoy_train_ROCm6_2_kineto", "sampled_rank-0", "event_sync_trace")
# The pages of a default run, because the UI takes seconds to open.
QUICK = {f"sampled_rank-0.{ending}" for ending in ("pftrace", "json", "gpu.pftrace")} | {"event_sync_trace.pftrace"}


def traces(*endings: str) -> list[Any]:
    """All traces in these formats, as parameters."""
    pairs = [(name, ending, f"{name}.{ending}") for name in TRACES for ending in endings]
    return [
        pytest.param((name, ending), id=file, marks=() if file in QUICK else pytest.mark.slow)
        for name, ending, file in pairs
    ]


# Device and stream of a slice: by the names of tracks in ours, by pid and tid in Chrome's format.
OF_PERFETTO = """
SELECT d.name AS device, t.name AS stream, s.name, s.ts, s.dur, s.id FROM slice s
JOIN track t ON t.id = s.track_id JOIN track d ON d.id = t.parent_id WHERE d.name GLOB 'GPU *'
"""
OF_CHROME = """
SELECT 'GPU ' || p.pid AS device, 'stream ' || h.tid AS stream, s.name, s.ts, s.dur, s.id FROM slice s
JOIN thread_track t ON t.id = s.track_id JOIN thread h USING (utid) JOIN process p USING (upid) WHERE p.pid < 16
"""


# Activity as GPU events: the name is the stage's, the track the hardware queue's.
OF_NATIVE = """
SELECT t.name AS stream, s.name, s.ts, s.dur, s.arg_set_id FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu") / "traces"
    folder.mkdir()
    for name in TRACES:
        for ending in ("pftrace", "json"):
            run_marey("export", KINETO / f"{name}.json.gz", "-o", folder / f"{name}.{ending}")
        native = folder / f"{name}.gpu.pftrace"
        run_marey("export", KINETO / f"{name}.json.gz", "--to", "perfetto-gpu", "-o", native)
    return folder


@pytest.fixture(scope="module")
def address(exported: Path) -> Iterator[str]:
    with perfetto_page.served(exported) as at:
        yield at


@pytest.fixture(scope="module", params=traces("pftrace", "json"))
def opened(
    request: pytest.FixtureRequest, browser: Any, address: str
) -> Iterator[tuple[perfetto_page.PerfettoPage, dict[str, Any], bool]]:
    name, ending = request.param
    page = perfetto_page.PerfettoPage(browser, address, f"{name}.{ending}")
    trace = json.loads(gzip.decompress((KINETO / f"{name}.json.gz").read_bytes()), parse_float=Decimal)
    yield page, trace, ending == "json"
    page.close()


def work_of(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] in GPU]


def stream_of(event: dict[str, Any], is_chrome: bool) -> str:
    """Where it is shown. Perfetto reads a thread of Chrome's format that is 0 or less as the process."""
    if is_chrome and event["tid"] <= 0:
        return f"stream {event['pid']}"
    return f"Device {event['pid']}" if event["tid"] < 0 else f"stream {event['tid']}"  # as the traces call it


def test_each_stream_has_its_work(opened):
    page, trace, is_chrome = opened
    rows = page.query(OF_CHROME if is_chrome else OF_PERFETTO)
    events = work_of(trace)
    first = min(int(Decimal(e["ts"]) * 1000) for e in events)
    start = min(r["ts"] for r in rows)
    expected = collections.Counter(
        (
            f"GPU {e['pid']}",
            stream_of(e, is_chrome),
            e["name"],
            int(Decimal(e["ts"]) * 1000) - first,
            int(e["dur"] * 1000),
        )
        for e in events
    )
    found = collections.Counter(
        (r["device"], r["stream"].strip(), r["name"], int(r["ts"] - start), int(r["dur"])) for r in rows
    )
    assert found == expected


def test_arrows_lead_from_launches_to_work(opened):
    page, trace, is_chrome = opened
    arrows = page.query("SELECT slice_out, slice_in FROM flow")
    on_gpu = {r["id"] for r in page.query(OF_CHROME if is_chrome else OF_PERFETTO)}
    launches = {
        e["args"]["correlation"]
        for e in trace["traceEvents"]
        if e["ph"] == "X" and e["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }
    led = [e for e in work_of(trace) if e["args"].get("correlation") in launches]
    to_work = [a for a in arrows if a["slice_in"] in on_gpu]
    assert len(to_work) == len(led) > 0
    assert not [a for a in to_work if a["slice_out"] in on_gpu]


def test_perfetto_finds_no_mistake(opened):
    page, _, _ = opened
    wrong = page.query("SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0")
    assert wrong == []


@pytest.mark.parametrize("native", traces("gpu.pftrace"))
def test_native_events_are_on_queues_of_the_gpu(browser: Any, address: str, native: tuple[str, str]) -> None:
    """v52 knows these events, their names and extra data; launches and the arrows to them are for later versions."""
    name, ending = native
    page = perfetto_page.PerfettoPage(browser, address, f"{name}.{ending}")
    trace = json.loads(gzip.decompress((KINETO / f"{name}.json.gz").read_bytes()), parse_float=Decimal)
    rows = page.query(OF_NATIVE)
    events = work_of(trace)
    first = min(int(Decimal(e["ts"]) * 1000) for e in events)
    start = min(r["ts"] for r in rows)
    expected = collections.Counter(
        (stream_of(e, False), e["name"], int(Decimal(e["ts"]) * 1000) - first, int(e["dur"] * 1000)) for e in events
    )
    found = collections.Counter((r["stream"].strip(), r["name"], int(r["ts"] - start), int(r["dur"])) for r in rows)
    assert found == expected
    grids = {json.dumps(e["args"]["grid"]) for e in events if "grid" in e["args"]}
    told = page.query("SELECT DISTINCT display_value AS grid FROM args WHERE key = 'grid'")
    assert {json.dumps(json.loads(r["grid"])) for r in told} == grids
    assert any(title == "GPU" for title, _ in page.titles())
    page.close()
