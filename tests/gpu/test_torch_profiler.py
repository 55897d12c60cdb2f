"""With a real GPU: torch.profiler inside a recording with GPU tracing; neither spoils the other.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_torch_profiler.py

Each case is a process of its own, since torch takes CUPTI once in a process. Launches are known: so many additions
before, during and behind each profile. torch's trace must have the kernels of its profiles, marey's the rest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch

BEFORE, DURING, BEHIND, PROFILES = 5, 7, 11, 2

# What each part launches: one kernel of a name that says where.
PROGRAM = """
import json, sys, time
import torch
import marey

path, way, order = sys.argv[1:4]
x = torch.ones(1 << 16, device="cuda")
torch.cuda.synchronize()
BEFORE, DURING, BEHIND, PROFILES = map(int, sys.argv[4:8])

def work(n):
    for _ in range(n):
        torch.add(x, 1.0, out=x)
    torch.cuda.synchronize()

def kernels(profile):
    return sum(e.device_type == torch.autograd.DeviceType.CUDA and "elementwise" in e.name for e in profile.events())

def profiled():
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as p:
        work(DURING)
    return kernels(p)

answer = {"torch": []}
if order == "after":  # torch.profiler was there first
    answer["torch"].append(profiled())
refused = ""
if way == "run":
    pass
elif way == "start":
    marey.start(path, gpu=True)
else:
    marey.start(path)
    try:
        marey.gpu.start()
    except marey.MareyError as error:
        refused = str(error)
work(BEFORE)
for _ in range(PROFILES):
    answer["torch"].append(profiled())
    for _ in range(50):  # torch gives CUPTI back with one of the next calls
        work(0)
        time.sleep(0.01)
    if order == "teardown":
        time.sleep(2)
    work(BEHIND)
torch.cuda.synchronize()
answer["refused"] = refused
answer["is_on"] = marey.gpu.is_on()
if way != "run":
    marey.stop()
answer["sum"] = float(x[0])
answer["counts"] = marey.gpu.counts()
print(json.dumps(answer))
"""


def run(folder: Path, way: str, order: str, **environment: str) -> tuple[dict[str, Any], Path, str]:
    """Run a process; return its stdout, its recording, and its stderr."""
    path = folder / f"{way}-{order}.marey"
    script = folder / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), str(path), way, order, *map(str, (BEFORE, DURING, BEHIND, PROFILES))]
    if way == "run":
        command = [sys.executable, "-m", "marey", "run", "-q", "--gpu", "-o", str(path), "--", *command]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        check(f"{way}, {order}: the program ends well", False)
        return {}, path, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), path, done.stderr


def elementwise(path: Path) -> int:
    """Kernels of torch.add in the recording."""
    import marey

    table = marey.load(path).kernels
    return int(sum(n for name, n in zip(table["name"], table["count"]) if "elementwise" in name))


def check_case(folder: Path, way: str, order: str, expected: int, **environment: str) -> None:
    answer, path, said = run(folder, way, order, **environment)
    if not answer:
        return
    title = f"{way}, {order}"
    check(f"{title}: torch's profiles have {answer['torch']} kernels each", set(answer["torch"]) == {DURING})
    found = elementwise(path)
    check(f"{title}: the recording has {found} kernels of {expected}", found == expected)
    sentences = [line for line in said.splitlines() if line.startswith("marey: ")]
    check(f"{title}: one sentence: {sentences}", len(sentences) == 1)
    rounds = PROFILES + (order == "after")
    check(f"{title}: the work itself is right", answer["sum"] == 1 + BEFORE + rounds * DURING + PROFILES * BEHIND)


def main() -> int:
    torch = import_torch()
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for way in ("start", "by_hand", "run"):
            before = BEFORE + (way == "run")  # which traces from the start on, and has the kernel that makes x
            # torch keeps CUPTI: what comes behind the first profile is not there, and that is said.
            check_case(folder, way, "keeps", before)
            check_case(folder, way, "teardown", before + PROFILES * BEHIND, TEARDOWN_CUPTI="1")
        answer, _, said = run(folder, "start", "after")
        check(f"torch was first: its profiles have {answer.get('torch')}", set(answer.get("torch", [])) == {DURING})
        check("torch was first: one sentence", len([s for s in said.splitlines() if s.startswith("marey: ")]) == 1)
    print("all holds" if not FAILURES else f"{len(FAILURES)} do not hold")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
