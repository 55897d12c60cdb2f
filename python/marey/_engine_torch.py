"""The engine that uses torch.profiler, through its lower-level class, because the driver has the schedule.

A window ends in two phases. torch stops and writes its trace as plain JSON; the time for this is reported separately.
Then a background process runs `marey artifacts`, which compresses the trace and makes tables, stacks and the memory
timeline.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import time

import torch
import torch.autograd.profiler
import torch.profiler

from marey import _background, _native, _phases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from marey._window import Window

# Each entry has a Python stack of some kilobytes; without a limit, a long window would fill the host's memory.
_HISTORY_ENTRIES = 200_000
_PICKLE_PROTOCOL = 4  # the newest that the snapshot viewer reads


class TorchEngine:
    """Records with torch.profiler. One object serves any number of windows, one at a time."""

    def __init__(
        self,
        cpu: bool = True,
        cuda: bool = True,
        profile_memory: bool = False,
        with_stack: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        with_snapshot: bool = False,
    ) -> None:
        """Configure with torch's parameters; `with_snapshot`: record the allocator's history if CUDA is available."""
        wanted = {torch.profiler.ProfilerActivity.CPU} if cpu else set()
        if cuda:
            wanted.add(torch.profiler.ProfilerActivity.CUDA)
        # Without CUDA, cuda only would record nothing.
        activities = wanted & torch.profiler.supported_activities() or {torch.profiler.ProfilerActivity.CPU}
        self.settings: dict[str, Any] = {
            "activities": activities,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "record_shapes": record_shapes,
            "with_flops": with_flops,
        }
        if with_stack:
            # Without this, operators have no stacks in the trace.
            self.settings["experimental_config"] = torch.profiler._ExperimentalConfig(verbose=True)
        self.with_snapshot = with_snapshot
        self._profile: Optional[torch.profiler._KinetoProfile] = None
        self._state = ""  # "prepared", then "started"; otherwise there is nothing to stop
        self._has_history = False
        self._snapshot: Optional[dict[str, Any]] = None
        self._step: Optional[torch.profiler.record_function] = None

    # ---- called by the driver ----

    def prepare(self) -> None:
        """Prepare torch's profiler, and the background process."""
        if torch.autograd._profiler_enabled():
            raise _native.StateError("another profiler of torch is on, and torch has room for one; end that one first")
        _background.ready()
        self._profile = torch.profiler._KinetoProfile(**self.settings)
        self._profile.prepare_trace()
        self._state = "prepared"

    def start(self) -> None:
        """Start recording, with the phases of training as annotations."""
        assert self._profile is not None
        if self.with_snapshot and torch.cuda.is_available():
            torch.cuda.memory._record_memory_history("all", stacks="python", max_entries=_HISTORY_ENTRIES)
            self._has_history = True
        self._profile.start_trace()
        self._state = "started"
        _phases.annotate(torch.profiler.record_function)

    def step_begin(self, step: int) -> None:
        """Begin the annotation of a step, with torch's name."""
        self._step = torch.profiler.record_function(f"ProfilerStep#{step}")
        self._step.__enter__()

    def step_end(self) -> None:
        """End it."""
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def stop(self, window: Window) -> None:
        """Stop torch's profiler, which converts its data to a trace in memory."""
        assert self._profile is not None
        _phases.annotate(None)
        self._profile.add_metadata_json("marey", window.about())  # torch accepts it only before it stops
        began_ns = time.perf_counter_ns()
        self._state = ""
        self._profile.stop_trace()
        self._end_history(is_wanted=True)
        window.engine_ns += time.perf_counter_ns() - began_ns

    def save(self, window: Window) -> None:
        """Write the trace and queue the commands that process it."""
        assert self._profile is not None
        profile, self._profile = self._profile, None
        window.make_folder()
        trace = os.path.join(window.folder, window.trace_name())
        began_ns = time.perf_counter_ns()
        profile.export_chrome_trace(trace)
        del profile  # freeing its data takes time, too
        selection = ["trace", *sorted(window.selection)]
        if self._snapshot is not None and "snapshot" in selection:
            selection.remove("snapshot")
            _write_snapshot(self._snapshot, os.path.join(window.folder, f"rank{window.rank}_memory_snapshot.pickle"))
        self._snapshot = None
        window.engine_ns += time.perf_counter_ns() - began_ns
        if not os.path.exists(trace):
            raise _not_written(trace)
        options = ["--rank", str(window.rank), "--only", ",".join(selection), "--move"]
        _background.run(["artifacts", trace, "-o", window.folder, *options])

    def discard(self) -> None:
        """Discard the recorded data, in any state."""
        _phases.annotate(None)
        profile, self._profile = self._profile, None
        state, self._state = self._state, ""
        self._step = None
        self._snapshot = None
        self._end_history(is_wanted=False)
        if profile is not None and state == "prepared":
            profile.start_trace()  # torch can only be reset this way
        if profile is not None and state:
            profile.stop_trace()

    def _end_history(self, is_wanted: bool) -> None:
        if not self._has_history:
            return
        self._has_history = False
        if is_wanted:
            self._snapshot = torch.cuda.memory._snapshot()
        torch.cuda.memory._record_memory_history(None)


# ---- output ----


def _not_written(trace: str) -> OSError:
    """Remove the incomplete file, and return an error with the free disk space."""
    with contextlib.suppress(OSError):
        os.remove(trace + ".tmp")
    room = os.statvfs(os.path.dirname(trace))
    free_mb = room.f_bavail * room.f_frsize / 1e6
    return OSError(f"torch could not write {trace}, with {free_mb:.0f} MB free there; free some space, or record less")


def _write_snapshot(snapshot: dict[str, Any], path: str) -> None:
    with open(path + ".tmp", "wb") as file:
        pickle.dump(snapshot, file, protocol=_PICKLE_PROTOCOL)
    os.replace(path + ".tmp", path)
