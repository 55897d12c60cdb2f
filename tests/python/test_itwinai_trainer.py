"""Trainers and configuration files as itwinai has them, with another import: decorators, loggers, blocks of YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

import marey

CONFIGS = Path(__file__).parents[1] / "data" / "itwinai"
SWITCHES = ("enable_torch_profiling", "store_torch_profiling_traces", "measure_gpu_data", "measure_epoch_time")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files of a monitor go below the working directory by default."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAREY_MONITOR", raising=False)


class Strategy:
    """What a strategy of itwinai tells of itself."""

    name = "torch-ddp"

    def global_rank(self):
        return 0

    def global_world_size(self):
        return 1


class Trainer:
    """Attributes, loop and set_epoch() as TorchTrainer of itwinai 0.4.2 has them; the model is a toy."""

    output_dir, print_summary = "out", False

    def __init__(self, epochs=2, n_batches=8, **switches):
        self.enable_torch_profiling = True
        self.store_torch_profiling_traces = self.measure_gpu_data = self.measure_epoch_time = False
        self.profiling_wait_epochs = self.profiling_warmup_epochs = 0
        self.run_name = "t"
        self.logger = object()
        self.strategy = Strategy()
        self.profiler = None
        self.current_epoch = 0
        self.epochs, self.n_batches = epochs, n_batches
        self.profilers = []
        self.__dict__.update(switches)

    def set_epoch(self):
        if self.profiler and self.current_epoch > 0:
            self.profiler.step()

    @marey.profile_torch_trainer
    @marey.measure_gpu_utilization
    def train(self):
        import torch

        self.model = torch.nn.Linear(8, 8)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for epoch in range(self.epochs):
            self.current_epoch = epoch
            self.set_epoch()
            self.profilers.append(self.profiler)
            for _ in range(self.n_batches):
                self.train_step(torch.ones(4, 8))
        return marey.current_monitor()

    def train_step(self, batch):
        self.optimizer.zero_grad()
        self.model(batch).sum().backward()
        self.optimizer.step()


# ---- decorators ----


@pytest.mark.needs_torch
def test_a_trainer_of_itwinai_trains_and_has_its_computation():
    trainer = Trainer(measure_epoch_time=True)
    monitor = trainer.train()
    assert "computation " in monitor.report() and "recorded no steps" not in monitor.report()
    assert Path("out/t/breakdown.json").exists()
    assert [row["epoch"] for row in monitor.load().epochs("rank")] == [0, 1]
    assert monitor.settings["strategy"] == "torch-ddp"
    assert None not in trainer.profilers and trainer.profiler is None


@pytest.mark.needs_torch
@pytest.mark.parametrize("n_batches", [1, 2, 3])
def test_short_epochs_have_their_computation_too(n_batches):
    monitor = Trainer(epochs=3, n_batches=n_batches).train()
    assert "computation " in monitor.report(), monitor.report()


@pytest.mark.needs_torch
def test_a_loop_that_steps_the_profiler_itself_has_a_trace_of_each_epoch():
    class Own(Trainer):
        @marey.profile_torch_trainer
        def train(self):
            import torch

            self.model = torch.nn.Linear(8, 8)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            for _ in range(3):
                for _ in range(6):
                    self.train_step(torch.ones(4, 8))
                self.profiler.step()
            return marey.current_monitor()

    monitor = Own(store_torch_profiling_traces=True, profiling_wait_epochs=1).train()
    assert len(list(Path("out/t/torch-traces").iterdir())) == 2
    assert "computation " in monitor.report()


class Plain:
    """A trainer without torch; subclasses differ in how `set_epoch` receives the epoch."""

    output_dir, run_name, print_summary = "out", "t", False
    enable_torch_profiling = measure_gpu_data = False
    measure_epoch_time = True

    def __init__(self, tell, set_epoch):
        self.tell, self.inner, self.current_epoch, self.seen = tell, set_epoch, 0, []

    def set_epoch(self, *args, **kwargs):
        self.seen.append(self.inner(*args, **kwargs))

    @marey.profile_torch_trainer
    @marey.measure_gpu_utilization
    def train(self):
        for epoch in (3, 4):
            self.current_epoch = epoch
            self.tell(self)
        return marey.current_monitor()


@pytest.mark.parametrize(
    ("tell", "set_epoch", "seen", "epochs"),
    [
        (lambda t: t.set_epoch(), lambda: None, [None, None], [3, 4]),
        (lambda t: t.set_epoch(t.current_epoch), lambda epoch: epoch, [3, 4], [3, 4]),
        (lambda t: t.set_epoch(epoch=t.current_epoch + 5), lambda epoch: epoch, [8, 9], [8, 9]),
        (lambda t: t.set_epoch("train", epoch=t.current_epoch), lambda _, epoch: epoch, [3, 4], [3, 4]),
    ],
    ids=["itwinai", "positional", "by name", "beside another"],
)
def test_set_epoch_is_called_as_the_trainer_calls_it(tell, set_epoch, seen, epochs):
    trainer = Plain(tell, set_epoch)
    monitor = trainer.train()
    assert trainer.seen == seen
    assert [row["epoch"] for row in monitor.load().epochs("rank")] == epochs


def test_set_epoch_without_a_number_anywhere_counts():
    class Silent(Plain):
        @marey.profile_torch_trainer
        def train(self):
            del self.current_epoch
            for _ in range(3):
                self.set_epoch()
            return marey.current_monitor()

    monitor = Silent(None, lambda: None).train()
    assert [row["epoch"] for row in monitor.load().epochs("rank")] == [0, 1, 2]


def test_what_set_epoch_raises_is_its_own():
    trainer = Plain(lambda t: t.set_epoch(1, 2, 3), lambda epoch: epoch)
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        trainer.train()


def test_a_decorator_between_the_two_is_called():
    import functools

    calls = []

    def monitored(method):
        @functools.wraps(method)
        def run(*args):
            calls.append("in")
            return method(*args)

        return run

    class Between(Plain):
        @marey.profile_torch_trainer
        @monitored
        @marey.measure_gpu_utilization
        def train(self):
            return marey.current_monitor()

    monitor = Between(None, None).train()
    assert calls == ["in"] and not monitor.is_running


def test_a_train_that_calls_the_one_above_is_one_run():
    class Above(Plain):
        @marey.profile_torch_trainer
        def train(self):
            outer = marey.current_monitor()
            assert super().train() is outer
            return outer

    monitor = Above(lambda t: t.set_epoch(), lambda: None).train()
    assert [row["epoch"] for row in monitor.load().epochs("rank")] == [3, 4]


def test_the_name_of_the_strategy_object_is_the_strategy():
    trainer = Plain(lambda t: t.set_epoch(t.current_epoch), lambda epoch: epoch)
    trainer.strategy = Strategy()
    assert trainer.train().settings["strategy"] == "torch-ddp"


# ---- loggers ----


class Collecting:
    def __init__(self):
        self.params = {}

    def log_metrics(self, metrics, step):
        pass

    def log_params(self, params):
        self.params.update(params)

    def log_artifact(self, path, name=None):
        pass

    def close(self):
        pass


def test_a_logger_object_gets_run_name_and_strategy():
    logger = Collecting()
    with marey.TrainingMonitor(run_name="r", strategy="torch-ddp", loggers=logger, print_summary=False):
        pass
    assert (logger.params["run_name"], logger.params["strategy"]) == ("r", "torch-ddp")


@pytest.mark.needs_mlflow
@pytest.mark.parametrize("own", [{}, {"run_name": "mine", "strategy": "fsdp"}], ids=["the monitor's", "its own"])
def test_an_mlflow_logger_object_writes_run_name_and_strategy(tmp_path_factory, own, recwarn):
    mlflow = pytest.importorskip("mlflow")
    from marey.loggers import MLflowLogger

    # Not tmp_path: pytest removes and reuses it, and MLflow keeps a connection to the removed file by its URI.
    uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"
    logger = MLflowLogger("e", tracking_uri=uri, **own)
    with marey.TrainingMonitor(run_name="r", strategy="torch-ddp", loggers=logger, print_summary=False) as monitor:
        for _ in monitor.epochs(1):
            pass
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
    client = mlflow.MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("e").experiment_id])
    workers = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    parents = [run.info.run_name for run in runs if "mlflow.parentRunId" not in run.data.tags]
    assert parents == [own.get("run_name", "r")]
    assert [run.data.params["strategy"] for run in workers] == [own.get("strategy", "torch-ddp")]
    assert "epoch_time_s" in workers[0].data.metrics


# ---- configuration files ----


@pytest.mark.parametrize(
    ("name", "key", "wanted"),
    [
        ("mnist", None, {"measure_epoch_time": False, "strategy": "ddp"}),
        ("mnist", "training_pipeline", {"measure_epoch_time": False, "strategy": "ddp"}),
        ("mnist", "training_pipeline.steps.training_step", {"measure_epoch_time": False}),
        ("lattice-qcd", None, {"measure_epoch_time": False, "strategy": "ddp"}),
        (
            "virgo-joss",
            None,
            {**dict.fromkeys(SWITCHES, True), "store_torch_profiling_traces": False, "run_name": "run1"},
        ),
        ("virgo-joss", "training_pipeline.steps.1", {"run_name": "run1"}),
        ("virgo-joss", "training_pipeline_small.steps[3]", {"enable_torch_profiling": True, "run_name": None}),
        ("eurac", None, {"measure_epoch_time": False, "profiling_wait_epochs": 1, "strategy": "ddp"}),
        ("radio-astronomy", "unet_pipeline", {**dict.fromkeys(SWITCHES, False), "strategy": None}),
        ("radio-astronomy", "complete_pipeline.steps.fcnn.steps.training_step", {"measure_epoch_time": True}),
        ("hpo-distributed", None, {"strategy": "deepspeed"}),
        ("hpo-distributed", "hpo_training_pipeline.init_args.steps.2", {"strategy": "deepspeed"}),
    ],
)
def test_configuration_files_of_itwinai_load(name, key, wanted, recwarn):
    pytest.importorskip("yaml")
    monitor = marey.TrainingMonitor.from_config(CONFIGS / f"{name}.yaml", *([key] if key else []))
    assert {word: monitor.settings[word] for word in wanted} == wanted
    assert not recwarn.list


BLOCK = {"strategy": "torch-ddp", "profiling_wait_epochs": 2}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"pipeline": {"steps": {"training_step": BLOCK}}}, "pipeline.steps.training_step"),
        (
            {"pipeline": {"steps": [{"class_path": "a.Loader"}, {"class_path": "a.T", "init_args": BLOCK}]}},
            "pipeline.steps.1",
        ),
        ({"a": {"training_step": {"strategy": "other"}}, "b": {"training_step": BLOCK}}, "b.training_step"),
        ({"training_step": {**BLOCK, "profiling_active_epochs": 3}}, "training_step"),
    ],
    ids=["a path", "a list of steps", "one of two blocks", "active epochs"],
)
def test_a_block_is_found_by_its_path(config, key, recwarn):
    settings = marey.TrainingMonitor.from_config(config, key).settings
    assert (settings["strategy"], settings["profiling_wait_epochs"]) == ("torch-ddp", 2)
    assert not recwarn.list


def test_several_trainers_are_listed_with_their_paths():
    pytest.importorskip("yaml")
    with pytest.raises(ValueError, match="3 blocks") as caught:
        marey.TrainingMonitor.from_config(CONFIGS / "radio-astronomy.yaml")
    for pipeline in ("unet", "fcnn", "cnn1d"):
        assert f"{pipeline}_pipeline.steps.training_step" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "others", "expected"),
    [
        ("${name}", {"name": "a"}, "a"),
        ("${group.name}", {"group": {"name": "b"}}, "b"),
        ("${names[1]}", {"names": ["a", "c"]}, "c"),
        ("run-${name}-${n}", {"name": "${other}", "other": "d", "n": 3}, "run-d-3"),
        ("${.strategy}", {}, "s"),
        ("${oc.env:MAREY_TEST_NAME}", {}, "from the environment"),
        ("${oc.env:MAREY_TEST_MISSING,e}", {}, "e"),
    ],
)
def test_interpolations_are_resolved(monkeypatch, value, others, expected):
    monkeypatch.setenv("MAREY_TEST_NAME", "from the environment")
    config = {**others, "training_step": {"run_name": value, "strategy": "s", "config": {"x": "${now:%Y}"}}}
    assert marey.TrainingMonitor.from_config(config).run_name == expected


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"training_step": {"measure_gpu_data": "${gpu}"}}, r"measure_gpu_data: \$\{gpu\}.*'gpu' does not exist"),
        ({"training_step": {"run_name": "${now:%Y}"}}, r"run_name: \$\{now:%Y\}.*OmegaConf"),
        ({"training_step": {"run_name": "${a}"}, "a": "${b}", "b": "${a}"}, "refers to itself"),
    ],
)
def test_an_interpolation_that_leads_nowhere_is_named(config, sentence):
    with pytest.raises(ValueError, match=sentence):
        marey.TrainingMonitor.from_config(config)


def test_a_path_that_is_not_there_names_what_is():
    with pytest.raises(ValueError, match=r"no block 'a\.c'.*'a' has b, d"):
        marey.TrainingMonitor.from_config({"a": {"b": {}, "d": {}}}, "a.c")


@pytest.mark.needs_torch
def test_profiling_active_epochs_are_traced_and_no_more():
    trainer = Trainer(epochs=4, store_torch_profiling_traces=True, profiling_active_epochs=2, profiling_wait_epochs=1)
    trainer.train()
    assert len(list(Path("out/t/torch-traces").iterdir())) == 2


# ---- MLflow ----


@pytest.mark.needs_torch
@pytest.mark.needs_mlflow
def test_measured_computation_is_in_the_store(tmp_path, monkeypatch):
    from marey.itwinai import _mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    trainer = Trainer(loggers="mlflow", measure_epoch_time=True, store_torch_profiling_traces=True)
    trainer.train()
    _mlflow.write(f"sqlite:///{tmp_path}/mlflow.db", str(tmp_path / "runs.csv"), None, [])
    (point,) = marey.scale(tmp_path / "runs.csv").points
    assert point["strategy"] == "torch-ddp"
    parts = marey.breakdown("out/t/torch-traces", window="steps").summary
    step_s = point["compute_s"] + point["communication_s"] + point["memory_s"] + point["idle_s"]
    assert point["compute_s"] / step_s == pytest.approx(parts["computation"]["share"])
