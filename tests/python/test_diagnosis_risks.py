"""Risks: clocks of GPUs that are reduced, memory near its limit; and the command that checks a fix."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BUILD = Path(os.environ["MAREY_BUILD"])
MAREY = BUILD / "cli" / "marey"


def diagnose(folder: Path, source: str, *words: object, before: tuple[str, ...] = (), **env: str) -> dict[str, Any]:
    """Run a program; return its diagnosis, with rules that are experimental."""
    (folder / "train.py").write_text(source)
    command = [*before, str(MAREY), "run", "-o", "x.marey", sys.executable, "train.py", *map(str, words)]
    subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True, timeout=300, check=True)
    return report(folder)


def report(folder: Path, recording: str = "x.marey") -> dict[str, Any]:
    command = [MAREY, "report", recording, "--diagnosis", "--experimental", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    return json.loads(done)


def found(diagnosis: dict[str, Any], rule: str) -> dict[str, Any] | None:
    return next((finding for finding in diagnosis["findings"] if finding["id"] == rule), None)


# ---- throttled ----

STEPS = """
import pathlib, time, marey
log, end = pathlib.Path("calls"), time.monotonic() + 90
while time.monotonic() < end and (not log.exists() or log.read_text().count(" Throttle 0") < 9):
    with marey.step():
        time.sleep(0.1)
"""
HEAT, POWER = 0x40, 0x4


def throttled(folder: Path, *lines: str) -> dict[str, Any] | None:
    """The finding, with a fake NVML that has a script."""
    (folder / "nvml.txt").write_text("\n".join([*lines, f"log {folder}/calls"]))
    nvml = str(BUILD / "tests" / "standin" / "nvml_standin.so")
    diagnosis = diagnose(
        folder, STEPS, MAREY_OPTIONS="energy=1", MAREY_NVML_LIBRARY=nvml,
        MAREY_STANDIN_NVML=str(folder / "nvml.txt"), MAREY_POWERCAP_ROOT=str(folder / "none"),
    )  # fmt: skip
    return found(diagnosis, "throttled")


def test_a_hot_gpu_is_found_with_its_share(tmp_path):
    finding = throttled(tmp_path, "gpus 2", f"throttle 0 {POWER} 1980 1 1", f"throttle 1 {HEAT} 1200 4 3")
    assert finding is not None
    assert (finding["kind"], finding["severity"], finding["experimental"]) == ("risk", "high", True)
    assert 0.5 < finding["share"] < 0.95  # of some eight readings, three of four
    claim = finding["claim"]
    assert "the clocks of GPU 1 (" in claim and "GPU 0" not in claim
    assert "to 1200 MHz on average (highest reading: 1980 MHz)" in claim and "heat (hardware slowdown)" in claim


def test_a_gpu_that_is_hot_from_the_beginning(tmp_path):
    """Its full clock was not seen."""
    finding = throttled(tmp_path, f"throttle 0 {0x20} 1900 1 1")
    assert finding is not None
    assert (finding["share"], finding["severity"]) == (1, "medium")
    assert "to 1900 MHz" in finding["claim"] and "heat (software slowdown)" in finding["claim"]


@pytest.mark.parametrize("script", ["busy 50", f"throttle 0 {POWER} 1980 1 1", f"throttle 0 {POWER} 1850 2 1"])
def test_a_power_cap_without_a_drop_of_clocks_is_normal(tmp_path, script):
    """Nor is a drop by less than a tenth: a GPU at its power limit does what it can."""
    assert throttled(tmp_path, script) is None


def test_a_power_cap_that_lowers_clocks(tmp_path):
    finding = throttled(tmp_path, f"throttle 0 {POWER} 1400 4 3")
    assert finding is not None and "the power cap" in finding["claim"]


# ---- memory-near-limit ----

FILL = """
import sys, time, marey

def step(kept):
    with marey.step():
        with marey.phase("evaluate"):
            kept.append(b"x" * int(sys.argv[1]))
            time.sleep(1 if len(kept) == 12 else 0.1)

kept = []
for _ in range(12):
    step(kept)
"""
MB = 1_000_000


@contextlib.contextmanager
def cgroup(n_bytes: int) -> Iterator[Path]:
    """A cgroup of version 1 or 2 without a limit, in one that has it; skips the test without the right to make it."""
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    v1 = next((path for _, kinds, path in own if kinds == "memory"), None)
    v2 = next((path for number, _, path in own if number == "0"), "/")
    root = Path("/sys/fs/cgroup/memory" + v1 if v1 is not None else "/sys/fs/cgroup" + v2)
    outer = root / f"marey-test-{os.getpid()}"
    inner = outer / "inner"
    try:
        outer.mkdir()
    except OSError as error:
        pytest.skip(f"cgroups cannot be made here: {error}")
    try:
        try:
            if v1 is None:
                (outer / "cgroup.subtree_control").write_text("+memory")
            (outer / ("memory.max" if v1 is None else "memory.limit_in_bytes")).write_text(str(n_bytes))
            inner.mkdir()
        except OSError as error:
            pytest.skip(f"cgroups of memory cannot be made here: {error}")
        yield inner
    finally:
        if inner.exists():
            inner.rmdir()
        outer.rmdir()


def test_memory_near_the_limit_of_a_cgroup(tmp_path):
    with cgroup(800 * MB) as group:
        join = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
        diagnosis = diagnose(tmp_path, FILL, 64 * MB, before=join)  # 768 MB and Python; marey needs some, too
    finding = found(diagnosis, "memory-near-limit")
    assert finding is not None, diagnosis
    assert (finding["kind"], finding["gain"], finding["phase"]) == ("risk", None, "evaluation")
    assert "of the cgroup's" in finding["claim"] and "(in step 1" in finding["claim"]


FORKS = """
import os, time, marey

kept = [b"x" * 1_000_000 for _ in range(200)]
children = []
for _ in range(3):
    children.append(os.fork())
    if children[-1] == 0:
        time.sleep(3)
        os._exit(0)
for _ in range(15):
    with marey.step():
        time.sleep(0.1)
for child in children:
    os.waitpid(child, 0)
"""


def test_pages_that_forked_processes_share_count_once(tmp_path):
    with cgroup(400 * MB) as group:  # resident, the processes have 800 MB
        join = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
        diagnosis = diagnose(tmp_path, FORKS, before=join)
    assert found(diagnosis, "memory-near-limit") is None


def fake_group(folder: Path, limit: int, anonymous: int) -> str:
    """What a cgroup's folder has, without the right to make one."""
    root = folder / "cgroup"
    root.mkdir()
    (root / "memory.max").write_text(f"{limit}\n")
    (root / "memory.stat").write_text(f"anon {anonymous}\nfile 7000000000\nshmem 1000000\nfile_mapped 5\n")
    return str(root)


def test_the_limit_and_the_step_of_the_peak(tmp_path):
    root = fake_group(tmp_path, 300 * MB, 10**12)
    finding = found(diagnose(tmp_path, FILL, 25 * MB, MAREY_CGROUP_ROOT=root), "memory-near-limit")
    assert finding is not None
    assert "% of the cgroup's 300 MB (in step 12, phase evaluation)" in finding["claim"]
    assert finding["severity"] == "high"


def test_memory_that_the_cgroup_does_not_count_is_not_used(tmp_path):
    """Pages of files, and pages that forked processes share: the kernel's count is lower."""
    root = fake_group(tmp_path, 300 * MB, 200 * MB)
    assert found(diagnose(tmp_path, FILL, 25 * MB, MAREY_CGROUP_ROOT=root), "memory-near-limit") is None


def test_memory_far_from_the_limit(tmp_path):
    diagnosis = diagnose(tmp_path, FILL, 1 * MB)
    assert found(diagnosis, "memory-near-limit") is None


ALLOCATOR = """
import json, sys, time, marey
from marey import _native

marks = json.loads(sys.argv[1])
for reserved, retries in marks:
    for _ in range(4):
        with marey.step():
            time.sleep(0.02)
    _native.mark("cuda.allocator", json.dumps({
        "device": 0, "allocated": 1, "reserved": reserved, "retries": retries, "ooms": 0, "total": 80_000_000_000,
    }, separators=(",", ":")))
"""


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([(10, 3), (20, 3), (30, 3)], None),  # retries before the steps
        ([(10, 0), (78_000_000_000, 0), (20, 0)], "reserves 98 % of the 80.0 GB of GPU 0 (in step 9)"),
        ([(10, 1), (20, 1), (30, 3), (40, 8), (50, 8)], "refused memory 7 times in steps, the last time in step 17,"),
    ],
)
def test_gpu_memory_near_its_limit(tmp_path, marks, expected):
    finding = found(diagnose(tmp_path, ALLOCATOR, json.dumps(marks)), "memory-near-limit")
    assert (finding and expected and expected in finding["claim"]) if expected else finding is None, finding


# ---- verify ----

HOT = """
import sys, time

def score(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

assert sys.argv[1:] in ([], ["it's $HOME; a b"], ["a\\nb"])
end = time.monotonic() + 1.5
while time.monotonic() < end:
    score(20_000)
"""


@pytest.mark.parametrize("words", [[], ["it's $HOME; a b"], ["a\nb"]])
def test_the_command_that_checks_a_fix(tmp_path, words):
    finding = found(diagnose(tmp_path, HOT, *words), "hot-function")
    assert finding is not None
    verify = finding["verify"]
    assert verify.startswith("marey run -o x-fixed.marey ") and verify.endswith(
        " && marey compare x.marey x-fixed.marey"
    )
    if words != ["a\nb"]:  # shlex does not know $'...'
        assert shlex.split(verify)[4:-5] == [sys.executable, "train.py", *words]
    path = os.pathsep.join([str(MAREY.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", verify], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "finding: hot-function: remains" in done.stdout, done.stderr


def test_a_command_with_a_path_that_a_shell_would_split(tmp_path):
    diagnose(tmp_path, HOT)
    (tmp_path / "my runs").mkdir()
    (tmp_path / "x.marey").rename(tmp_path / "my runs" / "y")
    words = shlex.split(report(tmp_path, "my runs/y")["findings"][0]["verify"])
    assert words[:4] == ["marey", "run", "-o", "my runs/y-fixed.marey"]
    assert words[-4:] == ["marey", "compare", "my runs/y", "my runs/y-fixed.marey"]


def test_no_command_where_each_rank_had_its_own(tmp_path):
    (tmp_path / "train.py").write_text(HOT)
    command = [MAREY, "run", "-o", "x.marey", sys.executable, "train.py"]
    ranks = [
        subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
        for rank in range(2)
    ]
    assert [rank.wait(60) for rank in ranks] == [0, 0]
    assert {finding["verify"] for finding in report(tmp_path)["findings"]} <= {None}
