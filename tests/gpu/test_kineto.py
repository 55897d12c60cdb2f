"""With a real GPU: a training loop under torch.profiler, its trace broken down, against torch's own events.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_kineto.py

The loop has kernels on two streams that run at the same time, copies from pinned memory, and steps. What marey says of
the exported file is held against the same numbers computed from the events that the profiler itself has in memory.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch, skip


def agree(what: str, ours: float, theirs: float, tolerance: float) -> None:
    near = abs(ours - theirs) <= tolerance * max(abs(ours), abs(theirs))
    check(f"{what}: {ours:.0f} ns, torch's events say {theirs:.0f} ns", near)


# ---- a training loop ----


def profile(torch: Any, folder: Path) -> tuple[Any, Path]:
    """Train for eight steps; the profiler sees four of them."""
    from torch.profiler import ProfilerActivity, schedule

    model = torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 64)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(512, 2048).pin_memory()
    beside = torch.randn(2048, 2048, device="cuda")
    side = torch.cuda.Stream()
    trace = folder / "trace.json"
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with torch.profiler.profile(
        activities=activities, schedule=schedule(wait=1, warmup=2, active=4, repeat=1)
    ) as profiler:
        for _ in range(8):
            with torch.profiler.record_function("load"):
                inputs = batch.to("cuda", non_blocking=True)
            with torch.cuda.stream(side):
                for _ in range(3):
                    beside = beside @ beside / 2048
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if float(loss) != float(loss):
                skip("the loss is not a number")
            torch.cuda.synchronize()
            profiler.step()
    profiler.export_chrome_trace(str(trace))
    return profiler, trace


# ---- the same, from the profiler's events ----


def device_events(torch: Any, profiler: Any) -> list[tuple[str, int, int]]:
    """Name, begin and end in nanoseconds of what ran on the GPU, as the profiler has it in memory."""
    cuda = torch._C._autograd.DeviceType.CUDA
    found = []
    for event in profiler.profiler.kineto_results.events():
        if event.device_type() != cuda or event.name().startswith("ProfilerStep"):
            continue
        if event.is_user_annotation():
            continue
        begin = event.start_ns()
        found.append((event.name(), begin, begin + event.duration_ns()))
    return found


def union(intervals: list[tuple[int, int]]) -> int:
    total, until = 0, 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def is_copy(name: str) -> bool:
    return name.startswith(("Memcpy", "Memset"))


# ---- what must hold ----


def run_marey(*args: object) -> str:
    command = [sys.executable, "-m", "marey", "breakdown", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def check_identity(answer: dict[str, Any]) -> None:
    for row in [*answer["devices"], *answer.get("by", [])]:
        parts = row["compute"] + row["exposed_comm"] + row["exposed_mem"] + row["idle"]
        check(f"the parts of {row['window']} add up to {row['span']} ns", parts == row["span"])


def check_unions(answer: dict[str, Any], events: list[tuple[str, int, int]]) -> None:
    """The file has microseconds with three decimals, so the numbers are the same."""
    row = next(row for row in answer["devices"] if row["window"] == "gpu_span")
    kernels = [(begin, end) for name, begin, end in events if not is_copy(name)]
    copies = [(begin, end) for name, begin, end in events if is_copy(name)]
    check(f"{len(events)} pieces of work, marey has {row['n_work']}", len(events) == row["n_work"])
    agree("compute", row["compute"], union(kernels), 1e-4)
    agree("copies", row["mem_total"], union(copies), 1e-4)
    agree("busy", row["busy"], union(kernels + copies), 1e-4)
    agree("sum of durations", row["sum_of_durations"], sum(end - begin for _, begin, end in events), 1e-4)
    check(f"two streams ran at once: concurrency {row['concurrency']:.3f}", row["concurrency"] > 1)


def check_steps(answer: dict[str, Any]) -> None:
    steps = answer["by"]
    check(f"steps {[row['step'] for row in steps]}", len(steps) == 4)
    whole = next(row for row in answer["devices"] if row["window"] == "steps")
    work = sum(row["n_work"] for row in steps)
    check(f"all work is in a step: {work} of {whole['n_work']}", work == whole["n_work"])


def check_averages(profiler: Any, trace: Path) -> None:
    """What itwinai saves of key_averages(): device time by name, here from the exported file, there from torch."""
    file = trace.with_suffix(".csv")
    run_marey(trace, "--legacy", "--write-averages", file)
    ours: Counter[str] = Counter()
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            ours[row["name"]] += float(row["self_cuda_time_total"])
    theirs: Counter[str] = Counter()
    for average in profiler.key_averages():
        theirs[average.key] += average.self_device_time_total
    for name, microseconds in theirs.most_common(20):
        agree(f"self time of {name[:60]}", 1000 * ours[name], 1000 * microseconds, 0.01)


def main() -> int:
    torch = import_torch()
    with tempfile.TemporaryDirectory() as name:
        profiler, trace = profile(torch, Path(name))
        answer = json.loads(run_marey(trace, "--json", "--by", "step"))
        print(run_marey(trace, "--by", "stream"))
        check_identity(answer)
        check_unions(answer, device_events(torch, profiler))
        check_steps(answer)
        check_averages(profiler, trace)
    print("all holds" if not FAILURES else f"{len(FAILURES)} did not hold")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
