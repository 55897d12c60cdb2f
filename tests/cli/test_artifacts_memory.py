"""Memory artifacts of torch's traces.

Categories are compared with the model and torch's timeline; the snapshot is checked with Python's pickle, with the
requirements of PyTorch's memory viewer, and with torch's tools.
"""

from __future__ import annotations

import gzip
import json
import pickle
import pickletools
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from built import Finished
from page_decoder import needs_viewer

# Each test makes the page of the timeline, too.
pytestmark = needs_viewer

PARAMETER, STATE, INPUT, TEMPORARY, ACTIVATION, GRADIENT, DETAIL, UNKNOWN = range(8)
CREATE, DESTROY = 2, 4
FILES = [
    "rank0_memory-timeline.html",
    "rank0_memory-timeline.json.gz",
    "rank0_memory-timeline.raw.json.gz",
    "rank0_memory_snapshot.pickle",
]
# The types that the viewer's unpickler supports.
OPCODES = """
    PROTO FRAME MARK STOP NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE
    EMPTY_LIST APPEND APPENDS LIST EMPTY_DICT SETITEM SETITEMS DICT EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 BINPUT
    LONG_BINPUT MEMOIZE BINGET LONG_BINGET
"""


def unpacked(path: Path) -> Any:
    with gzip.open(path) as file:
        return json.load(file)


# ---- real training ----


def record(path: Path, *, annotated: bool, with_roles: bool) -> SimpleNamespace:
    """Two steps of a small model with Adam in one window; gradients of the second step stay."""
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(640, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters())
    loss_of = torch.nn.CrossEntropyLoss()
    roles: list[list[Any]] = []

    def take(kind: str, tensors: Any) -> None:
        now = time.time_ns()
        for name, tensor in tensors:
            storage = tensor.untyped_storage()
            roles.append([kind, storage.data_ptr(), storage.nbytes(), 0, -1, now, name])

    def phase(name: str) -> Any:
        return record_function(f"marey:{name}") if annotated else record_function("mine")

    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    wants = {"profile_memory": True, "record_shapes": True, "with_stack": True, "experimental_config": verbose}
    with profile(activities=[ProfilerActivity.CPU], **wants) as profiler:
        take("parameter", model.named_parameters())
        for step in range(2):
            with phase("data"):
                batch, labels = torch.randn(32, 640), torch.randint(0, 10, (32,))
                take("input", [("batch", batch), ("labels", labels)])
            with phase("forward"):
                output = model(batch)
            loss = loss_of(output, labels)  # outside of any phase
            with phase("backward"):
                loss.backward()
            take("gradient", [(name, parameter.grad) for name, parameter in model.named_parameters()])
            with phase("optimizer"):
                optimizer.step()
                if step == 0:
                    optimizer.zero_grad()
        take("optimizer_state", [(key, value) for state in optimizer.state.values() for key, value in state.items()])
        if with_roles:
            profiler.add_metadata_json("marey", json.dumps({"version": 1, "rank": 0, "roles": roles}))
    profiler.export_chrome_trace(str(path))
    return SimpleNamespace(
        path=path,
        profiler=profiler,
        parameters=sum(parameter.nbytes for parameter in model.parameters()),
        gradients=sum(parameter.grad.nbytes for parameter in model.parameters()),
        states=sum(value.nbytes for state in optimizer.state.values() for value in state.values()),
        inputs=batch.nbytes + labels.nbytes,
    )


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    return record(tmp_path_factory.mktemp("named") / "trace.json", annotated=True, with_roles=True)


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    return record(tmp_path_factory.mktemp("annotated") / "trace.json", annotated=True, with_roles=False)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    return record(tmp_path_factory.mktemp("bare") / "trace.json", annotated=False, with_roles=False)


@pytest.fixture
def make(marey: Callable[..., Finished], tmp_path: Path) -> Callable[..., Path]:
    """Make the memory artifacts of a trace; returns the directory."""

    def run(trace: Path) -> Path:
        done = marey("artifacts", trace, "-o", "out", "--only", "timeline,snapshot")
        assert (done.returncode, done.stderr) == (0, "")
        return tmp_path / "out"

    return run


def rows_of(folder: Path) -> tuple[list[int], list[list[int]]]:
    times, sizes = unpacked(folder / "rank0_memory-timeline.json.gz")
    assert len(times) == len(sizes)
    assert times == sorted(times)
    assert all(len(row) == 9 and row[0] == 0 and min(row) >= 0 for row in sizes)
    return times, [row[1:] for row in sizes]


def test_roles_give_what_the_model_has_to_the_byte(named: SimpleNamespace, make: Callable[..., Path]) -> None:
    folder = make(named.path)
    assert sorted(path.name for path in folder.iterdir()) == FILES
    _times, sizes = rows_of(folder)
    last = sizes[-1]
    assert last[PARAMETER] == named.parameters
    assert last[GRADIENT] == named.gradients
    assert last[STATE] == named.states
    assert last[INPUT] == named.inputs
    assert last[UNKNOWN] == 0
    # Parameters are there from the begin to the end, gradients never more than once.
    assert {row[PARAMETER] for row in sizes} == {named.parameters}
    assert max(row[GRADIENT] for row in sizes) == named.gradients
    assert max(row[STATE] for row in sizes) == named.states
    assert max(row[ACTIVATION] for row in sizes) > 0


@pytest.mark.parametrize("how", ["annotated", "bare"])
def test_phases_give_gradients_and_states_to_the_byte(
    how: str, make: Callable[..., Path], request: pytest.FixtureRequest
) -> None:
    """Without roles; and without our annotations, by the operators of autograd and the optimizer's own annotation."""
    trained = request.getfixturevalue(how)
    _times, sizes = rows_of(make(trained.path))
    assert sizes[-1][GRADIENT] == trained.gradients
    assert sizes[-1][STATE] == trained.states
    assert max(row[GRADIENT] for row in sizes) == trained.gradients
    assert max(row[STATE] for row in sizes) == trained.states
    if how == "annotated":
        assert sizes[-1][INPUT] == trained.inputs
        assert sizes[-1][UNKNOWN] == 0


def test_the_timeline_is_torchs_own(named: SimpleNamespace, make: Callable[..., Path], tmp_path: Path) -> None:
    memory_profiler = pytest.importorskip("torch.profiler._memory_profiler")
    theirs = memory_profiler.MemoryProfileTimeline(named.profiler._memory_profile())
    theirs.export_memory_timeline_raw(str(tmp_path / "raw.json"), "cpu")
    theirs.export_memory_timeline(str(tmp_path / "sums.json"), "cpu")
    folder = make(named.path)
    ours = unpacked(folder / "rank0_memory-timeline.raw.json.gz")
    changes = json.loads((tmp_path / "raw.json").read_text())

    def allocations(rows: list[list[int]]) -> Counter[tuple[int, int, int]]:
        """To the nanosecond and to the byte."""
        return Counter((t, action, size) for t, action, size, _category in rows if action in (CREATE, DESTROY))

    assert allocations(ours) == allocations(changes)
    # Of what is there at the end the categories agree as well; what torch says of each version in between is finer.
    assert rows_of(folder)[1][-1] == json.loads((tmp_path / "sums.json").read_text())[1][-1][1:]
    before = [[size, category] for _t, action, size, category in changes if action == 1 and category == PARAMETER]
    assert sorted(before) == sorted([size, category] for t, _action, size, category in ours if t == -1)


def test_single_changes_add_up_to_the_sums(annotated: SimpleNamespace, make: Callable[..., Path]) -> None:
    folder = make(annotated.path)
    times, sizes = rows_of(folder)
    sums, by_time = [0] * 8, {}
    for t, action, size, category in unpacked(folder / "rank0_memory-timeline.raw.json.gz"):
        assert (size < 0) == (action == DESTROY)
        sums[category] += size
        by_time[t // 1000] = list(sums)
    assert by_time == dict(zip(times, sizes))


# ---- the snapshot ----


def allocation(ts: float, address: int, size: int, device: int = -1, total: int = 0, stack: str = "") -> dict[str, Any]:
    args = {"Addr": address, "Bytes": size, "Device Type": int(device >= 0), "Device Id": device}
    args |= {"Total Allocated": total, "Total Reserved": 4 * total, "Call stack": stack}
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": ts,
        "args": args,
    }


def write_trace(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": events}))
    return path


def check_frames(frames: Any) -> None:
    for frame in frames:
        assert sorted(frame) == ["filename", "line", "name"]
        assert isinstance(frame["line"], int)


def check_segment(segment: dict[str, Any]) -> None:
    """Blocks tile their segment, as the viewer adds up their sizes to know where they are."""
    at, live = segment["address"], 0
    for block in segment["blocks"]:
        assert block["address"] == at
        assert block["size"] > 0
        assert block["state"] in ("active_allocated", "inactive")
        live += block["size"] if block["state"] == "active_allocated" else 0
        at += block["size"]
        check_frames(block["frames"])
    assert at == segment["address"] + segment["total_size"] < 2**53
    assert segment["allocated_size"] == segment["active_size"] == segment["requested_size"] == live
    assert segment["segment_type"] in ("small", "large")
    assert segment["segment_pool_id"] == (0, 0)
    assert segment["is_expandable"] is False


def check_trace(trace: list[dict[str, Any]], segments: list[dict[str, Any]]) -> None:
    """Emulate the viewer: pairs of releases, blocks within segments, final blocks."""
    live = {}
    for i, entry in enumerate(trace):
        assert set(entry) == {"action", "addr", "size", "stream", "time_us", "frames", "category"}
        check_frames(entry["frames"])
        if entry["action"] == "snapshot":
            continue
        assert any(s["address"] <= entry["addr"] < s["address"] + s["total_size"] for s in segments)
        if entry["action"] == "alloc":
            assert entry["addr"] not in live
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_requested":
            assert (trace[i + 1]["action"], trace[i + 1]["addr"]) == ("free_completed", entry["addr"])
            live.pop(entry["addr"], None)
    at_end = {b["address"]: b["size"] for s in segments for b in s["blocks"] if b["state"] == "active_allocated"}
    assert live.items() <= at_end.items()
    assert [entry["time_us"] for entry in trace] == sorted(entry["time_us"] for entry in trace)


def load_snapshot(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    assert {opcode.name for opcode, _argument, _at in pickletools.genops(content)} <= set(OPCODES.split())
    assert content[:2] == b"\x80\x04"
    snapshot = pickle.loads(content)
    assert sorted(snapshot) == ["device_traces", "segments"]
    for segment in snapshot["segments"]:
        check_segment(segment)
    for device, trace in enumerate(snapshot["device_traces"]):
        check_trace(trace, [segment for segment in snapshot["segments"] if segment["device"] == device])
    entries = [entry for trace in snapshot["device_traces"] for entry in trace]
    assert not entries or any(entry["category"] == "unknown" for entry in entries)
    return snapshot


def test_the_snapshot_is_what_the_viewer_reads(named: SimpleNamespace, make: Callable[..., Path]) -> None:
    snapshot = load_snapshot(make(named.path) / "rank0_memory_snapshot.pickle")
    assert len(snapshot["device_traces"]) == 1
    trace = snapshot["device_traces"][0]
    frames = [frame for entry in trace for frame in entry["frames"]]
    assert any(frame["filename"].endswith("linear.py") and frame["name"] == "forward" for frame in frames)
    # A block that existed before has no event, but a category.
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    parameters = [b for b in blocks if [f["filename"] for f in b["frames"]] == ["parameter"]]
    assert sum(block["size"] for block in parameters) == named.parameters
    assert {frame["name"] for block in parameters for frame in block["frames"]} == {
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    }
    # Equal stacks are one object.
    texts: dict[str, set[int]] = {}
    for entry in trace:
        texts.setdefault(json.dumps(entry["frames"]), set()).add(id(entry["frames"]))
    shared = [ids for text, ids in texts.items() if "parameter" not in text]
    assert all(len(ids) == 1 for ids in shared)


def test_torchs_own_tools_take_the_snapshot(named: SimpleNamespace, make: Callable[..., Path]) -> None:
    pytest.importorskip("torch")
    from torch.cuda import _memory_viz

    snapshot = load_snapshot(make(named.path) / "rank0_memory_snapshot.pickle")
    live = sum(b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated")
    assert "Memory Usage" in _memory_viz.segment_plot(snapshot) or "MemoryViz" in _memory_viz.segment_plot(snapshot)
    assert len(_memory_viz.trace_plot(snapshot)) > 1000
    assert "MEM[" in _memory_viz.trace(snapshot)
    assert "segment" in _memory_viz.segsum(snapshot)
    lines = _memory_viz.memory(snapshot, format_flamegraph=lambda text: text).splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines if "inactive" not in line) == live


def test_long_lists_come_in_pieces_and_gpus_have_their_numbers(make: Callable[..., Path], tmp_path: Path) -> None:
    stack = "model.py(%d): f(x);<built-in method>;main.py(3): <module>;"
    events = []
    for i in range(2500):
        gpu = (-1, 0, 3)[i % 3]
        events.append(allocation(10 + i, 0x7F0000000000 + 4096 * i, 512 + i, gpu, 10**6 + 512 * i, stack % (i % 7)))
    trace = write_trace(tmp_path / "many.json", events)
    path = make(trace) / "rank0_memory_snapshot.pickle"
    snapshot = load_snapshot(path)
    assert [len(trace) for trace in snapshot["device_traces"]] == [834, 0, 0, 834, 835]
    items = [0]
    for opcode, _argument, _at in pickletools.genops(path.read_bytes()):
        if opcode.name == "MARK":
            items.append(0)
        elif opcode.name in ("APPENDS", "SETITEMS"):
            assert items.pop() <= 1000
            continue
        elif opcode.name == "EMPTY_DICT":
            items[-1] += 1
    assert snapshot["device_traces"][0][0]["frames"][0] == {"filename": "model.py", "line": 1, "name": "f(x)"}
    assert snapshot["device_traces"][0][0]["frames"][1]["name"] == "<built-in method>"


def test_a_gpu_comes_before_the_cpu(make: Callable[..., Path], tmp_path: Path) -> None:
    events = [
        allocation(1, 0x1000, 111),
        allocation(2, 0x7F0000000000, 512, 1, 5512),
        allocation(3, 0x7F0000000000, -512, 1, 5000),
    ]
    folder = make(write_trace(tmp_path / "trace.json", events))
    assert rows_of(folder)[1] == [[0, 0, 0, 0, 0, 0, 0, total] for total in (5000, 5512, 5000)]


def test_a_trace_without_allocations_is_reported(marey: Callable[..., Finished], tmp_path: Path) -> None:
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {}}
    trace = write_trace(tmp_path / "trace.json", [operator])
    done = marey("artifacts", trace, "-o", "out", "--only", "timeline,snapshot")
    assert done.returncode == 2
    assert done.stderr.count("profile_memory=True") == 2
    assert marey("artifacts", trace, "-o", "out").returncode == 0
    assert not list((tmp_path / "out").glob("*memory*"))
