"""ProfCallback in real trainings: its files, and programs that read them."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed; tools/setup test installs it from 3.11 on")
pytest.importorskip("accelerate", reason="the Trainer needs accelerate; tools/setup test installs it from 3.11 on")

from optional_parts import has_viewer
from tiny_trainer import make_trainer
from transformers import TrainerCallback

import marey
from marey import _background
from marey.hf import ProfCallback

SOON = {"wait_steps": 0, "warmup_steps": 1, "active_steps": 1, "num_cycles": 1}
SMALL: dict[str, Any] = {
    "profile_memory": False,
    "with_stack": False,
    "record_shapes": False,
    "export_memory_timeline": False,
    "export_stacks": False,
}
TRACE = "rank0-DATE.NS.pt.trace.json.gz"
AVERAGES = {"key_averages.txt", "rank0_key_averages.txt", "rank0_key_averages.csv", "rank0_key_averages.json"}
MEMORY = {
    "rank0_memory-timeline.html",
    "rank0_memory-timeline.json.gz",
    "rank0_memory-timeline.raw.json.gz",
    "rank0_memory_snapshot.pickle",
}
if not has_viewer():
    MEMORY.remove("rank0_memory-timeline.html")
EVERYTHING = {TRACE, "rank0_stacks.txt"} | AVERAGES | MEMORY


def train(folder: Path, callback: Any, *others: Any, **settings: Any) -> Any:
    trainer = make_trainer(folder, callback, *others, **settings)
    trainer.train()
    _background.wait()
    return trainer


def names_in(folder: Path) -> dict[str, set[str]]:
    """The files of each directory, with the date and the time taken out of a trace's name."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*/*")):
        name = re.sub(r"-\d+-\d+-\d+-\d+-\d+\.\d+\.", "-DATE.NS.", path.name)
        found.setdefault(path.parent.name, set()).add(name)
    return found


def trace_of(folder: Path, rank: int = 0) -> dict[str, Any]:
    (path,) = folder.glob(f"rank{rank}-*.pt.trace.json.gz")
    with gzip.open(path) as file:
        trace: dict[str, Any] = json.load(file)
    return trace


def named(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [e for e in trace["traceEvents"] if e.get("name") == name and e.get("ph") == "X" and "gpu" not in e["cat"]]


# ---- the three configurations that are documented ----


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ProfCallback]:
    folder = tmp_path_factory.mktemp("default")
    callback = ProfCallback(output_dir=str(folder / "out"))
    train(folder, callback)
    return folder / "out", callback


def test_by_default_one_window_has_everything(default):
    assert names_in(default[0]) == {"iteration_9": EVERYTHING}


def test_small_has_the_trace_and_the_table(tmp_path):
    callback = ProfCallback(output_dir=tmp_path / "out", active_steps=1, **SMALL, export_key_averages=True)
    train(tmp_path, callback)
    assert names_in(tmp_path / "out") == {"iteration_9": {TRACE} | AVERAGES}
    trace = trace_of(tmp_path / "out" / "iteration_9")
    assert trace.keys().isdisjoint({"profile_memory", "with_stack", "record_shapes"})
    assert not any("Call stack" in e.get("args", {}) or e["name"] == "[memory]" for e in trace["traceEvents"])


def test_nsight_without_nsys_says_how_and_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "my train.py", "--size", "2"])
    callback = ProfCallback(
        output_dir=tmp_path / "out", enable_nsight_systems=True, nsight_systems_output_file="mine.nsys-rep"
    )
    assert callback.prof is None
    trainer = train(tmp_path, callback)
    assert trainer.state.global_step == 12
    assert names_in(tmp_path / "out") == {}
    told = capsys.readouterr().err
    words = ["nsys", "profile", "-o", "mine.nsys-rep", "python", "my train.py", "--size", "2"]
    assert told.splitlines()[-1].endswith("run it as: " + shlex.join(words))
    assert ProfCallback(output_dir=tmp_path / "other", enable_nsight_systems=True).prof is None
    assert f"-o {tmp_path}/other/nsys_profile.nsys-rep python" in capsys.readouterr().err


# ---- readers ----


def test_the_trace_is_of_one_step_and_says_who_it_is(default):
    trace = trace_of(default[0] / "iteration_9")
    (step,) = named(trace, "ProfilerStep#8")
    assert step["cat"] == "user_annotation"
    assert [trace[key] for key in ("profile_memory", "with_stack", "record_shapes", "with_flops")] == [1, 1, 1, 1]
    about = trace["marey"]
    assert {key: about[key] for key in ("version", "rank", "world_size", "step", "steps", "partial", "why")} == {
        **{"version": 1, "rank": 0, "world_size": 1, "step": 9, "steps": 1},
        **{"partial": False, "why": None},
    }


def test_the_name_is_what_tensorboards_plugin_looks_for(default):
    (path,) = (default[0] / "iteration_9").glob("*trace.json.gz")
    assert re.fullmatch(r"(.+?)(?:\.(\d+))?\.pt\.trace\.json(?:\.gz)?", path.name)[1].startswith("rank0-")


@pytest.mark.needs_pandas
def test_pandas_reads_the_table(default):
    import pandas

    table = pandas.read_csv(default[0] / "iteration_9" / "rank0_key_averages.csv")
    trace = trace_of(default[0] / "iteration_9")
    rows = table[table["name"] == "aten::linear"]
    assert rows["calls"].sum() == len(named(trace, "aten::linear")) == 2


def test_the_table_names_operators_with_shapes_and_source(default):
    text = (default[0] / "iteration_9" / "rank0_key_averages.txt").read_text()
    assert text == (default[0] / "iteration_9" / "key_averages.txt").read_text()
    for word in ("Self CPU", "Input Shapes", "Source Location", "Total FLOPs"):
        assert word in text, word
    # The text has the dearest rows, the file of numbers has all.
    rows = (default[0] / "iteration_9" / "rank0_key_averages.json").read_text()
    assert "aten::_fused_adamw_" in rows and "[4, 8]" in rows


def test_the_snapshot_has_allocations(default):
    with open(default[0] / "iteration_9" / "rank0_memory_snapshot.pickle", "rb") as file:
        snapshot = pickle.load(file)
    assert any(entry["action"] == "alloc" for device in snapshot["device_traces"] for entry in device)


def test_storages_are_recognized_by_what_they_are_for(default):
    """Addresses are those of the allocations in the same trace: gradients are made in each step."""
    trace = trace_of(default[0] / "iteration_9")
    roles = trace["marey"]["roles"]
    kinds = {role[0] for role in roles}
    assert kinds == {"parameter", "gradient", "optimizer_state", "input"}
    names = {(role[0], role[6]) for role in roles}
    assert {("parameter", "hidden.weight"), ("gradient", "out.bias"), ("input", "x"), ("input", "labels")} <= names
    assert ("optimizer_state", "hidden.weight.exp_avg") in names
    made = {e["args"]["Addr"] for e in trace["traceEvents"] if e["name"] == "[memory]" and e["args"]["Bytes"] > 0}
    gradients = [role for role in roles if role[0] == "gradient"]
    assert len(gradients) == 4
    assert all(role[1] in made for role in gradients)
    base_us = trace["baseTimeNanoseconds"] / 1000
    (step,) = named(trace, "ProfilerStep#8")
    for _, _, size, device_type, device_id, unix_ns, _ in roles:
        assert size > 0
        assert (device_type, device_id) == (0, -1)
        assert step["ts"] <= unix_ns / 1000 - base_us <= step["ts"] + step["dur"]


# ---- parameters ----


def test_it_is_a_class(tmp_path):
    class Mine(ProfCallback):
        pass

    callback = Mine(output_dir=tmp_path)
    assert isinstance(callback, ProfCallback)
    assert isinstance(callback, TrainerCallback)


def test_every_parameter_at_once(tmp_path, capsys):
    callback = ProfCallback(
        cpu=False,
        cuda=False,
        profile_memory=True,
        with_stack=False,
        record_shapes=False,
        with_flops=False,
        wait_steps=1,
        warmup_steps=2,
        active_steps=3,
        num_cycles=4,
        output_dir=str(tmp_path / "a" / "b"),
        export_memory_timeline=False,
        export_stacks=False,
        export_key_averages=False,
        enable_nsight_systems=True,
        nsight_systems_output_file="x",
        skip_first=5,
        triggers=(),
        engine="torch",
    )
    assert (tmp_path / "a" / "b").is_dir()
    told = capsys.readouterr().err
    assert "cpu and cuda are both False: both are recorded" in told
    assert "profile_memory=True needs with_stack and record_shapes: both are on" in told
    assert callback.settings == {
        **{"cpu": True, "cuda": True, "profile_memory": True, "with_stack": True, "record_shapes": True},
        **{"with_flops": False},
    }
    assert callback.prof is None


@pytest.mark.parametrize(
    ("flags", "selection"),
    [
        ({}, {"timeline", "snapshot", "stacks", "averages"}),
        ({"export_memory_timeline": False}, {"stacks", "averages"}),
        ({"export_stacks": False}, {"timeline", "snapshot", "averages"}),
        ({"export_key_averages": False}, {"timeline", "snapshot", "stacks"}),
        ({"export_memory_timeline": False, "export_stacks": False, "export_key_averages": False}, set()),
        ({"profile_memory": False, "with_stack": False}, {"averages"}),
    ],
)
def test_flags_reach_who_writes(tmp_path, flags, selection):
    callback = ProfCallback(output_dir=tmp_path, **flags)
    assert callback.prof is not None
    assert callback.prof.selection == selection


def test_without_a_directory_it_is_profiler_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ProfCallback()
    assert (tmp_path / "profiler_output").is_dir()


@pytest.mark.parametrize("given", [{}, {"wait_steps": 2, "num_cycles": 1}, {"active_steps": 2}])
def test_defaults_of_the_schedule_are_taken_without_a_word(tmp_path, capsys, given):
    callback = ProfCallback(output_dir=tmp_path, **given)
    assert capsys.readouterr().err == ""
    chosen = {"wait_steps": 4, "warmup_steps": 4, "active_steps": 1, "num_cycles": 1, **given}
    assert {name: getattr(callback, name) for name in chosen} == chosen


@pytest.mark.parametrize(
    ("given", "n"),
    [
        ({"record_shapes": False, "profile_memory": False, "with_flops": True}, 1),
        ({"record_shapes": False, "profile_memory": False, "with_flops": False}, 0),
        ({"record_shapes": False, "profile_memory": False}, 0),
        ({"record_shapes": True, "profile_memory": False}, 0),
    ],
)
def test_shapes_that_flops_need_are_named_once(tmp_path, capsys, monkeypatch, given, n):
    ProfCallback(output_dir=tmp_path, **given)
    said = capsys.readouterr().err
    assert said.count("with_flops=True records the shapes of inputs") == n and said.count("\n") == n
    monkeypatch.setattr("marey._hf_profile.who_am_i", lambda: (1, 2))
    ProfCallback(output_dir=tmp_path, **given)
    assert capsys.readouterr().err == ""


def test_the_documented_small_configuration_records_no_shapes_and_says_nothing(tmp_path, monkeypatch, capsys):
    """Example 2 of edd_utils' page."""
    monkeypatch.chdir(tmp_path)
    prof_callback_small = ProfCallback(
        output_dir="./profiler_output_small",
        active_steps=1,
        profile_memory=False,
        with_stack=False,
        record_shapes=False,
        export_memory_timeline=False,
        export_stacks=False,
        export_key_averages=True,
    )
    said = capsys.readouterr().err
    train(tmp_path, prof_callback_small, steps=10)
    assert names_in(tmp_path / "profiler_output_small") == {"iteration_9": {TRACE} | AVERAGES}
    (path,) = (tmp_path / "profiler_output_small").glob("*/*.pt.trace.json.gz")
    with gzip.open(path, "rt") as file:
        assert "Input Dims" not in file.read()
    assert said == ""


def test_values_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(ValueError, match="active=0"):
        ProfCallback(output_dir=tmp_path, active_steps=0)
    with pytest.raises(ValueError, match="'torch' or 'marey'"):
        ProfCallback(output_dir=tmp_path, engine="nvprof")
    with pytest.raises(TypeError, match="is not a trigger"):
        ProfCallback(output_dir=tmp_path, triggers=[None])


# ---- steps ----


def test_cycles_have_full_sets_each(tmp_path):
    train(tmp_path, ProfCallback(output_dir=tmp_path / "out", **{**SOON, "num_cycles": 3}, skip_first=1), steps=8)
    assert names_in(tmp_path / "out") == {f"iteration_{n}": EVERYTHING for n in (3, 5, 7)}
    for n in (3, 5, 7):
        with open(tmp_path / "out" / f"iteration_{n}" / "rank0_memory_snapshot.pickle", "rb") as file:
            assert any(pickle.load(file)["device_traces"])


@pytest.mark.parametrize("accumulated", [1, 4])
def test_a_step_is_an_optimizer_step(tmp_path, accumulated):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **SOON)
    train(tmp_path, callback, steps=3, gradient_accumulation_steps=accumulated)
    trace = trace_of(tmp_path / "out" / "iteration_2")
    assert len(named(trace, "aten::mse_loss")) == accumulated
    assert len([e for e in trace["traceEvents"] if e["name"].startswith("Optimizer.step#")]) == 1


def test_a_training_that_is_resumed_is_counted_from_there(tmp_path):
    train(tmp_path, TrainerCallback(), steps=6, save_strategy="steps", save_steps=6)
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **SOON)
    trainer = make_trainer(tmp_path, callback, steps=10)
    trainer.train(resume_from_checkpoint=True)
    _background.wait()
    assert trainer.state.global_step == 10
    assert set(names_in(tmp_path / "out")) == {"iteration_2"}
    assert len(named(trace_of(tmp_path / "out" / "iteration_2"), "ProfilerStep#1")) == 1


def test_a_program_may_change_its_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    class Moving(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monkeypatch.chdir(tmp_path / "elsewhere")

    train(tmp_path, ProfCallback(output_dir="out", **SMALL, **SOON), Moving(), steps=3)
    assert names_in(tmp_path / "out") == {"iteration_2": {TRACE} | AVERAGES}


def test_epochs_may_be_shorter_than_the_schedule(tmp_path):
    train(tmp_path, ProfCallback(output_dir=tmp_path / "out", **SMALL), steps=10, length=8)
    assert set(names_in(tmp_path / "out")) == {"iteration_9"}


def test_a_second_training_leaves_the_first_ones_windows_alone(tmp_path):
    """The second one is resumed, counts its steps from there, and so saves a window at the same step."""
    train(tmp_path, ProfCallback(output_dir=tmp_path / "out", **SOON), steps=3, save_strategy="steps", save_steps=3)
    before = {path: path.read_bytes() for path in (tmp_path / "out" / "iteration_2").iterdir()}
    trainer = make_trainer(tmp_path, ProfCallback(output_dir=tmp_path / "out", **SOON), steps=6)
    trainer.train(resume_from_checkpoint=True)
    trainer.train()  # by the same callback
    _background.wait()
    assert names_in(tmp_path / "out") == {f"iteration_2{run}": EVERYTHING for run in ("", ".2", ".3")}
    assert {path: path.read_bytes() for path in (tmp_path / "out" / "iteration_2").iterdir()} == before


def test_evaluation_and_saving_inside_a_window_are_distinguished(tmp_path, capsys):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **{**SOON, "active_steps": 2})
    every = {"eval_steps": 2, "save_steps": 2, "logging_steps": 2}
    by_steps = {"eval_strategy": "steps", "save_strategy": "steps", "logging_strategy": "steps"}
    train(tmp_path, callback, steps=4, **every, **by_steps)
    window = callback.prof.windows[-1]
    assert window.notes == ["an evaluation", "a checkpoint"]
    assert "from step 1 on, with an evaluation, with a checkpoint in" in capsys.readouterr().err
    trace = trace_of(tmp_path / "out" / "iteration_3")
    assert trace["marey"]["notes"] == window.notes
    counts = {"evaluate": 1, "checkpoint": 1, "forward": 2, "backward": 2, "data": 2, "optimizer": 2}
    assert {name: len(named(trace, f"marey:{name}")) for name in counts} == counts
    (evaluation,) = named(trace, "marey:evaluate")
    begin, end = evaluation["ts"], evaluation["ts"] + evaluation["dur"]
    assert len([e for e in named(trace, "aten::mse_loss") if begin <= e["ts"] < end]) == 1


def test_a_file_opens_a_window(tmp_path):
    """Touched after the third step: the fourth warms up, the fifth is recorded; no schedule opens one."""

    class Touching(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 2:
                (tmp_path / "now").write_text("")

    callback = ProfCallback(
        output_dir=tmp_path / "out", **SMALL, warmup_steps=1, active_steps=1, triggers=[tmp_path / "now"]
    )
    train(tmp_path, callback, Touching(), steps=12)
    assert set(names_in(tmp_path / "out")) == {"iteration_5"}
    about = trace_of(tmp_path / "out" / "iteration_5")["marey"]
    assert (about["partial"], about["why"]) == (False, f"{tmp_path}/now was touched")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "marey"])
def test_memory_stays_flat_over_many_windows(tmp_path, engine):
    """100 windows in 10,000 steps. Without a callback the process grows by 1 MB from 2000 steps on."""
    resident = []

    class Watch(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step in (2000, 10_000):
                resident.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))

    callback = ProfCallback(
        output_dir=tmp_path / "out",
        **{**SMALL, "with_flops": False},
        **{"wait_steps": 95, "warmup_steps": 4, "active_steps": 1, "num_cycles": 0},
        engine=engine,
    )
    train(tmp_path, callback, Watch(), steps=10_000)
    assert len(list((tmp_path / "out").glob("iteration_*/*.pt.trace.json.gz"))) == 100
    assert resident[1] - resident[0] < 8 << 20


# ---- others ----


def test_of_two_callbacks_the_second_is_off(tmp_path, capsys):
    first = ProfCallback(output_dir=tmp_path / "one", **SMALL, **SOON)
    second = ProfCallback(output_dir=tmp_path / "two", **SMALL, **SOON)
    train(tmp_path, first, second, steps=3)
    assert set(names_in(tmp_path / "one")) == {"iteration_2"}
    assert names_in(tmp_path / "two") == {}
    assert "this ProfCallback is off, because another one profiles" in capsys.readouterr().err


def test_another_profiler_of_torch_goes_first(tmp_path, capsys):
    import torch

    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **SOON)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        trainer = train(tmp_path, callback, steps=3)
    assert trainer.state.global_step == 3
    assert any(event.key == "aten::mse_loss" for event in theirs.key_averages())
    assert names_in(tmp_path / "out") == {}
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("marey:")]
    assert len(told) == 1
    assert "training continues: another profiler of torch is on" in told[0]


def test_a_callback_of_ours_may_stand_beside(tmp_path):
    """Phases are recorded once, in either order of the callbacks."""
    from marey.hf import Callback

    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **SOON)
    train(tmp_path, callback, Callback(tmp_path / "run.marey"), steps=3)
    trace = trace_of(tmp_path / "out" / "iteration_2")
    assert len(named(trace, "marey:forward")) == 1
    assert "forward" in list(marey.load(tmp_path / "run.marey").ranges["name"])


def test_many_windows_are_not_all_told(tmp_path, capsys):
    callback = ProfCallback(
        output_dir=tmp_path / "out", **SMALL, wait_steps=0, warmup_steps=1, active_steps=1, num_cycles=0
    )
    train(tmp_path, callback, steps=16)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("marey: 1 step")]
    assert len(names_in(tmp_path / "out")) == 8
    assert len(told) == 5
    assert told[-1].endswith("further windows are saved in silence")


def test_what_a_window_costs_is_known_apart(default):
    (window,) = default[1].prof.windows
    assert 0 < window.engine_ns < window.wait_ns
    assert window.roles == []  # they are many, and nobody needs them any more


def test_hooks_are_harmless_where_there_is_no_profiler(tmp_path):
    callback = ProfCallback(output_dir=tmp_path, enable_nsight_systems=True)
    for name in [name for name in dir(callback) if name.startswith("on_")]:
        assert getattr(callback, name)(None, None, None, metrics={}) is None
