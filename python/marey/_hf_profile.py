"""marey.hf.ProfCallback: a few steps of a Hugging Face Trainer, recorded in full detail.

    on_train_begin            the driver starts at step 0, also after a resume
    on_step_end               one step of the driver: an optimizer step, with all its micro-batches
    on_train_end              it stops; an open window is saved and marked
    Trainer.train raises      the same; train() is wrapped, because no hook reports this

A window spans from the end of one step to the end of another, so it contains evaluation, saving and logging between
steps, each as a separate annotation.
"""

from __future__ import annotations

import atexit
import functools
import os
import time
import weakref

from transformers import Trainer, TrainerCallback  # marey.hf has checked that it is installed

from marey import _nsight, _roles
from marey._hf_phases import Callback
from marey._schedule import Schedule, never
from marey._training import find_self
from marey._triggers import Triggers, as_trigger
from marey._window import Driver, say, who_am_i

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, Optional, Union

    from marey._schedule import Action
    from marey._triggers import Shorthand, Trigger
    from marey._window import Engine, Window

_DEFAULT_OUTPUT_DIR = "profiler_output"
_TOLD_WINDOWS = 5  # many windows over days would fill the terminal
_DEFAULT_SCHEDULE = {"wait_steps": 4, "warmup_steps": 4, "active_steps": 1, "num_cycles": 1}


class ProfCallback(TrainerCallback):  # type: ignore[misc]  # Any if transformers is not installed
    """Profiles some steps of a Trainer and saves the results in `output_dir/iteration_N`, for each rank.

        trainer = Trainer(..., callbacks=[ProfCallback(output_dir="profiler_output")])

    Parameters and defaults are those of edd_utils' ProfCallback; skip_first, triggers and engine are additional.

    cpu, cuda: what is recorded; both False means both.
    profile_memory: allocations; with_stack and record_shapes are then on as well.
    with_stack, record_shapes, with_flops: as in torch.profiler. FLOPs are computed from shapes: with_flops defaults to
    the value of record_shapes, and with_flops=True always records shapes. wait_steps, warmup_steps, active_steps,
    num_cycles: the schedule, in optimizer steps; default 4, 4, 1, 1. output_dir: default "profiler_output".
    export_memory_timeline, export_stacks, export_key_averages: files made besides the trace. enable_nsight_systems:
    under `nsys profile`, emit ranges and save nothing; otherwise, do nothing and print the nsys command.
    nsight_systems_output_file: the file named in that advice. skip_first: steps before the first cycle. triggers:
    events that open further windows of warmup_steps and active_steps: see marey.hf.SlowStep, OnSignal, OnFile, When.
        Without wait_steps and num_cycles, only triggers open windows. engine: "torch" for torch.profiler, "marey" for
        marey's own recording.

    `prof` is the driver of the schedule, None if nothing is recorded; `prof.windows` are the last windows with their
    costs.
    """

    def __init__(
        self,
        cpu: bool = True,
        cuda: bool = True,
        profile_memory: bool = True,
        with_stack: bool = True,
        record_shapes: bool = True,
        with_flops: Optional[bool] = None,
        wait_steps: Optional[int] = None,
        warmup_steps: Optional[int] = None,
        active_steps: Optional[int] = None,
        num_cycles: Optional[int] = None,
        output_dir: Optional[Union[str, os.PathLike[str]]] = None,
        export_memory_timeline: bool = True,
        export_stacks: bool = True,
        export_key_averages: bool = True,
        enable_nsight_systems: bool = False,
        nsight_systems_output_file: Optional[Union[str, os.PathLike[str]]] = None,
        *,
        skip_first: int = 0,
        triggers: Sequence[Shorthand] = (),
        engine: Literal["torch", "marey"] = "torch",
    ) -> None:
        """Create one. Recording starts with the training. Raises ValueError for invalid arguments."""
        if engine not in ("torch", "marey"):
            raise ValueError(f"engine is 'torch' or 'marey', not {engine!r}")
        self.output_dir = os.fspath(output_dir) if output_dir is not None else _DEFAULT_OUTPUT_DIR
        self.engine = engine
        if not cpu and not cuda:
            self._tell("cpu and cuda are both False: both are recorded")
            cpu = cuda = True
        if profile_memory and not (with_stack and record_shapes):
            self._tell("profile_memory=True needs with_stack and record_shapes: both are on")
            with_stack = record_shapes = True
        if with_flops and not record_shapes and engine == "torch" and not enable_nsight_systems:
            self._tell("with_flops=True records the shapes of inputs, so record_shapes=False has no effect")
        with_flops = record_shapes if with_flops is None else with_flops
        self.settings = {
            "cpu": cpu,
            "cuda": cuda,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "record_shapes": record_shapes,
            "with_flops": with_flops,
        }
        self.selection = _selection(
            export_memory_timeline and profile_memory, export_stacks and with_stack, export_key_averages
        )
        self.triggers: list[Trigger] = [as_trigger(given) for given in triggers]
        given = dict(zip(_DEFAULT_SCHEDULE, (wait_steps, warmup_steps, active_steps, num_cycles)))
        self.schedule = self._make_schedule(given, skip_first)
        self.is_nsight = enable_nsight_systems
        self.prof: Optional[Driver] = self._make_driver(nsight_systems_output_file)
        self._training: Optional[_Training] = None
        self._n_saved = 0
        _watch_trainers()

    def _tell(self, sentence: str) -> None:
        """Print a message once, not on every rank."""
        if who_am_i()[0] == 0:
            say(sentence)

    def _make_schedule(self, given: dict[str, Optional[int]], skip_first: int) -> Callable[[int], Action]:
        chosen = {**_DEFAULT_SCHEDULE, **{name: value for name, value in given.items() if value is not None}}
        self.wait_steps, self.warmup_steps = chosen["wait_steps"], chosen["warmup_steps"]
        self.active_steps, self.num_cycles = chosen["active_steps"], chosen["num_cycles"]
        schedule = Schedule(self.wait_steps, self.warmup_steps, self.active_steps, self.num_cycles, skip_first)
        if self.triggers and given["wait_steps"] is None and given["num_cycles"] is None:
            return never
        return schedule

    def _make_driver(self, nsight_file: Optional[Union[str, os.PathLike[str]]]) -> Optional[Driver]:
        """Create the driver of the schedule; None if nothing will be recorded, with a message."""
        try:
            os.makedirs(self.output_dir, exist_ok=True)
        except OSError as error:
            say(f"nothing is profiled: cannot make {self.output_dir}: {error.strerror}; give another output_dir")
            return None
        tool = _nsight.tool_here()
        if self.is_nsight and tool is None:
            file = nsight_file if nsight_file is not None else os.path.join(self.output_dir, "nsys_profile.nsys-rep")
            self._tell(
                "nothing is profiled: enable_nsight_systems is on, and Nsight Systems does not run this program; "
                f"run it as: {_nsight.command(os.fspath(file))}"
            )
            return None
        if self.is_nsight:
            self._tell(f"Nsight Systems runs this program ({tool}): it gets ranges, and no files are written here")
        elif tool is not None and self.settings["cuda"]:
            self._tell(f"another profiler has the GPU ({tool}), so GPU work is not recorded here")
            self.settings["cuda"] = False
        return Driver(self.schedule, self._make_engine(), self.output_dir, self.selection, self._on_saved)

    def _make_engine(self) -> Engine:
        if self.is_nsight:
            return _nsight.NsightEngine(record_shapes=self.settings["record_shapes"])
        if self.engine == "marey":
            from marey._engine_marey import MareyEngine

            engine: Engine = MareyEngine(self.output_dir, **self.settings)
            return engine
        from marey._engine_torch import TorchEngine

        return TorchEngine(**self.settings, with_snapshot="snapshot" in self.selection)

    def _on_saved(self, window: Window) -> None:
        self._n_saved += 1
        if self.is_nsight or (self._n_saved > _TOLD_WINDOWS and not window.is_partial):
            return
        ours = f"marey {(window.wait_ns - window.engine_ns) / 1e6:.1f} ms"
        cost = f"torch took {window.engine_ns / 1e6:.0f} ms for its end, {ours}" if self.engine == "torch" else ours
        notes = "".join(f", with {note}" for note in window.notes)
        reason = f" ({window.why})" if window.why else ""
        self._tell(
            f"{window.n_steps} step{'s' * (window.n_steps != 1)} from step {window.first_step} on{notes}{reason} "
            f"in {window.folder}: {cost}; tables and pages follow"
            + ("; further windows are saved in silence" if self._n_saved == _TOLD_WINDOWS else "")
        )

    # ---- hooks of the Trainer ----

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start at step 0."""
        self._finish("the training began anew")
        if self.prof is not None and _Training.may_begin():
            phases = _Phases(self) if find_self(Trainer, self._tells_phases) is not None else None
            if phases is not None:
                phases.on_train_begin(args, state, control, **kwargs)
            self._training = _Training(self, self.prof, kwargs.get("model"), kwargs.get("optimizer"), phases)

    def _tells_phases(self, trainer: Any) -> bool:
        """Whether to record phases, because no marey.hf.Callback does."""
        callbacks = trainer.callback_handler.callbacks
        return self in callbacks and not any(isinstance(callback, Callback) for callback in callbacks)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Note the addresses of parameters."""
        if self._training is not None and self._training.is_recording:
            self._training.note_parameters()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Note the addresses of gradients."""
        if self._training is not None and self._training.phases is not None:
            self._training.phases.on_pre_optimizer_step(args, state, control, **kwargs)
        if self._training is not None and self._training.is_recording:
            self._training.note_gradients()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Note the addresses of the optimizer's state."""
        if self._training is not None and self._training.is_recording:
            self._training.note_optimizer_state()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Advance to the next step."""
        if self._training is not None:
            self._training.step(state)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Exclude logging from steps."""
        if self._training is not None:
            self._training.note_between(None)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Note that there was an evaluation."""
        if self._training is not None:
            self._training.note_between("an evaluation")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Note that a checkpoint was saved."""
        if self._training is not None:
            self._training.note_between("a checkpoint")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop; an open window is saved."""
        self._finish(None)

    def _finish(self, why: Optional[str]) -> None:
        training, self._training = self._training, None
        if training is None:
            return
        n_steps, was_running = training.driver.step_num, training.driver.is_running
        training.end(why)
        if why is None and was_running and isinstance(self.schedule, Schedule) and n_steps < self.schedule.first:
            self._tell(
                f"nothing was recorded: the training had {n_steps} step{'s' * (n_steps != 1)}, and the first window "
                f"begins with step {self.schedule.first}; choose skip_first, wait_steps and warmup_steps below that"
            )


def _selection(memory: bool, stacks: bool, averages: bool) -> set[str]:
    """List the files made besides the trace, by their names in `marey artifacts`."""
    names = {"timeline", "snapshot"} if memory else set()
    if stacks:
        names.add("stacks")
    if averages:
        names.add("averages")
    return names


class _Phases(Callback):
    """The phases of a Trainer, recorded for ProfCallback."""

    def __init__(self, owner: ProfCallback) -> None:
        super().__init__()
        self._owner = owner

    def _is_called_by(self, trainer: Any) -> bool:
        return self._owner in trainer.callback_handler.callbacks


class _Training:
    """One training of one callback, from on_train_begin to its end or failure."""

    now: Optional[weakref.ref[_Training]] = None  # torch allows one profiler per process

    @classmethod
    def may_begin(cls) -> bool:
        """Whether no other callback profiles; prints a message otherwise."""
        other = cls.now() if cls.now is not None else None
        if other is not None:
            say("this ProfCallback is off, because another one profiles this training; keep one of them")
        return other is None

    def __init__(
        self, callback: ProfCallback, driver: Driver, model: Any, optimizer: Any, phases: Optional[_Phases]
    ) -> None:
        self.driver = driver
        self.phases = phases
        self.model = model
        self.optimizer = optimizer
        self.warmup, self.active = callback.warmup_steps, callback.active_steps
        self.notes_roles = callback.settings["profile_memory"] and callback.engine == "torch" and not callback.is_nsight
        self.triggers = Triggers(callback.triggers, say)
        self.began = time.perf_counter()  # start of the step
        self.noted: Optional[Window] = None  # the window whose parameters were noted
        self.roles: Optional[_roles.ModelRoles] = None  # of that window
        self.is_state_noted = False
        self.input_hook: Any = None
        type(self).now = weakref.ref(self)
        if isinstance(driver.engine, _nsight.NsightEngine):
            driver.engine.attach(model)
        driver.start()

    @property
    def is_recording(self) -> bool:
        return self.driver.window is not None

    def step(self, state: Any) -> None:
        """Called after an optimizer step."""
        if self.triggers:
            why = self.triggers.check(time.perf_counter() - self.began, state)
            if why is not None:
                self.driver.open(why, self.warmup, self.active)
            self.began = time.perf_counter()
        self.driver.step()
        if self.input_hook is not None and not self.is_recording:
            self._forget_inputs()

    def note_between(self, what: Optional[str]) -> None:
        """Called after work outside of steps."""
        self.began = time.perf_counter()
        window = self.driver.window
        if window is not None and what is not None and what not in window.notes:
            window.notes.append(what)

    # ---- roles of storages ----

    def note_parameters(self) -> None:
        """Once per window: parameters do not move."""
        window = self.driver.window
        if window is None or window is self.noted or not self.notes_roles or self.model is None:
            return
        self.noted = window
        self.roles = _roles.ModelRoles(self.model)
        self.is_state_noted = False
        window.roles.extend(self.roles.parameters())
        if self.input_hook is None:
            self.input_hook = self.model.register_forward_pre_hook(self._note_inputs, with_kwargs=True)

    def note_gradients(self) -> None:
        """In each step: gradients are reallocated."""
        window = self.driver.window
        if window is not None and window is self.noted and self.roles is not None:
            window.roles.extend(self.roles.gradients())

    def note_optimizer_state(self) -> None:
        """Once per window, after its first step, which may have created the state."""
        window = self.driver.window
        if window is None or window is not self.noted or self.roles is None or self.is_state_noted:
            return
        self.is_state_noted = True
        if self.optimizer is not None:
            window.roles.extend(self.roles.optimizer_state(self.optimizer))

    def _note_inputs(self, _: Any, args: Any, kwargs: Any) -> None:
        if self.driver.window is not None:
            self.driver.window.roles.extend(_roles.inputs(args, kwargs))

    def _forget_inputs(self) -> None:
        if self.input_hook is not None:
            self.input_hook.remove()
            self.input_hook = None

    # ---- the end ----

    def end(self, why: Optional[str]) -> None:
        """Stop everything and restore the Trainer."""
        type(self).now = None
        self.triggers.end()
        self._forget_inputs()
        if self.phases is not None:
            self.phases._end()
        self.driver.stop(why)


# ---- failed trainings ----


def _watch_trainers() -> None:
    """Make Trainer.train report exceptions to its ProfCallbacks, including Ctrl-C and sys.exit()."""
    train = Trainer.train
    if hasattr(train, "_marey_watches"):
        return

    @functools.wraps(train)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return train(self, *args, **kwargs)
        except BaseException as error:
            for callback in self.callback_handler.callbacks:
                if isinstance(callback, ProfCallback):
                    callback._finish(f"the training ended with {type(error).__name__}: {error}".rstrip(": "))
            raise

    watched._marey_watches = True  # type: ignore[attr-defined]
    Trainer.train = watched


@atexit.register
def _at_exit() -> None:
    """Finish trainings that another kind of trainer left open."""
    training = _Training.now() if _Training.now is not None else None
    if training is not None:
        training.end("the program ended")
