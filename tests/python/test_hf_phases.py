"""marey.hf.Callback with the real Trainer: which phases there are, how many, and that nothing stays behind."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import sys
from pathlib import Path

import pytest
from phase_events import counts, nothing_stays, one_thread, shadowed, steps  # noqa: F401  # two are fixtures

import marey

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from marey.hf import Callback  # noqa: E402

N_SAMPLES, BATCH = 24, 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x, labels=None):
        logits = self.head(self.body(x))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return N_SAMPLES

    def __getitem__(self, i):
        return {"x": torch.full((4,), float(i)), "labels": torch.tensor(i % 2)}


class FailingOptimizer(torch.optim.SGD):
    def step(self, closure=None):
        raise Fault


class Fault(Exception):
    pass


class Failing(transformers.TrainerCallback):
    """Raises at one of the Trainer's hooks."""

    def __init__(self, hook):
        setattr(self, hook, self.fail)

    def fail(self, *args, **kwargs):
        raise Fault


def trainer_of(folder, *callbacks, kind=transformers.Trainer, model=None, data=None, optimizer=None, **arguments):
    arguments = {"save_strategy": "no", "logging_strategy": "no", **arguments}
    settings = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        seed=1,
        **arguments,
    )
    trainer = kind(
        model=model or Model(),
        args=settings,
        train_dataset=data or Data(),
        eval_dataset=Data(),
        callbacks=list(callbacks),
        optimizers=(optimizer, None),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def traces_of(trainer):
    """Remains of wrappers and hooks."""
    return [
        *map(shadowed, (trainer, trainer.accelerator, trainer.callback_handler)),
        *[(len(module._forward_hooks), len(module._forward_pre_hooks)) for module in trainer.model.modules()],
    ]


# ---- recorded events ----


@pytest.fixture(scope="module", params=[1, 4], ids="accumulate_{}".format)
def trained(request, tmp_path_factory):
    """Two epochs with evaluation at the start, inside and at the end, logging and saving."""
    folder = tmp_path_factory.mktemp("trained")
    n_accumulated = request.param
    trainer = trainer_of(
        folder,
        Callback(folder / "run.marey"),
        num_train_epochs=2,
        gradient_accumulation_steps=n_accumulated,
        eval_on_start=True,
        eval_strategy="steps",
        eval_steps=3,
        logging_strategy="steps",
        logging_steps=3,
        save_strategy="epoch",
    )
    before = traces_of(trainer)
    trainer.train()
    assert traces_of(trainer) == before
    assert not marey.enabled()
    marey.reset()
    return n_accumulated, folder / "run.marey"


def test_each_phase_is_there_as_often_as_it_ran(trained):
    n_accumulated, path = trained
    n_micro = 2 * N_SAMPLES // BATCH
    n_steps = n_micro // n_accumulated
    n_inside = n_steps // 3
    assert counts(path) == {
        "data": n_steps,
        "forward": n_micro,
        "backward": n_micro,
        "optimizer": n_steps,
        "evaluate": 1 + n_inside,
        "checkpoint": 2,
        "logging": n_inside + (1 + n_inside) + 1,  # the loss, each evaluation's results, and the summary
    }


def test_an_optimizer_step_is_an_iteration(trained):
    n_accumulated, path = trained
    recording = marey.load(path, data="data")
    [row] = recording.throughput
    assert row["iterations"] == 2 * N_SAMPLES // BATCH // n_accumulated
    assert row["samples"] == 2 * N_SAMPLES
    assert 0 < row["data_share"] < 1
    assert [row["iterations"] for row in recording.table("epochs")] == [N_SAMPLES // BATCH // n_accumulated] * 2
    assert [row["samples"] for row in recording.table("epochs")] == [N_SAMPLES] * 2
    assert all(row["ended"] for row in recording.table("epochs"))


def test_phases_follow_one_another_through_each_step(trained):
    n_accumulated, path = trained
    expected = ["data", *["forward", "backward"] * n_accumulated, "optimizer"]
    assert steps(path) == [expected] * (2 * N_SAMPLES // BATCH // n_accumulated)


def test_the_recordings_phases_are_those_of_the_ranges(trained):
    _, path = trained
    recording = marey.load(path)
    names = {row["name"] for row in recording.phases}
    assert names - {"(no phase)"} == {row["name"] for row in recording.ranges}
    assert sum(recording.phases["share"]) == pytest.approx(1)
    assert recording.warnings == []
    assert len(recording.open) == 0


def test_a_short_last_step_counts_what_it_had(tmp_path):
    trainer = trainer_of(
        tmp_path,
        Callback(tmp_path / "run.marey"),
        num_train_epochs=1,
        gradient_accumulation_steps=5,
        max_grad_norm=0,
    )
    trainer.train()
    [row] = marey.load(tmp_path / "run.marey").throughput
    assert (row["iterations"], row["samples"]) == (3, N_SAMPLES)
    assert counts(tmp_path / "run.marey")["forward"] == N_SAMPLES // BATCH
    assert counts(tmp_path / "run.marey")["optimizer"] == 3


def test_modules_are_ranges_named_by_their_path(tmp_path):
    trainer = trainer_of(tmp_path, Callback(tmp_path / "run.marey", modules=True), max_steps=2)
    before = traces_of(trainer)
    trainer.train()
    assert traces_of(trainer) == before
    assert {name for name, n in counts(tmp_path / "run.marey").items() if n == 2} >= {
        "Model",
        "body",
        "body.0",
        "body.1",
        "head",
    }
    tree = [(row["depth"], row["name"]) for row in marey.load(tmp_path / "run.marey").tree]
    assert {(0, "forward"), (1, "Model"), (2, "body"), (3, "body.0"), (2, "head")} <= set(tree)


def test_a_dict_of_evaluations_is_one_phase(tmp_path):
    trainer = trainer_of(tmp_path, Callback(tmp_path / "run.marey"), max_steps=1, eval_strategy="steps", eval_steps=1)
    trainer.eval_dataset = {"a": Data(), "b": Data()}
    trainer.train()
    assert counts(tmp_path / "run.marey")["evaluate"] == 1


# ---- recordings ----


def test_without_a_recording_it_does_nothing(tmp_path):
    trainer_of(tmp_path, Callback(), max_steps=2).train()
    assert not marey.enabled()
    assert list(tmp_path.glob("*.marey")) == []


def test_an_open_recording_is_used_and_stays_open(record, tmp_path):
    with record() as path:
        trainer_of(tmp_path, Callback(tmp_path / "other.marey"), max_steps=2).train()
        assert marey.enabled()
    assert counts(path)["optimizer"] == 2
    assert not (tmp_path / "other.marey").exists()


def test_two_callbacks_record_once(tmp_path):
    trainer = trainer_of(tmp_path, Callback(tmp_path / "run.marey"), Callback(tmp_path / "b.marey"), max_steps=3)
    trainer.train()
    assert counts(tmp_path / "run.marey") == {
        "data": 3,
        "forward": 3,
        "backward": 3,
        "optimizer": 3,
        "logging": 1,
    }
    assert not (tmp_path / "b.marey").exists()


def test_phases_are_annotations_of_a_profile_by_torch(tmp_path):
    from marey import _background
    from marey.hf import ProfCallback

    plain = {"profile_memory": False, "with_stack": False, "record_shapes": False, "export_key_averages": False}
    profiler = ProfCallback(
        output_dir=tmp_path / "out", wait_steps=1, warmup_steps=1, active_steps=2, num_cycles=1, **plain
    )
    callback = Callback(tmp_path / "run.marey")
    trainer_of(tmp_path, callback, profiler, max_steps=6, gradient_accumulation_steps=2).train()
    _background.wait()
    [path] = (tmp_path / "out").glob("iteration_4/*.pt.trace.json.gz")
    with gzip.open(path) as file:
        names = [event["name"] for event in json.load(file)["traceEvents"] if event.get("cat") == "user_annotation"]
    found = {name: names.count(name) for name in names if name.startswith("marey:")}
    assert found == {"marey:data": 2, "marey:forward": 4, "marey:backward": 4, "marey:optimizer": 2}
    assert counts(tmp_path / "run.marey")["forward"] == 12


def test_a_resumed_training_counts_its_own_steps(tmp_path):
    arguments = {"gradient_accumulation_steps": 2, "save_strategy": "steps", "save_steps": 4}
    trainer_of(tmp_path, max_steps=4, **arguments).train()
    callback = Callback(tmp_path / "run.marey")
    trainer = trainer_of(tmp_path, callback, max_steps=9, **arguments)
    trainer.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    assert trainer.state.global_step == 9
    assert [row["number"] for row in marey.load(tmp_path / "run.marey").table("epochs")] == [0, 1]
    found = counts(tmp_path / "run.marey")
    assert (found["data"], found["forward"], found["optimizer"], found["checkpoint"]) == (5, 10, 5, 2)
    [row] = marey.load(tmp_path / "run.marey").throughput
    assert row["iterations"] == 5


@pytest.mark.slow
def test_memory_stays_flat_over_many_steps(tmp_path):
    resident = []

    class Watch(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step in (2000, 10_000):
                resident.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))

    trainer_of(tmp_path, Callback(tmp_path / "run.marey"), Watch(), max_steps=10_000).train()
    assert counts(tmp_path / "run.marey")["optimizer"] == 10_000
    assert resident[1] - resident[0] < 8 << 20


# ---- exceptions ----


class FailingLoss(transformers.Trainer):
    error = Fault

    def compute_loss(self, *args, **kwargs):
        raise self.error


class InterruptedLoss(FailingLoss):
    error = KeyboardInterrupt


class FailingEvaluation(transformers.Trainer):
    def evaluation_loop(self, *args, **kwargs):
        raise Fault


class FailingSave(transformers.Trainer):
    def save_model(self, *args, **kwargs):
        raise Fault


class FailingBackward(transformers.Trainer):
    def compute_loss(self, *args, **kwargs):
        loss = super().compute_loss(*args, **kwargs)
        loss.register_hook(self.fail)
        return loss

    def fail(self, gradient):
        raise Fault


class FailingData(Data):
    def __getitem__(self, i):
        raise Fault


def failing_optimizer(folder, callback):
    model = Model()
    return trainer_of(folder, callback, model=model, optimizer=FailingOptimizer(model.parameters()), max_steps=2)


def failing(**settings):
    return lambda folder, callback: trainer_of(folder, callback, **{"max_steps": 2, **settings})


def failing_at(hook, **settings):
    return lambda folder, callback: trainer_of(folder, callback, Failing(hook), **{"max_steps": 2, **settings})


FAULTS = {
    "data": failing(data=FailingData()),
    "forward": failing(kind=FailingLoss),
    "interrupt": failing(kind=InterruptedLoss),
    "backward": failing(kind=FailingBackward),
    "optimizer": failing_optimizer,
    "evaluate": failing(kind=FailingEvaluation, eval_strategy="steps", eval_steps=1),
    "evaluate on start": failing(kind=FailingEvaluation, eval_on_start=True, eval_strategy="steps", eval_steps=1),
    "checkpoint": failing(kind=FailingSave, save_strategy="steps", save_steps=1),
    **{
        hook: failing_at(hook)
        for hook in (
            "on_epoch_begin",
            "on_step_begin",
            "on_pre_optimizer_step",
            "on_optimizer_step",
            "on_step_end",
            "on_epoch_end",
            "on_train_end",
        )
    },
    "on_substep_end": failing_at("on_substep_end", gradient_accumulation_steps=2),
    "on_log": failing_at("on_log", logging_strategy="steps", logging_steps=1),
    "on_save": failing_at("on_save", save_strategy="steps", save_steps=1),
}


@pytest.mark.parametrize("place", FAULTS)
def test_an_exception_leaves_trainer_and_model_as_they_were(place, tmp_path):
    trainer = FAULTS[place](tmp_path, Callback(tmp_path / "run.marey", modules=True))
    before = traces_of(trainer)
    with pytest.raises((Fault, KeyboardInterrupt)):
        trainer.train()
    assert traces_of(trainer) == before
    assert not marey.enabled()
    assert not marey.progress()["in_epoch"]
    assert len(marey.load(tmp_path / "run.marey").open) == 0


def test_after_a_fault_the_next_training_is_recorded(tmp_path):
    callback = Callback(tmp_path / "run.marey")
    failing_hook = Failing("on_train_begin")
    trainer = trainer_of(tmp_path, callback, failing_hook, max_steps=2)
    with pytest.raises(Fault):
        trainer.train()
    trainer.remove_callback(failing_hook)
    trainer.train()
    assert counts(tmp_path / "run.marey")["optimizer"] == 2


def test_another_trainer_takes_over_from_one_that_was_given_up(tmp_path):
    given_up = trainer_of(tmp_path, Callback(tmp_path / "a.marey"), Failing("on_train_begin"), max_steps=2)
    with pytest.raises(Fault):
        given_up.train()
    trainer_of(tmp_path, Callback(tmp_path / "b.marey"), max_steps=2).train()
    assert counts(tmp_path / "b.marey")["optimizer"] == 2


# ---- misuse ----


def test_a_callback_without_a_trainer_says_so(tmp_path):
    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    callback = Callback(tmp_path / "run.marey")
    with pytest.warns(UserWarning, match="found no Trainer"):
        callback.on_train_begin(arguments, None, None)
    callback.on_train_end(arguments, None, None)
    assert not marey.enabled()


def test_without_transformers_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "marey._hf_phases")
    with pytest.raises(ImportError, match=r"^marey\.hf needs transformers: pip install transformers$"):
        importlib.import_module("marey._hf_phases")
