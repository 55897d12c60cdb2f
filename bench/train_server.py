#!/usr/bin/env python3
"""A process of bench_train.py that trains with one tool, on request.

    train_server.py TOOL FOLDER N_STEPS SCHEDULE TURNS

Each line on stdin, "off" or "on", starts a training of N_STEPS by transformers' Trainer without or with the tool. The
response is a line of JSON: wall time and CPU time of train() and of every step, and the tool's results. The tool "by
turns marey" is marey.hf.Callback in every other step of one training. SCHEDULE is wait,warmup,active,cycles of tools
that record windows. TURNS is "-", or, for two processes that alternate steps: who begins, and the descriptors of pipes
to read and to write.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.simplefilter("ignore")

import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile, schedule  # noqa: E402
from transformers import (  # noqa: E402
    GPT2Config,
    GPT2LMHeadModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

HAS_GPU = torch.cuda.is_available()
WORDS = 256
# A step takes about 20 ms on a CPU core, and 15 ms on a GPU; "tiny" is for large numbers of steps.
SIZES = {"usual": (4, 128, 8, 64), "gpu": (8, 512, 16, 128), "tiny": (1, 16, 2, 8)}
SAME = {"record_shapes": True, "profile_memory": False, "with_stack": False, "with_flops": False}
RSS_EVERY = 100


class Data(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Random tokens."""

    def __init__(self, n: int, length: int) -> None:
        """Generate them."""
        self.tokens = torch.randint(0, WORDS, (n, length))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"input_ids": self.tokens[i], "labels": self.tokens[i]}


class Turns:
    """Alternation of two processes: one trains a step while the other waits."""

    def __init__(self, text: str) -> None:
        """Join the alternation, or train without it."""
        self.is_alone = text == "-"
        self.is_first, self.read_fd, self.write_fd = (False, -1, -1) if self.is_alone else map(int, text.split(","))
        self.waited_ns = 0

    def give(self) -> None:
        """Resume the other process."""
        if not self.is_alone:
            os.write(self.write_fd, b"x")

    def take(self) -> None:
        """Wait for the turn."""
        if not self.is_alone:
            began = time.perf_counter_ns()
            if not os.read(self.read_fd, 1):
                raise EOFError("the other process has ended")
            self.waited_ns += time.perf_counter_ns() - began


class Timer(TrainerCallback):  # type: ignore[misc]
    """Times each step. It is the last callback, so a step includes what the others do at its end."""

    def __init__(self, turns: Turns) -> None:
        """Start without results."""
        self.turns = turns
        self.wall_ns: list[int] = []
        self.cpu_ns: list[int] = []
        self.rss_kb: list[int] = []
        self.began_wall = self.began_cpu = 0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Wait for the first turn."""
        if not self.turns.is_first:
            self.turns.take()
        self.begin()

    def on_step_end(self, _args: Any, state: Any, _control: Any, **__: Any) -> None:
        """Store the times of a step, and wait while the other process does its step."""
        self.end()
        if state.global_step % RSS_EVERY == 0:
            with open("/proc/self/statm", encoding="ascii") as statm:
                self.rss_kb.append(int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024)
        self.turns.give()
        if self.turns.is_first or state.global_step < state.max_steps:
            self.turns.take()
        self.begin()

    def begin(self) -> None:
        """Continue CPU time from the last step, because threads of a tool may work while the training waits."""
        self.began_wall = time.perf_counter_ns()
        self.began_cpu = self.began_cpu or time.process_time_ns()

    def end(self) -> None:
        """Read both clocks after synchronizing the GPU."""
        if HAS_GPU:
            torch.cuda.synchronize()
        now = time.process_time_ns()
        self.wall_ns.append(time.perf_counter_ns() - self.began_wall)
        self.cpu_ns.append(now - self.began_cpu)
        self.began_cpu = now


class ByTurns(TrainerCallback):  # type: ignore[misc]
    """Enables marey.hf.Callback in half of the steps, and times all: with, without, without, with, and so on.

    It comes after that callback. Its own time between two steps is not part of either.
    """

    def __init__(self, callback: Any) -> None:
        """Store that callback."""
        self.callback = callback
        self.trainer: Any = None
        self.with_ns: list[int] = []
        self.without_ns: list[int] = []
        self.began_ns = 0
        self.thread_ns = 0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Enable it for the first step."""
        self.trainer = self.callback._trainer
        self.began_ns = now_ns()

    def on_step_end(self, _args: Any, state: Any, _control: Any, **__: Any) -> None:
        """Store the times of a step, and enable or disable the callback for the next."""
        took_ns = now_ns() - self.began_ns
        (self.with_ns if self.callback._is_on else self.without_ns).append(took_ns)
        wanted = state.global_step % 4 in (0, 3)
        if wanted and not self.callback._is_on:
            self.callback._is_on = True
            self.callback._wrap(self.trainer)
        elif not wanted and self.callback._is_on:
            self.callback._patches.undo()
            self.callback._is_on = False
        if state.global_step == state.max_steps:
            self.callback._is_on = True  # so that it ends its recording
            self.thread_ns = thread_ns("marey-flush")
        self.began_ns = now_ns()

    def told(self) -> dict[str, Any]:
        """The results."""
        return {"with_ns": self.with_ns, "without_ns": self.without_ns, "thread_ns": self.thread_ns}


def thread_ns(name: str) -> int:
    """CPU time of a thread; the flush thread writes in any step."""
    for thread in Path("/proc/self/task").iterdir():
        if (thread / "comm").read_text() == f"{name}\n":
            return int((thread / "schedstat").read_text().split()[0])
    return 0


def now_ns() -> int:
    """Read the clock for steps, selected by bench_train.py."""
    if HAS_GPU:
        torch.cuda.synchronize()
        return time.perf_counter_ns()
    return time.process_time_ns()


def edges_of_a_recording(folder: Path) -> list[int]:
    """The time to start and end a recording; several times."""
    import marey

    took = []
    for i in range(5):
        began_ns = now_ns()
        marey.start(folder / f"edges-{i}.marey")
        took.append(now_ns() - began_ns)
        with marey.range("some work"):
            pass
        began_ns = now_ns()
        marey.stop()
        took[-1] += now_ns() - began_ns
    return took


class Always(TrainerCallback):  # type: ignore[misc]
    """torch.profiler, on for the whole training, with its result discarded."""

    def __init__(self) -> None:
        """Begin with the training."""
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if HAS_GPU else [])]
        self.profile = profile(activities=activities)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Begin."""
        self.profile.start()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Mark the step."""
        self.profile.step()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """End."""
        self.profile.stop()


class Windows(Always):
    """torch.profiler with a schedule, used directly; saves its traces if there is a folder."""

    def __init__(self, wanted: tuple[int, int, int, int], folder: Path | None) -> None:
        """Begin with the training."""
        wait, warmup, active, repeat = wanted

        def save(done: Any) -> None:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                done.export_chrome_trace(str(folder / f"{done.step_num}.pt.trace.json"))

        self.profile = profile(
            activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if HAS_GPU else [])],
            schedule=schedule(wait=wait, warmup=warmup, active=active, repeat=repeat),
            on_trace_ready=save,
            **SAME,
        )


def make_tool(tool: str, folder: Path, wanted: tuple[int, int, int, int]) -> list[Any]:
    if tool.endswith("none"):
        return []
    if tool == "always torch":
        return [Always()]
    if tool.endswith("torch.profiler"):
        return [Windows(wanted, folder if "saved" in tool else None)]
    from marey import hf

    if tool.endswith("always marey"):
        return [hf.Callback(folder / "always.marey")]
    if tool.endswith("by turns marey"):
        callback = hf.Callback(folder / "always.marey")
        return [callback, ByTurns(callback)]
    wait, warmup, active, cycles = wanted
    return [
        hf.ProfCallback(
            **SAME,
            cuda=HAS_GPU,
            wait_steps=wait,
            warmup_steps=warmup,
            active_steps=active,
            num_cycles=cycles,
            output_dir=folder,
            export_memory_timeline=False,
            export_stacks=False,
            engine=tool.split()[-1],  # type: ignore[arg-type]
        )
    ]


def train(tools: list[Any], tool: str, n_steps: int, folder: Path, turns: Turns) -> dict[str, Any]:
    size = "tiny" if tool.startswith("tiny") else "gpu" if HAS_GPU else "usual"
    layers, width, batch, length = SIZES[size]
    set_seed(1)
    sizes = GPT2Config(
        n_layer=layers, n_embd=width, n_head=4, vocab_size=WORDS, n_positions=length, bos_token_id=0, eos_token_id=0
    )
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        max_steps=n_steps,
        per_device_train_batch_size=batch,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=not HAS_GPU,
    )
    timer = Timer(turns)
    turns.waited_ns = 0
    data = Data(256, length)
    trainer = Trainer(GPT2LMHeadModel(sizes), arguments, train_dataset=data, callbacks=[*tools, timer])
    trainer.remove_callback(PrinterCallback)
    wall_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    trainer.train()
    wall_ns, cpu_ns = time.perf_counter_ns() - wall_ns - turns.waited_ns, time.process_time_ns() - cpu_ns
    took = {"wall_ns": wall_ns, "cpu_ns": cpu_ns, "wall_steps": timer.wall_ns, "cpu_steps": timer.cpu_ns}
    return {**took, "rss_kb": timer.rss_kb}


def told(tools: list[Any]) -> list[dict[str, int]]:
    """The waits of the training for each window in nanoseconds: at its end, the profiler's part of that, before it."""
    drivers = [tool.prof for tool in tools if getattr(tool, "prof", None) is not None]
    keys = ("wait_ns", "engine_ns", "prepare_ns", "begin_ns")
    return [{key: getattr(window, key) for key in keys} for driver in drivers for window in driver.windows]


def main() -> None:
    tool, folder, n_steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    wait, warmup, active, cycles = (int(number) for number in sys.argv[4].split(","))
    turns = Turns(sys.argv[5])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if not HAS_GPU:
        torch.set_num_threads(1)  # the other cores are for threads of tools
    for i, line in enumerate(sys.stdin):
        here = folder / f"{tool.replace(' ', '_')}-{i}"
        tools = make_tool(tool, here, (wait, warmup, active, cycles)) if line.strip() == "on" else []
        answer = {**train(tools, tool, n_steps, here, turns), "windows": told(tools), "folder": str(here)}
        if tools and isinstance(tools[-1], ByTurns):
            answer.update(tools[-1].told(), edges_ns=edges_of_a_recording(here))
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
