"""Start and end of a monitored run: rank, run name and output; the report at the end.

Ranks do not communicate. They derive a common name from the variables of their launcher. At the end each writes an
empty marker file, and rank 0 waits a few seconds at most for these files.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time

from marey import _native
from marey._phases import NAMES, phases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional, Union

    from marey._iteration import EpochTimes
    from marey._monitor import TrainingMonitor
    from marey.loggers import Batched

PATIENCE_S = 10.0  # waiting for other ranks at the end
_GPU = "measure_gpu_data"
_PARTS = {
    "compute_s": "compute_ns",
    "communication_s": "exposed_comm_ns",
    "memory_s": "exposed_mem_ns",
    "idle_s": "idle_ns",
}


# ---- at the beginning ----


def place() -> tuple[int, int]:
    """Find the rank and the world size; record them if only torch knows them."""
    from marey._training import tell_rank
    from marey._window import who_am_i

    rank, world_size = who_am_i()
    tell_rank(rank, world_size)
    return rank, world_size


def run_id(world_size: int) -> Optional[str]:
    """An id that ranks of this run share; None for a single process."""
    known = _native.run_id()
    if known is None and world_size > 1:
        # Processes that torch.multiprocessing spawned: they have the same parent, which outlives them.
        known = f"spawned-{os.getppid()}-{os.environ.get('MASTER_PORT', '')}"
    return known


def run_name(world_size: int) -> str:
    """Derive a run name, the same on all ranks."""
    known = run_id(world_size) if world_size > 1 else None
    if known is None:
        return f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    return "run-" + re.sub(r"[^A-Za-z0-9._-]", "_", known)


def options(monitor: TrainingMonitor) -> dict[str, Any]:
    """Return the options of the recording."""
    chosen: dict[str, Any] = {}
    if monitor.settings[_GPU]:
        chosen["energy"] = True
    known = run_id(monitor._world_size)
    if known is not None:
        chosen["run_id"] = known.replace(",", "_")[:63]
    return chosen


def open_loggers(monitor: TrainingMonitor) -> Optional[Batched]:
    """Open the loggers and log the settings of the run."""
    wanted = monitor.settings["loggers"]
    if not wanted:
        return None
    from marey.loggers import Batched, by_name

    made = by_name(
        wanted,
        monitor.folder,
        run_name=monitor.run_name,
        strategy=monitor.settings["strategy"],
        rank=monitor._rank,
        world_size=monitor._world_size,
    )
    log = Batched(made)
    params = {key: value for key, value in monitor.settings.items() if key != "loggers" and value is not None}
    log.log_params({**params, "run_name": monitor.run_name, "recording": monitor.recording})
    return log


def follow_optimizers(monitor: TrainingMonitor) -> Callable[[], None]:
    """Record steps of torch's optimizers as the phase "optimizer", and as iterations if the loop marks none.

    Call the returned function to undo this.
    """
    module = sys.modules.get("torch.optim.optimizer")
    before = getattr(module, "register_optimizer_step_pre_hook", None)
    after = getattr(module, "register_optimizer_step_post_hook", None)
    if before is None or after is None:
        return lambda: None
    entered: list[bool] = []

    def begins(*_: Any) -> None:
        entered.append(monitor._leads())
        if entered[-1]:
            phases.enter("optimizer")

    def ends(*_: Any) -> None:
        if entered and entered.pop():
            phases.leave()
        monitor.optimizer_stepped()

    handles = (before(begins), after(ends))

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove


def metrics(last: Union[EpochTimes, dict[str, Any]]) -> dict[str, float]:
    """Return the phases of an epoch as metrics, in seconds."""
    seconds = last["duration_ns"] / 1e9
    found = {"epoch_time_s": seconds}
    if last["samples"] > 0 and seconds > 0:
        found["samples_per_s"] = last["samples"] / seconds
    for name, ns in last["phases"].items():
        found[f"phase_{name}_s"] = ns / 1e9
    return found


# ---- at the end ----


def finish(monitor: TrainingMonitor, waits: bool) -> None:
    """Write the marker file; print the results on rank 0. Errors are only printed, because training is over."""
    from marey._window import say

    try:
        _log_traces(monitor)
        _log_epochs(monitor)
        if monitor._rank != 0:
            _mark(monitor)
            return
        missing = _wait(monitor, PATIENCE_S if waits else 0.0)
        monitor._computation = _break_down(monitor)
        text = report(monitor)
        if monitor._log is not None:
            _log_energy(monitor, monitor._log)
        if missing:
            text += f"ranks {', '.join(map(str, missing))} had not ended yet when this was read\n"
        if monitor.settings["print_summary"] and text:
            print(text, end="", flush=True)
    except (_native.MareyError, OSError) as error:
        say(f"the summary of {monitor.run_name} is not complete: {error}")
    if not monitor.settings["store_torch_profiling_traces"] and monitor._rank == 0:
        shutil.rmtree(monitor.trace_folder, ignore_errors=True)


def _mark_path(monitor: TrainingMonitor, rank: int) -> str:
    which = re.sub(r"[^A-Za-z0-9._-]", "_", run_id(monitor._world_size) or "")
    return os.path.join(monitor.folder, f".{which}.rank{rank}.ended")


def _mark(monitor: TrainingMonitor) -> None:
    os.makedirs(monitor.folder, exist_ok=True)
    with open(_mark_path(monitor, monitor._rank), "wb"):
        pass


def _wait(monitor: TrainingMonitor, patience_s: float) -> list[int]:
    """Wait for the marker files of other ranks, and remove them. Returns the missing ranks."""
    missing = list(range(1, monitor._world_size))
    deadline = time.monotonic() + patience_s
    while missing:
        for rank in tuple(missing):
            try:
                os.unlink(_mark_path(monitor, rank))
            except OSError:
                continue
            missing.remove(rank)
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02 if missing else 0)
    return missing


def _log_traces(monitor: TrainingMonitor) -> None:
    traces = monitor._traces
    if monitor._log is None or traces is None or not monitor.settings["store_torch_profiling_traces"]:
        return
    for path in traces.engine.paths:
        monitor._log.log_artifact(path, "torch-traces")


def _log_epochs(monitor: TrainingMonitor) -> None:
    """Log the epochs of this process that a trainer's callback recorded, if not logged yet."""
    log, recording = monitor._log, monitor.recording
    if log is None or recording is None or monitor._logs_epochs or not monitor.settings["measure_epoch_time"]:
        return
    from marey._recording import load

    for name in os.listdir(recording):
        if not name.endswith(".klog") or f"-{os.getpid()}-" not in name:
            continue
        try:
            rows: list[Any] = list(load(os.path.join(recording, name)).epochs("rank"))
        except _native.MareyError:
            continue  # no epochs
        for row in rows:
            times = {phase: row[f"{phase}_ns"] for phase in NAMES if row.get(f"{phase}_ns")}
            whole = {"duration_ns": row["duration_ns"], "samples": row["samples"] or 0.0, "phases": times}
            if row["note"] in ("", "first"):
                log.log_metrics(metrics(whole), step=row["epoch"])


def _log_energy(monitor: TrainingMonitor, log: Batched) -> None:
    """Log itwinai's two GPU metrics, and joules, for each epoch."""
    if not (monitor.settings[_GPU] and monitor.recording):
        return
    try:
        rows: list[Any] = list(monitor.load().energy("epoch"))
    except _native.MareyError:
        return
    for row in rows:
        if row["kind"] != "gpu":
            continue
        found = {}
        if row["joules"] is not None:
            found["energy_j"] = row["joules"]
        if row["mean_w"] is not None:
            found["gpu_power_W"] = row["mean_w"]
        if row["utilization"] is not None:
            found["gpu_utilization_percent"] = 100 * row["utilization"]
        if found:
            log.log_metrics(found, step=row["epoch"])


# ---- the report ----


def report(monitor: TrainingMonitor) -> str:
    """The summary of the run, one part per switch."""
    parts = [_epochs(monitor), monitor._computation, _energy(monitor), _files(monitor)]
    return "\n".join(part for part in parts if part)


def _epochs(monitor: TrainingMonitor) -> str:
    if not monitor.settings["measure_epoch_time"] or monitor.recording is None:
        return ""
    try:
        return monitor.load().epoch_report()
    except _native.MareyError:
        return "no epochs were marked: use `for epoch in monitor.epochs(n)` or monitor.set_epoch(number)\n"


def traces_of(monitor: TrainingMonitor, rank: Optional[int] = None) -> list[str]:
    """The traces of this run, of all ranks or of one, in order of time. MareyError without any."""
    pattern = re.compile(rf"worker_({'[0-9]+' if rank is None else rank})\.[0-9]+\.pt\.trace\.json")
    try:
        names = [name for name in os.listdir(monitor.trace_folder) if pattern.fullmatch(name)]
    except FileNotFoundError:
        names = []
    if not names:
        raise _native.MareyError("torch.profiler recorded no steps, so computation and communication are not known")
    return [os.path.join(monitor.trace_folder, name) for name in sorted(names)]


def _break_down(monitor: TrainingMonitor) -> str:
    """Return computation, communication and other time of each rank as text; also write them to a file."""
    if not monitor.settings["enable_torch_profiling"]:
        return ""
    from marey._breakdown import breakdown

    try:
        paths = traces_of(monitor)
        lines = [f"some steps of {monitor.run_name} by torch.profiler\n"]
        for rank in range(monitor._world_size):
            first, *_ = repr(breakdown(traces_of(monitor, rank))).partition("\n")
            lines.append(f"rank {rank}: {first}\n")
    except _native.MareyError as error:
        return f"{error}\n"
    _log_parts(monitor, paths)
    if monitor._traces is not None and monitor._traces.took_ns:
        lines.append(f"torch.profiler itself took {monitor._traces.took_ns / 1e9:.3g} s of the training on this rank\n")
    _write_breakdown(monitor, paths)
    return "".join(lines)


def _log_parts(monitor: TrainingMonitor, paths: list[str]) -> None:
    """Log the parts of a step in seconds, as means over steps and ranks; `marey scale` reads them from MLflow."""
    if monitor._log is None:
        return
    from marey._breakdown import breakdown

    steps: list[Any] = list(breakdown(paths, by="step", window="steps").by or ())
    sums = {name: [row[column] for row in steps] for name, column in _PARTS.items()}
    if steps and not any(None in values for values in sums.values()):
        log_metrics = {name: sum(values) / len(values) / 1e9 for name, values in sums.items()}
        monitor._log.log_metrics(log_metrics, step=0)


def _write_breakdown(monitor: TrainingMonitor, paths: list[str]) -> None:
    import subprocess

    from marey import _background

    into = os.path.join(monitor.folder, "breakdown.json")
    done = subprocess.run([_background.program(), "breakdown", "--json", "-o", into, *paths], check=False)
    if done.returncode == 0 and monitor._log is not None:
        monitor._log.log_artifact(into, "breakdown")


def _energy(monitor: TrainingMonitor) -> str:
    if not monitor.settings[_GPU] or monitor.recording is None:
        return ""
    try:
        rows: list[Any] = [row for row in monitor.load().energy("device") if row["kind"] == "gpu"]
    except _native.MareyError:
        return ""  # nothing can be measured here, as reported at the start
    lines = []
    for row in rows:
        if not row["used"]:
            continue
        joules = "energy not known" if row["joules"] is None else f"{row['joules']:.5g} J"
        busy = "" if row["utilization"] is None else f", utilization {row['utilization']:.1%}"
        lines.append(f"{row['name']} of {row['host']}: {joules}{busy}\n")
    return "".join(lines) if lines or not rows else "no GPU was used, so there is no energy to report\n"


def _files(monitor: TrainingMonitor) -> str:
    lines = [f"recording: {monitor.recording}\n"] if monitor.recording is not None else []
    if monitor.settings["store_torch_profiling_traces"]:
        lines.append(f"traces: {os.path.abspath(monitor.trace_folder)}\n")
    return "".join(lines)
