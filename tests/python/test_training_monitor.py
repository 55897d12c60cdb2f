"""marey.TrainingMonitor without torch: switches, configuration, loops, what is recorded and logged of them."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import pytest

import marey

PHASES = ("data", "forward", "backward", "optimizer", "evaluate", "checkpoint", "logging", "other")
# As itwinai's overview has it, with another _target_.
DOCUMENTED = """
training_pipeline:
  steps:
    loading_step:
      _target_: itwinai.components.DataGetter
    training_step:
      _target_: marey.TrainingMonitor
      enable_torch_profiling: True
      store_torch_profiling_traces: True
      measure_gpu_data: True
      measure_epoch_time: True
"""

# With the page's indentation and its ellipsis.
AS_ON_THE_PAGE = """
      ...
      training_step:
        _target_: marey.TrainingMonitor
        enable_torch_profiling: True
        store_torch_profiling_traces: True
        measure_gpu_data: True
        measure_epoch_time: True
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files of a monitor go below the working directory unless it is told otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAREY_MONITOR", raising=False)


def monitor_of(**options):
    return marey.TrainingMonitor(**{"run_name": "r", "output_dir": "out", "print_summary": False, **options})


def train(monitor, n=3, start=0, n_batches=4):
    """A loop that sleeps; the time of each phase is known from below."""
    for epoch in monitor.epochs(n, start=start):
        for _ in monitor.batches([[0] * 8] * n_batches, samples=8):
            with monitor.phase("forward"):
                time.sleep(0.002)
            with monitor.phase("backward"):
                time.sleep(0.001)
        with monitor.phase("evaluate"):
            for _ in monitor.batches([1, 2]):
                time.sleep(0.001)
        yield epoch


def metrics_of(path="out/r/metrics.csv"):
    with open(path, newline="") as file:
        return [(row["name"], int(row["step"]), float(row["value"])) for row in csv.DictReader(file)]


# ---- loops ----


def test_a_plain_loop_is_epochs_phases_and_iterations():
    monitor = monitor_of()
    with monitor:
        assert list(train(monitor)) == [0, 1, 2]
    run = monitor.load()
    rows = list(run.epochs("rank"))
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    for row in rows:
        assert sum(row[f"{name}_ns"] for name in PHASES) == row["duration_ns"]
        assert row["iterations"] == 4 and row["samples"] == 32  # evaluation has none
        assert row["forward_ns"] >= 8e6 and row["backward_ns"] >= 4e6 and row["evaluate_ns"] >= 2e6
        assert row["data_ns"] > 0
    (whole, _) = run.epochs("average")
    assert whole["epochs"] == 2 and whole["samples_per_s"] > 0
    assert Path("out/r.marey").is_dir()


def test_each_epoch_is_logged_when_it_ends():
    monitor = monitor_of()
    with monitor:
        list(train(monitor, 2))
        monitor.log_metrics({"loss": 0.5}, step=7)
    logged = metrics_of()
    of_epochs = {(name, step): value for name, step, value in logged}
    for row in monitor.load().epochs("rank"):
        told = of_epochs["epoch_time_s", row["epoch"]]
        assert told == pytest.approx(row["duration_ns"] / 1e9, rel=0.2)
        parts = [
            value for (name, step), value in of_epochs.items() if name.startswith("phase_") and step == row["epoch"]
        ]
        assert 0 < sum(parts) <= told
        assert of_epochs["samples_per_s", row["epoch"]] == pytest.approx(32 / told)
    assert ("loss", 7, 0.5) in logged


def test_a_resumed_training_counts_on():
    first = monitor_of()
    with first:
        list(train(first, 2))
    second = monitor_of()
    with second:
        assert list(train(second, 4, start=2)) == [2, 3]
    rows = list(second.load().epochs("rank"))
    assert sorted(row["epoch"] for row in rows) == [0, 1, 2, 3]
    assert {row["run"] for row in rows} == {1, 2}  # two processes of two runs, were they not this one
    # each begins with an epoch that warms up
    assert [row["epoch"] for row in rows if row["note"] == "first"] == [0, 2]


def test_steps_may_be_told_without_batches():
    monitor = monitor_of()
    with monitor:
        monitor.set_epoch(5)
        for _ in range(3):
            monitor.step(samples=2)
        monitor.set_epoch(6)
        monitor.step()
    rows = list(monitor.load().epochs("rank"))
    assert [(row["epoch"], row["iterations"], row["samples"]) for row in rows] == [(5, 3, 6.0), (6, 1, None)]


def test_leaving_a_loop_early_leaves_nothing_open():
    monitor = monitor_of()
    with monitor:
        for _ in monitor.epochs(3):
            for _ in monitor.batches([1, 2, 3]):
                break
            break
    (row,) = monitor.load().epochs("rank")
    assert row["iterations"] == 0 and row["note"] == "first"
    assert not marey.progress()["in_epoch"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_goes_through_and_its_epoch_does_not_count(error):
    monitor = monitor_of()
    with pytest.raises(error), monitor:
        for epoch in train(monitor):
            if epoch == 1:
                with monitor.phase("checkpoint"):
                    raise error("stop")
    assert not marey.enabled() and not marey.progress()["in_epoch"]
    rows = list(monitor.load().epochs("rank"))
    assert [row["note"] for row in rows] == ["first", "not ended"]
    assert [name for name, step, _ in metrics_of() if step == 1] == []
    with monitor_of(run_name="next") as following:  # nothing of it is left
        list(train(following, 1))
    (row,) = following.load().epochs("rank")
    assert row["epoch"] == 0 and row["checkpoint_ns"] == 0


def test_the_name_of_a_phase_is_checked():
    monitor = monitor_of()
    with monitor, pytest.raises(ValueError, match="forward, backward"):
        monitor.phase("forwards")


def test_a_recording_that_is_open_is_joined_and_left_open(record):
    monitor = monitor_of()
    with record() as path:
        with monitor:
            list(train(monitor, 2))
        assert marey.enabled()
    assert monitor.recording == str(path)
    assert len(marey.load(path).epochs("rank")) == 2
    assert not Path("out/r.marey").exists()


def test_two_runs_of_one_monitor_follow_one_another():
    monitor = monitor_of()
    for _ in range(2):
        with monitor:
            list(train(monitor, 1))
        assert not monitor.is_running
    assert len(monitor.load().epochs("rank")) == 2
    with monitor, pytest.raises(marey.StateError, match="already running"):
        monitor.start()


# ---- switches ----


def test_without_a_switch_nothing_is_done():
    monitor = monitor_of(measure_epoch_time=False)
    with monitor:
        assert list(train(monitor)) == [0, 1, 2]
        assert not marey.enabled()
    assert os.listdir(".") == []
    with pytest.raises(marey.StateError, match="measure_epoch_time"):
        monitor.load()


def test_measure_gpu_data_alone_tells_of_no_epochs(run_python, tmp_path):
    done = run_python(
        """
        import marey

        monitor = marey.TrainingMonitor(measure_gpu_data=True, measure_epoch_time=False, run_name="r", output_dir="out")
        with monitor:
            for _ in monitor.epochs(2):
                for _ in monitor.batches([1, 2]):
                    pass
        """
    )
    with pytest.raises(marey.MareyError, match="no epochs"):
        marey.load(tmp_path / "out" / "r.marey").epochs()
    assert not Path("out/r/metrics.csv").exists() or all(name.startswith("gpu_") for name, _, _ in metrics_of())
    assert "an epoch takes" not in done.stdout
    # joules where there is a GPU, else one sentence
    assert " J" in done.stdout or done.stderr.count("energy of GPUs is not measured") == 1


def test_traces_without_profiling_are_an_error_that_names_both():
    with pytest.raises(ValueError, match=r"store_torch_profiling_traces needs enable_torch_profiling"):
        marey.TrainingMonitor(store_torch_profiling_traces=True)
    with pytest.raises(ValueError, match=r"store_torch_profiling_traces needs enable_torch_profiling"):
        marey.TrainingMonitor(store_torch_traces=True)


def test_both_spellings_are_one_switch():
    monitor = marey.TrainingMonitor(torch_profiling=True, store_torch_traces=True)
    assert monitor.settings["enable_torch_profiling"] and monitor.settings["store_torch_profiling_traces"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"measure_gpu_data": "yes"}, "measure_gpu_data must be True or False"),
        ({"profiling_wait_epochs": -1}, "profiling_wait_epochs must be an integer of at least 0"),
        ({"profiling_steps": 0}, "profiling_steps must be an integer of at least 1"),
        ({"run_name": "a/b"}, "run_name names files"),
        ({"measure_gpu_dat": True}, "did you mean 'measure_gpu_data'"),
        ({"loggers": "sheet"}, None),
    ],
)
def test_wrong_words_are_reported(options, sentence):
    if sentence is None:  # loggers are made with the run
        with pytest.raises(ValueError, match="no logger is called 'sheet'"), monitor_of(**options):
            pass
        assert not marey.enabled()
        return
    with pytest.raises(ValueError, match=sentence):
        marey.TrainingMonitor(**options)


def test_loggers_are_objects_or_names_or_none():
    class Mine:
        def __init__(self):
            self.told, self.params = [], {}

        def log_metrics(self, metrics, step):
            self.told.append((step, sorted(metrics)))

        def log_params(self, params):
            self.params.update(params)

        def log_artifact(self, path, name=None):
            pass

        def close(self):
            self.told.append("closed")

    mine = Mine()
    with monitor_of(loggers=[mine, "csv"]) as monitor:
        list(train(monitor, 1))
    step, names = mine.told[0]
    assert step == 0 and "epoch_time_s" in names and mine.told[-1] == "closed"
    assert mine.params["run_name"] == "r" and Path("out/r/metrics.csv").exists()
    with monitor_of(run_name="s", loggers=None) as monitor:
        list(train(monitor, 1))
    assert not Path("out/s").exists()


def test_a_logger_that_fails_is_a_warning_and_no_more():
    class Broken:
        def log_metrics(self, metrics, step):
            raise OSError("no such server")

        def log_params(self, params):
            pass

        def log_artifact(self, path, name=None):
            pass

        def close(self):
            pass

    with pytest.warns(RuntimeWarning, match="no such server"), monitor_of(loggers=[Broken()]) as monitor:
        list(train(monitor, 2))
    assert len(monitor.load().epochs("rank")) == 2


@pytest.mark.needs_torch  # what trains is installed together
def test_real_trackers_have_the_epochs(monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{Path('mlflow.db').absolute()}")
    with monitor_of(loggers="csv,mlflow,tensorboard") as monitor:
        list(train(monitor, 2))
    client = mlflow.MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    experiments = [one.experiment_id for one in client.search_experiments()]
    (worker,) = [run for run in client.search_runs(experiments) if "epoch_time_s" in run.data.metrics]
    seen = client.get_metric_history(worker.info.run_id, "epoch_time_s")
    (folder,) = {path.parent for path in Path("out/r").rglob("*tfevents*")}
    scalars = accumulator.EventAccumulator(str(folder)).Reload().Scalars("epoch_time_s")
    in_csv = [value for name, _step, value in metrics_of() if name == "epoch_time_s"]
    assert len(in_csv) == 2
    assert sorted((one.step, one.value) for one in seen) == list(enumerate(in_csv))
    assert [(one.step, one.value) for one in scalars] == list(enumerate(map(pytest.approx, in_csv)))


# ---- decorators ----


def test_a_monitor_decorates_any_train():
    monitor = monitor_of()

    @monitor
    def fit(n):
        """Doc."""
        assert monitor.is_running
        return list(train(monitor, n))

    assert fit(2) == [0, 1] and fit.__doc__ == "Doc."
    assert len(monitor.load().epochs("rank")) == 2


class Trainer:
    """As itwinai's trainers are: switches as attributes, set_epoch() at the top of each epoch."""

    output_dir, run_name, print_summary = "out", "t", False
    epochs = 2

    def __init__(self, **switches):
        self.__dict__.update(switches)
        self.seen = []

    def set_epoch(self, epoch):
        self.seen.append(epoch)

    @marey.profile_torch_trainer
    @marey.measure_gpu_utilization
    def train(self):
        for epoch in range(self.epochs):
            self.set_epoch(epoch)
            time.sleep(0.001)
        return marey.current_monitor()


def test_the_two_decorators_are_one_monitor_that_asks_the_trainer():
    trainer = Trainer(enable_torch_profiling=False, measure_gpu_data=False)
    monitor = trainer.train()
    assert monitor.settings["measure_epoch_time"] and not monitor.settings["enable_torch_profiling"]
    assert trainer.seen == [0, 1] and "set_epoch" not in vars(trainer)
    assert [row["epoch"] for row in monitor.load().epochs("rank")] == [0, 1]
    assert marey.current_monitor() is None


def test_a_decorator_switches_on_what_it_is_named_for():
    class Quiet(Trainer):
        @marey.measure_gpu_utilization
        def train(self):
            return marey.current_monitor()

    settings = Quiet().train().settings
    assert settings["measure_gpu_data"] and not settings["enable_torch_profiling"]


# ---- configuration and environment ----


@pytest.mark.parametrize("text", [DOCUMENTED, AS_ON_THE_PAGE], ids=["in its place", "as on the page"])
def test_the_documented_block_works_with_another_target(tmp_path, text):
    pytest.importorskip("yaml")
    path = tmp_path / "config.yaml"
    path.write_text(text)
    monitor = marey.TrainingMonitor.from_config(path, "training_step", run_name="mine")
    switches = ("enable_torch_profiling", "store_torch_profiling_traces", "measure_gpu_data", "measure_epoch_time")
    assert all(monitor.settings[name] for name in switches) and monitor.run_name == "mine"


def test_a_mapping_is_as_good_and_the_trainers_words_are_passed_over(recwarn):
    block = {"_target_": "x.Trainer", "epochs": 3, "model": {"_target_": "m"}, "config": {}, "torch_profiling": True}
    monitor = marey.TrainingMonitor.from_config({"steps": [{"training_step": block}]})
    assert monitor.settings["enable_torch_profiling"] and len(recwarn) == 0
    with pytest.warns(UserWarning, match="TrainingMonitor ignores frobnicate"):
        marey.TrainingMonitor.from_config({"training_step": {"frobnicate": 1}})


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"other": {}}, "no block 'training_step'"),
        ({"a": {"training_step": {}}, "b": {"training_step": {}}}, "2 blocks 'training_step'"),
        ({"training_step": 3}, "is not a mapping"),
        ({"training_step": {"torch_profiling": True, "enable_torch_profiling": False}}, "two spellings"),
        ({"training_step": {"mesure_gpu_data": True}}, "did you mean"),
    ],
)
def test_a_wrong_configuration_is_reported(config, sentence):
    with pytest.raises(ValueError, match=sentence):
        marey.TrainingMonitor.from_config(config)


def test_a_file_that_is_not_yaml_is_an_error(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "config.yaml"
    path.write_text("a: [1")
    with pytest.raises(ValueError, match="is not YAML"):
        marey.TrainingMonitor.from_config(path)


def test_the_environment_has_the_last_word(monkeypatch):
    monkeypatch.setenv(
        "MAREY_MONITOR", "torch_profiling,measure_epoch_time=0,run_name=env,profiling_steps=5,loggers=csv+mlflow"
    )
    settings = marey.TrainingMonitor(run_name="given").settings
    assert settings["enable_torch_profiling"] and not settings["measure_epoch_time"]
    assert (settings["run_name"], settings["profiling_steps"], settings["loggers"]) == ("env", 5, "csv,mlflow")
    monkeypatch.setenv("MAREY_MONITOR", "off")
    with marey.TrainingMonitor(output_dir="out") as monitor:
        assert not monitor.is_running
    assert os.listdir(".") == []


@pytest.mark.parametrize("text", ["torch", "profiling_steps=x", "measure_gpu_data=maybe", "run_name"])
def test_a_wrong_environment_is_reported(monkeypatch, text):
    monkeypatch.setenv("MAREY_MONITOR", text)
    with pytest.raises(ValueError, match="MAREY_MONITOR"):
        marey.TrainingMonitor()


# ---- the end ----


def test_the_summary_is_printed_and_can_be_had(capsys):
    with monitor_of(print_summary=True) as monitor:
        list(train(monitor, 2))
    out = capsys.readouterr().out
    assert out.startswith("an epoch takes ") and f"recording: {monitor.recording}" in out
    assert monitor.report() == out


def test_a_loop_without_epochs_says_how_to_tell_them(capsys):
    with monitor_of(print_summary=True):
        pass
    assert "monitor.epochs(n)" in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_is_an_error_before_the_training(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OSError), monitor_of():
        pass
    assert not marey.enabled()


def test_a_run_has_a_name_of_its_own():
    first, second = marey.TrainingMonitor(output_dir="out", print_summary=False), monitor_of(run_name=None)
    for monitor in (first, second):
        with monitor:
            pass
        assert monitor.run_name.startswith("run-")


# ---- GPUs, with a stand-in for NVIDIA's NVML ----


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    """Two GPUs that take 200 W each and are busy half of the time."""
    (tmp_path / "nvml.txt").write_text("gpus 2")
    library = Path(os.environ["MAREY_BUILD"]) / "tests" / "standin" / "nvml_standin.so"
    monkeypatch.setenv("MAREY_NVML_LIBRARY", str(library))
    monkeypatch.setenv("MAREY_STANDIN_NVML", str(tmp_path / "nvml.txt"))
    monkeypatch.setenv("MAREY_POWERCAP_ROOT", str(tmp_path))


def test_measure_gpu_data_tells_energy_and_utilization_of_each_gpu(nvml, capsys):
    with monitor_of(measure_gpu_data=True, print_summary=True) as monitor:
        for _ in monitor.epochs(2):
            for _ in monitor.batches([1] * 10, samples=1):
                time.sleep(0.05)
    out = capsys.readouterr().out
    devices = {row["name"]: row for row in monitor.load().energy("device") if row["kind"] == "gpu"}
    assert set(devices) == {"GPU 0", "GPU 1"}
    for name, row in devices.items():
        assert f"{name} of " in out and f"{row['joules']:.5g} J, utilization {row['utilization']:.1%}" in out
    logged = {(name, step): value for name, step, value in metrics_of()}
    for row in monitor.load().energy("epoch"):
        if row["kind"] == "gpu" and row["mean_w"] is not None:
            assert logged["gpu_power_W", row["epoch"]] == pytest.approx(row["mean_w"])
            assert logged["gpu_utilization_percent", row["epoch"]] == pytest.approx(100 * row["utilization"])
    assert any(name == "gpu_power_W" for name, _ in logged)


# ---- beside callbacks of trainers ----


def test_where_a_callback_tells_of_epochs_the_monitor_does_not():
    from marey._phases import phases

    callback = object()
    with monitor_of() as monitor:
        assert phases.lead(callback)
        marey.epoch(0).end()  # by the callback
        list(train(monitor, 3))
        phases.follow(callback)
    (row,) = monitor.load().epochs("rank")
    assert row["epoch"] == 0
    assert ("epoch_time_s", 0, row["duration_ns"] / 1e9) in metrics_of()  # logged at the end
