"""marey.lightning with the real Trainer of both packages: which phases there are, how many; nothing stays behind."""

from __future__ import annotations

import importlib
import logging
import sys
import warnings

import pytest
from phase_events import counts, nothing_stays, one_thread, shadowed, steps  # noqa: F401  # two are fixtures

import marey

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning.pytorch")
pytorch_lightning = pytest.importorskip("pytorch_lightning")

from marey.lightning import Callback, Profiler  # noqa: E402

N_SAMPLES, BATCH = 16, 2
N_BATCHES = N_SAMPLES // BATCH

PACKAGES = {"lightning": lightning, "pytorch_lightning": pytorch_lightning}
packages = pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)


class Fault(Exception):
    pass


def loader():
    data = torch.utils.data.TensorDataset(torch.randn(N_SAMPLES, 4), torch.randn(N_SAMPLES, 1))
    return torch.utils.data.DataLoader(data, batch_size=BATCH)


def module_of(package, fails_at="", manual=False):
    class Module(package.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
            self.automatic_optimization = not manual

        def loss_of(self, batch):
            return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

        def training_step(self, batch, batch_idx):
            if fails_at == "training_step":
                raise Fault
            loss = self.loss_of(batch)
            if fails_at == "backward":
                loss.register_hook(self.fail)
            if manual:
                optimizer = self.optimizers()
                optimizer.zero_grad()
                self.manual_backward(loss)
                optimizer.step()
            self.log("loss", loss)
            return loss

        def validation_step(self, batch, batch_idx):
            if fails_at == "validation_step":
                raise Fault
            self.log("val_loss", self.loss_of(batch))

        def test_step(self, batch, batch_idx):
            self.log("test_loss", self.loss_of(batch))

        def fail(self, *args):
            raise Fault

        def on_before_optimizer_step(self, optimizer):
            if fails_at == "optimizer":
                raise Fault

        def on_train_epoch_end(self):
            if fails_at == "epoch_end":
                raise Fault

        def on_fit_start(self):
            if fails_at == "fit_start":
                raise Fault

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    torch.manual_seed(1)
    return Module()


def trainer_of(package, folder, *callbacks, **settings):
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    settings = {"max_epochs": 1, "logger": False, "enable_checkpointing": False, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return package.Trainer(
            accelerator="cpu",
            devices=1,
            default_root_dir=folder,
            callbacks=list(callbacks),
            enable_progress_bar=False,
            enable_model_summary=False,
            **settings,
        )


def fit(trainer, module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(module, loader(), loader())


def traces_of(trainer, module):
    """Remains of wrappers and hooks."""
    owners = (trainer, trainer.strategy, trainer.fit_loop.epoch_loop, trainer._logger_connector)
    return [*map(shadowed, owners), [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in module.modules()]]


# ---- the callback ----


@pytest.fixture(scope="module", params=["lightning", "pytorch_lightning"])
def trained(request, tmp_path_factory):
    """Two epochs with a logger and checkpoints, accumulating over 4 batches with the second package."""
    package = PACKAGES[request.param]
    n_accumulated = 1 if request.param == "lightning" else 4
    folder = tmp_path_factory.mktemp("trained")
    trainer = trainer_of(
        package,
        folder,
        Callback(folder / "run.marey"),
        max_epochs=2,
        accumulate_grad_batches=n_accumulated,
        logger=package.loggers.CSVLogger(folder / "logs"),
        log_every_n_steps=1,
        enable_checkpointing=True,
        num_sanity_val_steps=1,
    )
    module = module_of(package)
    before = traces_of(trainer, module)
    fit(trainer, module)
    assert traces_of(trainer, module) == before
    assert not marey.enabled()
    marey.reset()
    return n_accumulated, folder / "run.marey"


def test_each_phase_is_there_as_often_as_it_ran(trained):
    n_accumulated, path = trained
    n_steps = 2 * N_BATCHES // n_accumulated
    found = counts(path)
    assert found.pop("logging") >= n_steps
    assert found == {
        "data": 2 * N_BATCHES,
        "forward": 2 * N_BATCHES,
        "backward": 2 * N_BATCHES,
        "optimizer": n_steps,
        "evaluate": 3,  # the sanity check, and after each epoch
        "checkpoint": 2,
    }


def test_an_optimizer_step_is_an_iteration(trained):
    n_accumulated, path = trained
    recording = marey.load(path)
    [row] = recording.throughput
    assert (row["iterations"], row["samples"]) == (2 * N_BATCHES // n_accumulated, 2 * N_SAMPLES)
    assert [row["iterations"] for row in recording.table("epochs")] == [N_BATCHES // n_accumulated] * 2
    assert all(row["ended"] for row in recording.table("epochs"))
    assert recording.warnings == []


def test_phases_follow_one_another_through_each_step(trained):
    n_accumulated, path = trained
    expected = [*["data", "forward", "backward"] * n_accumulated, "optimizer"]
    assert steps(path) == [expected] * (2 * N_BATCHES // n_accumulated)


def test_manual_optimization_has_the_same_phases(tmp_path):
    trainer = trainer_of(lightning, tmp_path, Callback(tmp_path / "run.marey"), limit_val_batches=0)
    fit(trainer, module_of(lightning, manual=True))
    expected = ["data", "forward", "backward", "forward", "optimizer", "forward"]
    assert steps(tmp_path / "run.marey") == [expected] * N_BATCHES


def test_modules_are_ranges_named_by_their_path(tmp_path):
    trainer = trainer_of(lightning, tmp_path, Callback(tmp_path / "run.marey", modules=True), max_steps=2)
    module = module_of(lightning)
    before = traces_of(trainer, module)
    fit(trainer, module)
    assert traces_of(trainer, module) == before
    assert counts(tmp_path / "run.marey")["layer"] >= 2


@packages
def test_validate_and_test_are_evaluations(package, record, tmp_path):
    trainer = trainer_of(package, tmp_path, Callback())
    with record() as path, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.validate(module_of(package), loader(), verbose=False)
        trainer.test(module_of(package), loader(), verbose=False)
        assert marey.enabled()
    assert counts(path) == {"evaluate": 2}


def test_without_a_recording_it_does_nothing(tmp_path):
    fit(trainer_of(lightning, tmp_path, Callback(), max_steps=2), module_of(lightning))
    assert not marey.enabled()


def test_two_callbacks_record_once(tmp_path):
    both = Callback(tmp_path / "run.marey"), Callback(tmp_path / "b.marey")
    fit(trainer_of(lightning, tmp_path, *both, max_steps=3, limit_val_batches=0), module_of(lightning))
    assert counts(tmp_path / "run.marey") == {"data": 3, "forward": 3, "backward": 3, "optimizer": 3}
    assert not (tmp_path / "b.marey").exists()


def test_a_resumed_training_counts_its_own_steps(tmp_path):
    first = trainer_of(lightning, tmp_path, max_steps=3, limit_val_batches=0)
    fit(first, module_of(lightning))
    first.save_checkpoint(tmp_path / "at3.ckpt")
    trainer = trainer_of(
        lightning, tmp_path, Callback(tmp_path / "run.marey"), max_steps=5, max_epochs=3, limit_val_batches=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(module_of(lightning), loader(), ckpt_path=tmp_path / "at3.ckpt", weights_only=False)
    assert trainer.global_step == 5
    [row] = marey.load(tmp_path / "run.marey").throughput
    assert (row["iterations"], row["samples"]) == (2, 4)
    assert counts(tmp_path / "run.marey")["optimizer"] == 2


@pytest.mark.parametrize(
    "place", ["fit_start", "validation_step", "training_step", "backward", "optimizer", "epoch_end"]
)
def test_an_exception_leaves_trainer_and_module_as_they_were(place, tmp_path):
    trainer = trainer_of(lightning, tmp_path, Callback(tmp_path / "run.marey", modules=True))
    module = module_of(lightning, fails_at=place)
    before = traces_of(trainer, module)
    with pytest.raises(Fault):
        fit(trainer, module)
    assert traces_of(trainer, module) == before
    assert not marey.enabled()
    assert not marey.progress()["in_epoch"]
    assert len(marey.load(tmp_path / "run.marey").open) == 0


# ---- the profiler ----


@packages
def test_actions_are_ranges(package, tmp_path):
    profiler = Profiler(tmp_path / "run.marey")
    assert isinstance(profiler, package.profilers.Profiler)
    fit(trainer_of(package, tmp_path, profiler=profiler, limit_val_batches=0), module_of(package))
    assert not marey.enabled()
    found = counts(tmp_path / "run.marey")
    assert found["run_training_epoch"] == 1
    assert found["run_training_batch"] == N_BATCHES
    assert found["[Strategy]SingleDeviceStrategy.training_step"] == N_BATCHES
    assert found["[_TrainingEpochLoop].train_dataloader_next"] == N_BATCHES
    assert {row["category"] for row in marey.load(tmp_path / "run.marey").sites if row["name"] in found} == {
        "lightning"
    }


def test_the_profiler_and_the_callback_go_together(record, tmp_path):
    with record() as path:
        trainer = trainer_of(lightning, tmp_path, Callback(), profiler=Profiler(), max_steps=2, limit_val_batches=0)
        fit(trainer, module_of(lightning))
    found = counts(path)
    assert found["run_training_batch"] == found["forward"] == 2
    tree = [(row["depth"], row["name"]) for row in marey.load(path).tree]
    assert [depth for depth, name in tree if name == "forward"] > [0]


def test_a_profiler_takes_actions_that_never_began():
    Profiler().stop("an action")


# ---- packages ----


def test_it_is_of_both_packages():
    assert issubclass(Callback, lightning.Callback)
    assert issubclass(Callback, pytorch_lightning.Callback)


def test_without_lightning_one_sentence_says_what_to_install(monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "marey.lightning")
    with pytest.raises(ImportError, match=r"^marey\.lightning needs lightning: pip install lightning$"):
        importlib.import_module("marey.lightning")
