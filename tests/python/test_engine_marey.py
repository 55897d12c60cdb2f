"""The engine "marey" and torch.profiler in the same process: the same operators, shapes, nesting.

One training is recorded once by each and shared by most tests. The models are tiny; the threads, the backward pass, the
fused optimizer and lists of tensors are what matters.
"""

from __future__ import annotations

import collections
import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import marey
from marey import _background
from marey._schedule import Schedule

torch = pytest.importorskip("torch", reason="torch is not installed; tools/torch installs it")

from marey._engine_marey import MareyEngine  # noqa: E402
from marey._operators import Operators  # noqa: E402
from marey._window import Driver  # noqa: E402

MAREY = _background.program()
Events = list[dict[str, Any]]


class Training:
    """A model with what is hard to get right: lists of tensors, many dimensions, scalars, tensors that are none."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(
            torch.nn.Conv1d(2, 3, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24, 4)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=True)
        self.batch = torch.randn(5, 2, 8)
        self.large = torch.ones(1, 2, 1, 2, 1, 3, 2)

    def step(self) -> None:
        with torch.profiler.record_function("my step"):
            output = torch.cat([self.model(self.batch), self.model(self.batch)])
            loss = output.sum() + self.large.mul(2.0).sum() + torch.stack([output[0]] * 40).mean()
            loss = loss + output[torch.tensor([1, 2]), torch.tensor([0, 1])].sum()  # a list of what may be tensors
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


def events_of(trace: Path) -> Events:
    opened = gzip.open(trace, "rt") if trace.suffix == ".gz" else open(trace)  # noqa: SIM115
    with opened as file:
        return [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]


def of_category(events: Events, category: str) -> Events:
    return [event for event in events if event.get("cat") == category]


def shapes_of(event: dict[str, Any]) -> str:
    return json.dumps(event["args"].get("Input Dims", []))


def paths_of(events: Events) -> collections.Counter[tuple[str, ...]]:
    """How often there is each path of ranges within ranges, thread by thread."""
    paths: collections.Counter[tuple[str, ...]] = collections.Counter()
    for tid in {event["tid"] for event in events}:
        stack: Events = []
        # One that fills another comes behind it.
        for event in sorted((e for e in events if e["tid"] == tid), key=lambda e: (e["ts"], -e["dur"])):
            while stack and event["ts"] >= stack[-1]["ts"] + stack[-1]["dur"]:
                stack.pop()
            stack.append(event)
            paths[tuple(outer["name"] for outer in stack)] += 1
    return paths


def export(recording: Path, trace: Path, *options: str) -> Events:
    subprocess.run([MAREY, "export", recording, "--to", "kineto", "-o", trace, *options], check=True)
    return events_of(trace)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Events, Events]]:
    """The same step by torch.profiler and by marey."""
    folder = tmp_path_factory.mktemp("both")
    training, operators = Training(), Operators()
    assert operators.missing is None
    training.step()
    training.step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        training.step()
    profile.export_chrome_trace(str(folder / "torch.json"))
    marey.start(folder / "own.marey")
    operators.start()
    training.step()
    operators.stop()
    training.step()  # is in neither
    marey.stop()
    yield events_of(folder / "torch.json"), export(folder / "own.marey", folder / "own.pt.trace.json")


def test_operators_are_those_of_torch_with_their_shapes(both: tuple[Events, Events]) -> None:
    theirs, ours = (
        collections.Counter((event["name"], shapes_of(event)) for event in of_category(events, "cpu_op"))
        for events in both
    )
    assert sum(theirs.values()) > 200
    assert ours == theirs


def test_annotations_are_those_of_torch(both: tuple[Events, Events]) -> None:
    theirs, ours = (
        collections.Counter(event["name"] for event in of_category(events, "user_annotation")) for events in both
    )
    assert "my step" in theirs
    assert ours == theirs


def test_ranges_lie_in_one_another_as_with_torch(both: tuple[Events, Events]) -> None:
    theirs, ours = (paths_of(of_category(events, "cpu_op") + of_category(events, "user_annotation")) for events in both)
    assert max(map(len, theirs)) >= 5
    assert ours == theirs


def test_forward_and_backward_share_numbers_as_with_torch(both: tuple[Events, Events]) -> None:
    def pairs(events: Events) -> list[list[str]]:
        numbers: dict[int, list[str]] = collections.defaultdict(list)
        for event in sorted(of_category(events, "cpu_op"), key=lambda e: (e["ts"], -e["dur"])):
            # The engine's own ranges get the number of what they run from torch.profiler, later.
            if "Sequence number" in event["args"] and not event["name"].startswith("autograd::engine"):
                numbers[event["args"]["Sequence number"]].append(event["name"])
        return [names for _, names in sorted(numbers.items())]

    theirs, ours = map(pairs, both)
    assert any("Backward" in name for names in theirs for name in names)
    assert ours == theirs


def test_names_without_shapes_where_they_are_not_asked_for(tmp_path: Path) -> None:
    operators = Operators(shapes=False)
    with_recording(tmp_path, operators, lambda: torch.ones(2, 3).add(1))
    events = of_category(export(tmp_path / "run.marey", tmp_path / "t.json"), "cpu_op")
    assert "aten::add" in {event["name"] for event in events}
    assert not any("Input Dims" in event["args"] for event in events)


def with_recording(folder: Path, operators: Operators, work: Any) -> None:
    marey.start(folder / "run.marey")
    operators.start()
    try:
        work()
    finally:
        operators.stop()
        marey.stop()


def test_other_threads_are_seen(tmp_path: Path) -> None:
    def work() -> None:
        thread = threading.Thread(target=lambda: torch.ones(7, 7).neg())
        thread.start()
        thread.join()
        torch.ones(3).abs()

    with_recording(tmp_path, Operators(), work)
    threads = {event["name"]: event["tid"] for event in export(tmp_path / "run.marey", tmp_path / "t.json")}
    assert threads["aten::neg"] != threads["aten::abs"]


def test_an_operator_that_raises_has_an_end(tmp_path: Path) -> None:
    def work() -> None:
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)
        torch.ones(3).abs()

    with_recording(tmp_path, Operators(), work)
    events = export(tmp_path / "run.marey", tmp_path / "t.json")
    failed = next(event for event in events if event["name"] == "aten::matmul")
    after = next(event for event in events if event["name"] == "aten::abs")
    assert failed["ts"] + failed["dur"] <= after["ts"]


def test_a_forked_child_records_no_operators(tmp_path: Path) -> None:
    def work() -> None:
        pid = os.fork()
        if pid == 0:
            torch.ones(3).sinh()
            os._exit(0)
        os.waitpid(pid, 0)
        torch.ones(3).cosh()

    with_recording(tmp_path, Operators(), work)
    names = {event["name"] for event in export(tmp_path / "run.marey", tmp_path / "t.json")}
    assert "aten::cosh" in names
    assert "aten::sinh" not in names


def test_without_a_recording_nothing_happens() -> None:
    operators = Operators()
    operators.start()
    torch.ones(3).abs()
    operators.stop()
    operators.stop()


def test_a_library_that_is_no_torch_gives_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(marey.MareyError, match="import torch first"):
        Operators()


def test_an_engine_without_operators_says_so_and_training_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    driver = Driver(Schedule(0, 1, 1, 1), MareyEngine(tmp_path / "out"), tmp_path / "out")
    driver.start()
    driver.step()
    driver.stop()
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "profiling is off" in told
    assert "import torch first" in told


# ---- windows ----


def run_windows(folder: Path, schedule: Schedule, n_steps: int, **settings: bool) -> Driver:
    training = Training()
    engine = MareyEngine(folder, **settings)
    driver = Driver(schedule, engine, folder, {"averages"})
    driver.start()
    for _ in range(n_steps):
        training.step()
        driver.step()
    driver.stop()
    _background.wait()
    return driver


def traces_in(folder: Path) -> dict[str, Events]:
    return {path.parent.name: events_of(path) for path in folder.glob("iteration_*/*.pt.trace.json.gz")}


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two windows of two steps each, with one step of warm-up before each."""
    folder = tmp_path_factory.mktemp("windows")
    run_windows(folder, Schedule(0, 1, 2, 2), 7, record_shapes=True)
    marey.stop()
    return folder


def test_each_window_has_its_steps_and_no_others(windows: Path) -> None:
    traces = traces_in(windows)
    assert set(traces) == {"iteration_3", "iteration_6"}
    for events, expected in ((traces["iteration_3"], [1, 2]), (traces["iteration_6"], [4, 5])):
        steps = [event["name"] for event in events if event["name"].startswith("ProfilerStep")]
        assert steps == [f"ProfilerStep#{step}" for step in expected]
        assert len([event for event in events if event["name"] == "my step"]) == 2
    first, second = (collections.Counter(event["name"] for event in events) for events in traces.values())
    assert sum(first.values()) == sum(second.values())


def test_a_window_says_what_it_is(windows: Path) -> None:
    trace = next((windows / "iteration_6").glob("*.gz"))
    with gzip.open(trace, "rt") as file:
        head = json.load(file)
    assert head["schemaVersion"] == 1
    about = head["marey"]
    assert (about["rank"], about["step"], about["steps"], about["partial"]) == (0, 6, 2, False)
    assert head["baseTimeNanoseconds"] > 1_600_000_000 * 10**9


def test_a_window_has_tables_and_leaves_no_plain_trace(windows: Path) -> None:
    names = {path.name for path in (windows / "iteration_3").iterdir()}
    assert {"rank0_key_averages.txt", "key_averages.txt"} <= names
    assert not any(name.endswith(".json") and "trace" in name for name in names)
    table = (windows / "iteration_3" / "rank0_key_averages.txt").read_text()
    assert "aten::addmm" in table
    assert "[5, 24]" in table


def test_between_windows_nothing_is_recorded(windows: Path) -> None:
    ranges = marey.load(windows / "marey_engine.marey").ranges
    counts = dict(zip(ranges["name"], ranges["count"]))
    assert counts["ProfilerStep"] == 4
    assert counts["my step"] == 4


def test_a_partial_window_is_saved_and_marked(tmp_path: Path) -> None:
    run_windows(tmp_path, Schedule(0, 1, 5, 1), 3)
    trace = next((tmp_path / "iteration_3").glob("*.gz"))
    with gzip.open(trace, "rt") as file:
        assert json.load(file)["marey"]["partial"] is True
    assert (tmp_path / "iteration_3" / "rank0_partial.txt").exists()


def test_an_open_recording_is_used(tmp_path: Path) -> None:
    marey.start(tmp_path / "mine.marey")
    with marey.range("before"):
        pass
    run_windows(tmp_path, Schedule(0, 1, 1, 1), 3)
    assert not (tmp_path / "marey_engine.marey").exists()
    names = {event["name"] for events in traces_in(tmp_path).values() for event in events}
    assert "ProfilerStep#1" in names
    assert "before" not in names


class HeldEngine(MareyEngine):
    """One whose recording begins when the test lets it."""

    gate: threading.Event

    def _begin_recording(self) -> None:
        assert self.gate.wait(60)
        super()._begin_recording()


def test_a_warm_up_does_not_wait_for_the_recording_and_the_window_does(tmp_path: Path) -> None:
    engine = HeldEngine(tmp_path)
    engine.gate = threading.Event()
    driver = Driver(Schedule(1, 1, 1, 1), engine, tmp_path)
    training = Training()
    driver.start()
    for step in range(3):
        training.step()
        if step == 1:  # the warm-up is over: who waits now is the window
            assert not marey.enabled()
            threading.Timer(0.01, engine.gate.set).start()
        driver.step()
    driver.stop()
    (window,) = driver.windows
    assert "of waiting for the recording to begin" in window.notes[0]
    _background.wait()
    assert "ProfilerStep#2" in {event["name"] for events in traces_in(tmp_path).values() for event in events}


def test_a_recording_that_cannot_begin_is_reported_and_training_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    driver = Driver(Schedule(0, 1, 1, 1), MareyEngine(tmp_path / "file"), tmp_path)
    driver.start()
    for _ in range(3):
        driver.step()
    driver.stop()
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("marey:")]
    assert len(told) == 1
    assert "profiling is off from step 1 on, training continues: FileExistsError" in told[0]


def test_an_exception_of_the_training_leaves_nothing_on(tmp_path: Path) -> None:
    engine = MareyEngine(tmp_path)
    engine.prepare()
    engine.start()
    engine.step_begin(0)
    engine.discard()
    torch.ones(3).tan()
    marey.stop()
    ranges = marey.load(tmp_path / "marey_engine.marey").ranges
    assert "aten::tan" not in list(ranges["name"])


def test_the_callback_of_transformers_takes_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed; tools/setup test installs it")
    from marey.hf import ProfCallback

    callback = ProfCallback(output_dir=tmp_path, wait_steps=0, warmup_steps=1, active_steps=1, engine="marey")
    assert isinstance(callback.prof.engine, MareyEngine)
    assert 'engine="torch" has them' in capfd.readouterr().err
    callback.prof.start()
    training = Training()
    for _ in range(3):
        training.step()
        callback.prof.step()
    callback.prof.stop()
    _background.wait()
    names = {path.name for path in (tmp_path / "iteration_2").iterdir()}
    (trace,) = (tmp_path / "iteration_2").glob("rank0-*.pt.trace.json.gz")
    tables = {f"rank0_key_averages.{ending}" for ending in ("txt", "csv", "json")}
    assert names == {trace.name, "key_averages.txt", *tables}


RANKS = """
import sys
import torch
from marey import _background
from marey._engine_marey import MareyEngine
from marey._schedule import Schedule
from marey._window import Driver

folder, rank = sys.argv[1], int(sys.argv[2])
torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
driver = Driver(Schedule(0, 1, 1, 1), MareyEngine(f"{folder}/out"), f"{folder}/out", {"averages"})
driver.start()
for _ in range(3):
    model(torch.ones(2, 8)).sum().backward()
    torch.distributed.all_reduce(torch.ones(3), async_op=True).wait()
    driver.step()
driver.stop()
_background.wait()
torch.distributed.destroy_process_group()
"""


def test_ranks_have_their_own_files_and_collectives_that_end_elsewhere(tmp_path: Path) -> None:
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    ranks = [subprocess.Popen([sys.executable, "-c", RANKS, tmp_path, str(rank)]) for rank in range(2)]
    assert [rank.wait(timeout=100) for rank in ranks] == [0, 0]
    for rank in range(2):
        (trace,) = (tmp_path / "out" / "iteration_2").glob(f"rank{rank}-*.gz")
        events = events_of(trace)
        reduced = [event for event in events if event["name"] == "gloo:all_reduce"]
        assert len(reduced) == 2  # of the gradients and by hand
        assert len({event["pid"] for event in events}) == 1
        with gzip.open(trace, "rt") as file:
            assert json.load(file)["distributedInfo"]["rank"] == rank
    assert len(list((tmp_path / "out" / "marey_engine.marey").glob("*.klog"))) == 2
    assert (tmp_path / "out" / "iteration_2" / "rank1_key_averages.txt").exists()


KILLED = """
import os, signal, sys
import torch
from marey._engine_marey import MareyEngine
from marey._schedule import Schedule
from marey._window import Driver

driver = Driver(Schedule(0, 1, 1, 1), MareyEngine(sys.argv[1]), sys.argv[1], {"averages"})
driver.start()
for _ in range(2):
    torch.ones(2, 3).add(1)
    driver.step()
print(driver.engine._log, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_window_that_is_over_survives_kill_9(tmp_path: Path) -> None:
    # Whoever makes the files has its standard error too, so that run() comes back when they are made.
    command = [sys.executable, "-c", KILLED, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9
    assert Path(done.stdout.strip()).exists()
    (trace,) = (tmp_path / "iteration_2").glob("*.gz")
    assert "aten::add" in {event["name"] for event in events_of(trace)}
    assert "aten::add" in (tmp_path / "iteration_2" / "key_averages.txt").read_text()


def test_what_the_engine_lacks_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    MareyEngine(tmp_path, profile_memory=True, with_stack=True)
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "profile_memory, with_stack give nothing" in told


@pytest.mark.parametrize("option", ["--from", "--until", "--launched-before", "--about"])
def test_windows_go_with_kineto_alone(windows: Path, option: str) -> None:
    command = [MAREY, "export", windows / "marey_engine.marey", "--to", "csv", "-o", "-", option, "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"marey: {option} goes with --to kineto\n"


@pytest.mark.parametrize("time", ["soon", "-1", "5 ns", "ns", "nan", "1e99"])
def test_what_is_no_time_is_said(windows: Path, time: str, tmp_path: Path) -> None:
    command = [MAREY, "export", windows / "marey_engine.marey", "--to", "kineto", "-o", tmp_path / "t.json"]
    done = subprocess.run([*command, f"--from={time}"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not a time" in done.stderr


def test_seconds_since_the_first_event(windows: Path, tmp_path: Path) -> None:
    everything = export(windows / "marey_engine.marey", tmp_path / "all.json")
    middle = sorted(event["ts"] for event in everything)[len(everything) // 2]
    half = export(
        windows / "marey_engine.marey", tmp_path / "half.json", "--from", str(middle / 1e6), "--until", "1000"
    )
    assert len(everything) // 3 < len(half) < len(everything) * 2 // 3
