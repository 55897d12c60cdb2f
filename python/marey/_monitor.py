"""marey.TrainingMonitor: a whole training run, with four switches.

    monitor = marey.TrainingMonitor(enable_torch_profiling=True)
    with monitor:
        for epoch in monitor.epochs(10):
            for batch in monitor.batches(loader):
                with monitor.phase("forward"):
                    loss = model(batch)
                ...

Every rank writes into one recording, OUTPUT_DIR/RUN_NAME.marey. At the end rank 0 prints a summary.
"""

from __future__ import annotations

import os

from marey import _monitor_settings as settings_of
from marey import _native, _start
from marey._phases import phases

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any, Optional, TypeVar, Union

    from marey._breakdown import Breakdown
    from marey._monitor_config import Config
    from marey._monitor_traces import Traces
    from marey._recording import Recording
    from marey.loggers import Batched, Logger

    Batch = TypeVar("Batch")
    Function = TypeVar("Function", bound=Callable[..., Any])
    Loggers = Union[str, Logger, Iterable[Union[str, Logger]], None]
    Samples = Union[float, Callable[[Any], float], None]

DRIVER = "marey.TrainingMonitor"


class _Nothing:
    """A context manager that does nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_nothing = _Nothing()


class TrainingMonitor:
    """Measures a training run: epoch times, computation and communication, energy. For `with`, or to decorate train().

    `enable_torch_profiling` records a few steps of each epoch with torch.profiler and reports computation,
    communication and other of each rank. `store_torch_profiling_traces` keeps the traces in
    OUTPUT_DIR/RUN_NAME/torch-traces. `measure_gpu_data` measures energy and utilization of the GPUs.
    `measure_epoch_time` times epochs and phases. Without any switch the monitor does nothing. `torch_profiling` and
    `store_torch_traces` are aliases of the first two.

    `profiling_wait_epochs` and `profiling_warmup_epochs` pass before the first trace, `profiling_steps` of each epoch
    are recorded, in `profiling_active_epochs` epochs or, by default, in all remaining ones. `run_name` names the files;
    ranks of one job derive the same name. `loggers` are objects of marey.loggers or names: "csv", "mlflow",
    "tensorboard"; None for none. MAREY_MONITOR in the environment overrides all settings. Other keys of a trainer's
    block in a configuration file are ignored.
    """

    def __init__(
        self,
        enable_torch_profiling: bool = False,
        store_torch_profiling_traces: bool = False,
        measure_gpu_data: bool = False,
        measure_epoch_time: bool = True,
        profiling_wait_epochs: int = 0,
        profiling_warmup_epochs: int = 0,
        run_name: Optional[str] = None,
        output_dir: Union[str, os.PathLike[str]] = "marey-runs",
        loggers: Loggers = "csv",
        *,
        profiling_steps: int = 3,
        profiling_active_epochs: Optional[int] = None,
        strategy: Optional[str] = None,
        print_summary: bool = True,
        **others: Any,
    ) -> None:
        """Configure the measurement; nothing happens before `with`. Raises ValueError for invalid settings."""
        given: dict[str, Any] = {
            "enable_torch_profiling": enable_torch_profiling,
            "store_torch_profiling_traces": store_torch_profiling_traces,
            "measure_gpu_data": measure_gpu_data,
            "measure_epoch_time": measure_epoch_time,
            "profiling_wait_epochs": profiling_wait_epochs,
            "profiling_warmup_epochs": profiling_warmup_epochs,
            "profiling_active_epochs": profiling_active_epochs,
            "profiling_steps": profiling_steps,
            "run_name": run_name,
            "output_dir": os.fspath(output_dir),
            "loggers": loggers,
            "strategy": strategy,
            "print_summary": print_summary,
        }
        for short, long in settings_of.SPELLINGS.items():
            if short in others:
                given[long] = others.pop(short)
        if others:
            settings_of.check_others(others)
        given.update(settings_of.from_environment())
        settings_of.check(given)
        self.settings = given
        self.run_name: Optional[str] = given["run_name"]
        self.is_running = False
        self.recording: Optional[str] = None  # its path, once it exists
        self._owns = False
        self._depth = 0
        self._rank, self._world_size = 0, 1
        self._traces: Optional[Traces] = None
        self._log: Optional[Batched] = None
        self._steps_are_told = False
        self._in_epoch = False
        self._logs_epochs = False  # otherwise a callback records them, and they are logged at the end
        self._undo: list[Callable[[], None]] = []
        self._computation = ""  # summary of the traces

    @classmethod
    def from_config(cls, config: Config, key: str = "training_step", **overrides: Any) -> TrainingMonitor:
        """Create a monitor from a block of a configuration: a YAML file or a mapping. `overrides` take precedence.

        `key` is the name of the block, at any depth, or its path: "training_pipeline.steps.1". The path of a
        pipeline selects the trainer in it. Without `key`, the block is "training_step" or else the only trainer. The
        block may be that of an itwinai trainer: its other arguments are ignored.
        """
        from marey import _monitor_config

        block = settings_of.spelled(_monitor_config.read_block(config, key))
        return cls(**{**block, **settings_of.spelled(overrides)})

    # ---- the run ----

    @property
    def measures_epochs(self) -> bool:
        """Whether epochs, phases and iterations are being recorded."""
        return self.is_running and bool(self.settings["measure_epoch_time"])

    @property
    def folder(self) -> str:
        """OUTPUT_DIR/RUN_NAME, for the files of the loggers and torch's profiler."""
        return os.path.join(self.settings["output_dir"], self.run_name or "run")

    def start(self) -> None:
        """Begin; called by `with`. Does nothing if all switches are off."""
        if self.is_running:
            raise _native.StateError("this TrainingMonitor is already running: call stop() first")
        if not any(self.settings[name] for name in settings_of.SWITCHES):
            return
        from marey import _monitor_run

        self._rank, self._world_size = _monitor_run.place()
        self.run_name = self.run_name or _monitor_run.run_name(self._world_size)
        self._depth = phases.depth
        self._steps_are_told = self._logs_epochs = False
        self.is_running = True
        try:
            self._begin_recording()
            self._begin_traces()
            self._log = _monitor_run.open_loggers(self)
        except BaseException:
            self._give_up()
            raise
        self._undo.append(_monitor_run.follow_optimizers(self))

    def _begin_recording(self) -> None:
        if not (self.settings["measure_epoch_time"] or self.settings["measure_gpu_data"]):
            return
        from marey import _monitor_run

        self._owns = not _native.enabled()
        if self._owns:
            os.makedirs(self.settings["output_dir"], exist_ok=True)
            path = os.path.join(self.settings["output_dir"], f"{self.run_name}.marey")
            _start.start(path, **_monitor_run.options(self))
        if self.settings["strategy"]:
            _native.set_experiment(None, self.settings["strategy"])
        self.recording = os.path.abspath(_native.recording_path())

    def _begin_traces(self) -> None:
        self._traces = None
        if not self.settings["enable_torch_profiling"]:
            return
        try:
            from marey._monitor_traces import Traces
        except ImportError as error:
            raise ImportError("enable_torch_profiling needs torch: pip install torch") from error
        wait = self.settings["profiling_wait_epochs"] + self.settings["profiling_warmup_epochs"]
        self._traces = Traces(
            self.trace_folder, wait, self.settings["profiling_steps"], self.settings["profiling_active_epochs"]
        )
        if wait == 0:
            self._traces.start()  # in a loop without epochs, the first steps are recorded

    def _give_up(self) -> None:
        """Close the recording if something else failed to start."""
        self.is_running = False
        if self._owns:
            _start.stop()

    @property
    def trace_folder(self) -> str:
        """The directory of torch's traces, which are deleted at the end unless they are to be stored."""
        return os.path.join(
            self.folder, "torch-traces" if self.settings["store_torch_profiling_traces"] else ".torch-traces"
        )

    def stop(self) -> None:
        """End the run; called by `with`. Rank 0 prints the summary."""
        self._stop(None)

    def _stop(self, error: Optional[BaseException]) -> None:
        if not self.is_running:
            return
        from marey import _monitor_run

        phases.unwind(self._depth)
        if error is None:
            self._end_epoch()
        if self._traces is not None:
            self._traces.end(f"{type(error).__name__} ended the training" if error else "the training ended")
        self.is_running = False
        while self._undo:
            self._undo.pop()()
        if self._owns:
            _start.stop()
        if self._in_epoch:  # an exception ended it, so the recording has no end of it
            self._in_epoch = False
            _native.epoch_end()
        phases.follow(self)
        _monitor_run.finish(self, waits=error is None)
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> TrainingMonitor:
        self.start()
        return self

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        self._stop(value)

    def __call__(self, function: Function) -> Function:
        """Decorate train(): each call of it is a run."""
        import functools

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return run  # type: ignore[return-value]

    # ---- in the loop ----

    def _leads(self) -> bool:
        """Whether this monitor records epochs and phases, rather than a trainer's callback."""
        return self.measures_epochs and phases.lead(self)

    def epochs(self, n: Union[int, Iterable[int]], start: int = 0) -> Iterator[int]:
        """Iterate over epoch numbers, `start` to n - 1, and time each epoch: `for epoch in monitor.epochs(10):`.

        `start` is the first epoch of a resumed training. An iterable provides its own numbers.
        """
        for number in range(start, n) if isinstance(n, int) else n:
            self.set_epoch(number)
            yield number
            self._end_epoch()

    def set_epoch(self, number: int) -> None:
        """Begin epoch `number`, and end the previous one: for loops that call this at the start of an epoch."""
        if not self.is_running:
            return
        self._end_epoch()
        self._in_epoch = True
        if self._leads():
            _native.epoch_begin(number)
        if self._traces is not None:
            self._traces.begin()

    def _end_epoch(self) -> None:
        if not self._in_epoch:
            return
        self._in_epoch = False
        if self._traces is not None:
            self._traces.end()
        if self.settings["measure_epoch_time"] and phases.leader is self:
            _native.epoch_end()
            last = _native.epoch_last()
            if self._log is not None and last is not None:
                from marey import _monitor_run

                self._log.log_metrics(_monitor_run.metrics(last), step=last["number"])
                self._logs_epochs = True

    def batches(self, loader: Iterable[Batch], samples: Samples = None) -> Iterator[Batch]:
        """Iterate over the batches of a loader; each is an iteration, and the wait for it is the phase "data".

        `samples` is the number of samples per batch, or a function of the batch; by default the first dimension of its
        first tensor. In the phase "evaluate" batches do not count as iterations: their time belongs to the evaluation.
        """
        if not self.is_running or phases.now == "evaluate":
            yield from loader
            return
        self._steps_are_told = True
        leads = self._leads()
        if self._traces is not None:
            self._traces.expect(_length(loader))
        source = iter(loader)
        while True:
            if leads:
                _native.iteration_begin(DRIVER)
            try:
                with phases("data") if leads else _nothing:
                    batch = next(source)
            except StopIteration:
                return
            yield batch
            self._finish_step(_samples(batch, samples) if leads else None)

    def step(self, samples: Optional[float] = None) -> None:
        """End an iteration, in loops that do not use batches()."""
        if self.is_running:
            self._steps_are_told = True
            self._finish_step(samples)

    def _finish_step(self, samples: Optional[float]) -> None:
        if self._leads():
            _native.iteration_finish(samples, DRIVER)
        if self._traces is not None:
            self._traces.step()

    def optimizer_stepped(self) -> None:
        """Count an optimizer step as an iteration, unless the loop marks its steps."""
        if self.is_running and not self._steps_are_told:
            self._finish_step(None)

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Mark a phase of the training step: `with monitor.phase("forward"):`.

        Phases are data, forward, backward, optimizer, evaluate, checkpoint and logging. The remaining time is "other".
        """
        block = phases(name)  # checks the name in any case
        return block if self._leads() or self._annotates() else _nothing

    def _annotates(self) -> bool:
        return self.is_running and self._traces is not None and not self.settings["measure_epoch_time"]

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Send your own numbers to the loggers; returns immediately."""
        if self._log is not None and self.is_running:
            self._log.log_metrics(metrics, step)

    # ---- afterwards ----

    def load(self) -> Recording:
        """Open the recording."""
        from marey._recording import load

        if self.recording is None:
            raise _native.StateError(
                "this TrainingMonitor has recorded nothing: measure_epoch_time and measure_gpu_data are off"
            )
        return load(self.recording)

    def report(self) -> str:
        """Return the summary that is printed at the end: epochs, computation and communication, energy."""
        from marey import _monitor_run

        return _monitor_run.report(self)

    def breakdown(self) -> Breakdown:
        """Break the stored traces down into computation, communication and other."""
        from marey import _monitor_run
        from marey._breakdown import breakdown

        return breakdown(_monitor_run.traces_of(self))


def _length(loader: Any) -> Optional[int]:
    try:
        return len(loader)
    except TypeError:
        return None


def _samples(batch: Any, samples: Samples) -> Optional[float]:
    if callable(samples):
        return samples(batch)
    if samples is not None:
        return samples
    from marey._training import batch_size

    return batch_size(batch) or None
