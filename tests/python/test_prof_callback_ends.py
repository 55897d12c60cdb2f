"""ProfCallback in failing trainings: recorded data is saved, and training is not affected."""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed; tools/setup test installs it from 3.11 on")
pytest.importorskip("accelerate", reason="the Trainer needs accelerate; tools/setup test installs it from 3.11 on")

from tiny_trainer import make_trainer
from transformers import TrainerCallback

from marey import _background
from marey.hf import ProfCallback

SHARED = Path(__file__).parents[1] / "shared"
SMALL: dict[str, Any] = {"profile_memory": False, "with_stack": False, "record_shapes": False, "with_flops": False}
TWO: dict[str, Any] = {"wait_steps": 0, "warmup_steps": 1, "active_steps": 2, "num_cycles": 1}
EVERY_STEP: dict[str, Any] = {
    **{"eval_steps": 1, "save_steps": 1, "logging_steps": 1, "save_total_limit": 1},
    **{"eval_strategy": "steps", "save_strategy": "steps", "logging_strategy": "steps"},
}


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*"))


def the_trace(folder: Path, rank: int = 0) -> Any:
    (path,) = folder.glob(f"rank{rank}-*.pt.trace.json.gz")
    with gzip.open(path) as file:
        return json.load(file)


def steps_of(trace: Any) -> list[str]:
    return sorted(e["name"] for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep") and e["ph"] == "X")


def raising(hook: str, error: BaseException, at_step: int = 2) -> Any:
    """A callback whose hook raises in the step that comes `at_step`, counted from 0."""

    def raise_(self: Any, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step >= at_step:
            raise error

    return type("Raising", (TrainerCallback,), {hook: raise_})()


# The window is of the steps 1 and 2. What raises when two steps are over has one whole step behind it.
@pytest.mark.parametrize(
    "hook",
    [
        "on_step_begin",
        "on_substep_end",
        "on_pre_optimizer_step",
        "on_optimizer_step",
        "on_log",
        "on_prediction_step",
        "on_evaluate",
        "on_save",
    ],
)
def test_an_exception_at_each_hook_leaves_what_was_recorded(tmp_path, hook):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **TWO)
    others = raising(hook, ArithmeticError("too much"))
    trainer = make_trainer(tmp_path, callback, others, steps=6, gradient_accumulation_steps=2, **EVERY_STEP)
    with pytest.raises(ArithmeticError, match="too much"):
        trainer.train()
    _background.wait()
    assert files_of(tmp_path / "out") == ["iteration_2"]
    text = (tmp_path / "out" / "iteration_2" / "rank0_partial.txt").read_text()
    why = "the training ended with ArithmeticError: too much"
    assert text == f"This window has 1 whole steps, from step 1 on: {why}.\n"
    about = the_trace(tmp_path / "out" / "iteration_2")["marey"]
    assert (about["partial"], about["steps"], about["why"]) == (True, 1, why)
    assert {"key_averages.txt", "rank0_key_averages.csv"} <= set(files_of(tmp_path / "out" / "iteration_2"))


@pytest.mark.parametrize("hook", ["on_train_begin", "on_epoch_begin"])
def test_an_exception_before_the_window_leaves_nothing(tmp_path, hook):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **TWO)
    with pytest.raises(ArithmeticError):
        make_trainer(tmp_path, callback, raising(hook, ArithmeticError(), 0), steps=4).train()
    assert files_of(tmp_path / "out") == []
    make_trainer(tmp_path, callback, steps=4).train()  # and the next training is recorded
    _background.wait()
    assert files_of(tmp_path / "out") == ["iteration_3"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_ctrl_c_and_exit_are_exceptions_too(tmp_path, error):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **TWO)
    with pytest.raises(type(error)):
        make_trainer(tmp_path, callback, raising("on_optimizer_step", error), steps=4).train()
    _background.wait()
    assert steps_of(the_trace(tmp_path / "out" / "iteration_2")) == ["ProfilerStep#1", "ProfilerStep#2"]
    assert type(error).__name__ in (tmp_path / "out" / "iteration_2" / "rank0_partial.txt").read_text()


def test_a_training_that_ends_inside_a_window_saves_it(tmp_path):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **TWO)
    make_trainer(tmp_path, callback, steps=2).train()
    _background.wait()
    text = (tmp_path / "out" / "iteration_2" / "rank0_partial.txt").read_text()
    assert "has 1 whole steps, from step 1 on: the training ended before the window did" in text


@pytest.mark.parametrize(("steps", "word"), [(1, "1 step,"), (4, "4 steps,"), (5, None)])
def test_a_training_too_short_for_its_schedule_says_so(tmp_path, capsys, steps, word):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **{**TWO, "wait_steps": 4})
    make_trainer(tmp_path, callback, steps=steps).train()
    told = [line for line in capsys.readouterr().err.splitlines() if "nothing was recorded" in line]
    assert [f"the training had {word} and the first window begins with step 5" in line for line in told] == [True] * (
        word is not None
    )
    assert (files_of(tmp_path / "out") == []) == (word is not None)


def test_a_training_that_ends_with_the_window_is_whole(tmp_path):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **TWO)
    make_trainer(tmp_path, callback, steps=3).train()
    _background.wait()
    assert files_of(tmp_path / "out") == ["iteration_3"]
    assert not list(tmp_path.glob("out/*/*partial*"))


# ---- obstacles ----


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    callback = ProfCallback(output_dir=tmp_path / "file" / "out", **SMALL, **TWO)
    assert callback.prof is None
    trainer = make_trainer(tmp_path, callback, steps=2)
    trainer.train()
    assert trainer.state.global_step == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("marey:")]
    assert told == [
        f"marey: nothing is profiled: cannot make {tmp_path}/file/out: Not a directory; give another output_dir"
    ]


def test_a_directory_that_is_lost_on_the_way_is_one_sentence(tmp_path, capsys):
    callback = ProfCallback(output_dir=tmp_path / "out", **SMALL, **TWO)
    (tmp_path / "out").rmdir()
    (tmp_path / "out").write_text("")
    trainer = make_trainer(tmp_path, callback, steps=5)
    trainer.train()
    assert trainer.state.global_step == 5
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("marey:")]
    assert len(told) == 1
    assert "the window of rank 0 that ended with step 3 is lost" in told[0]


def test_a_full_disk_is_one_sentence_for_each_window(tmp_path, capsys):
    """No file may grow over 100 kB, which torch's trace meets as it would a full disk: a write that fails."""
    callback = ProfCallback(output_dir=tmp_path / "out", **{**TWO, "num_cycles": 2})
    trainer = make_trainer(tmp_path, callback, steps=7)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        trainer.train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert trainer.state.global_step == 7
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("marey:")]
    assert len(told) == 2
    assert f"that ended with step 3 is lost: torch could not write {tmp_path}/out/iteration_3/rank0-" in told[0]
    assert "MB free there" in told[0]
    assert not list(tmp_path.glob("out/*/*"))


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(SHARED), *sys.path]), **more}


def run(source: str, folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(source)
    return subprocess.run(
        [*(command or (sys.executable,)), str(script)],
        env=environment(**more),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def wait_for(condition: Any, what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_killed_after_a_window_its_artifacts_are_there(tmp_path):
    """The trainer kills itself in the step after; all of the window's files come nevertheless."""
    done = run(
        """
import os, signal
from pathlib import Path
from tiny_trainer import make_trainer
from transformers import TrainerCallback
from marey.hf import ProfCallback

class Killer(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 2:
            os.kill(os.getpid(), signal.SIGKILL)

callback = ProfCallback(output_dir="out", wait_steps=0, warmup_steps=1, active_steps=1, num_cycles=1)
make_trainer(Path("."), callback, Killer(), steps=7).train()
""",
        tmp_path,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder = tmp_path / "out" / "iteration_2"
    wait_for(lambda: len(files_of(folder)) == 10 and not list(folder.glob("*.pt.trace.json")), files_of(folder))
    assert steps_of(the_trace(folder)) == ["ProfilerStep#1"]


def test_a_program_that_exits_inside_a_training_saves_what_there_is(tmp_path):
    """A trainer that is none of transformers': no train() is watched, so the exit does it."""
    done = run(
        f"""
from tiny_trainer import Perceptron
from marey.hf import ProfCallback

callback = ProfCallback(output_dir="out", **{SMALL}, **{TWO})
model = Perceptron()
callback.on_train_begin(None, None, None, model=model, optimizer=None)
for _ in range(2):
    callback.on_step_begin(None, None, None)
    callback.on_step_end(None, None, None)
raise RuntimeError("oh")
""",
        tmp_path,
    )
    assert done.returncode == 1
    assert "RuntimeError: oh" in done.stderr
    assert "the program ended" in (tmp_path / "out" / "iteration_2" / "rank0_partial.txt").read_text()
    assert steps_of(the_trace(tmp_path / "out" / "iteration_2")) == ["ProfilerStep#1", "ProfilerStep#2"]


# ---- ranks ----


@pytest.mark.slow
def test_two_ranks_have_files_of_their_own(tmp_path):
    done = run(
        f"""
from pathlib import Path
from tiny_trainer import make_trainer
from marey.hf import ProfCallback

callback = ProfCallback(output_dir="out", **{TWO})
trainer = make_trainer(Path("."), callback, steps=4, ddp_backend="gloo")
trainer.train()
assert trainer.args.world_size == 2
""",
        tmp_path,
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        OMP_NUM_THREADS="1",
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "out" / "iteration_3"
    found = files_of(folder)
    for rank in (0, 1):
        mine = [name for name in found if name.startswith(f"rank{rank}")]
        assert len(mine) == 9, found
        trace = the_trace(folder, rank)
        assert (trace["marey"]["rank"], trace["marey"]["world_size"]) == (rank, 2)
        assert trace["distributedInfo"]["rank"] == rank
        assert {role[0] for role in trace["marey"]["roles"]} == {"parameter", "gradient", "optimizer_state", "input"}
    assert len(found) == 19
    assert "key_averages.txt" in found
    # What concerns all is said once.
    assert done.stderr.count("2 steps from step 1 on") == 1
