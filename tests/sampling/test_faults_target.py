"""Events of a sampled target: it ends, executes another program, forks, stops, is killed, changes its code."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from call_grammar import Frame
from long_run import IS_LONG
from sampled_stacks import functions_on
from watching import NEWEST, PYTHONS, Marey, Target, functions_in, running, tracers, wait_until


def test_a_target_that_ends_ends_the_sampling(marey: Marey) -> None:
    recording = marey.new_recording()
    with running("execs", 0, 0.5) as target:
        marey.run("attach", target.pid, "-q", "-o", recording)
        assert target.process.wait() == 0
    assert "stage_0" in functions_in(marey.stacks(recording))


def test_a_target_that_becomes_another_program_is_followed(marey: Marey) -> None:
    recording = marey.new_recording()
    with running("execs", 2, 0.4) as target:
        marey.run("attach", target.pid, "-q", "-o", recording)
        assert target.process.wait() == 0
    assert {"stage_2", "stage_1", "stage_0"} <= functions_in(marey.stacks(recording))


def test_short_children_are_seen(marey: Marey) -> None:
    with running("children", 0.05) as target:
        recording = marey.attach(target.pid, seconds=1)
        born = {int(line[0]) for line in target.said("child")}
    seen = {row["pid"] for row in marey.report(recording, "--idle")["processes"]}
    assert target.pid in seen
    assert len(born & seen) >= 3
    assert "child_work" in functions_in(marey.stacks(recording))


def test_a_launcher_is_looked_through(marey: Marey) -> None:
    recording = marey.new_recording()
    script = Path(__file__).parent / "targets" / "execs.py"
    line = f"true; {shlex.join([PYTHONS[NEWEST], str(script)])} 1 0 0.4; true"
    marey.run("run", "-q", "--sample=100", "-o", recording, "--", "sh", "-c", line)
    assert "stage_0" in functions_in(marey.stacks(recording))


def test_a_stopped_target_is_read_and_stays_stopped(marey: Marey) -> None:
    with running("flat") as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: target.state() == "T", "it does not stop")
        assert any(
            frame["function"] == "main" for group in marey.now(target.pid)["groups"] for frame in group["frames"]
        )
        recording = marey.attach(target.pid, "--exact", seconds=0.3)
        assert sum(marey.stacks(recording).values()) > 0
        assert target.state() == "T"
        os.kill(target.pid, signal.SIGCONT)
        target.wait_for_more("tick")


def test_a_target_that_stops_and_goes_on_does_so(marey: Marey) -> None:
    with running("flat") as target:
        sampler = marey.start("attach", target.pid, "-q", "-o", marey.new_recording(), "--exact", "--rate", 1000)
        wait_until(lambda: bool(tracers(target.pid)) or sampler.poll() is not None, "nothing is sampled")
        for _ in range(5):
            os.kill(target.pid, signal.SIGSTOP)
            wait_until(lambda: target.state() in "Tt", "it does not stop")
            time.sleep(0.02)
            assert target.state() in "Tt"
            os.kill(target.pid, signal.SIGCONT)
            target.wait_for_more("tick", 1)
        sampler.send_signal(signal.SIGINT)
        assert sampler.wait(60) == 0, sampler.communicate()
        target.wait_for_more("tick")


def test_signals_of_the_target_arrive(marey: Marey) -> None:
    """A signal that arrives while a thread is stopped is delivered when it resumes: here a fatal one."""
    for i in range(40 if IS_LONG else 4):
        with running("flat") as target:
            options = ("--exact", "--rate", 2000, "--max-slowdown", "100%")
            sampler = marey.start("attach", target.pid, "-q", "-o", marey.new_recording(), *options)
            time.sleep(0.1 + 0.0037 * i)
            os.kill(target.pid, signal.SIGTERM)
            assert target.process.wait(60) == -signal.SIGTERM
            assert sampler.wait(60) == 0, sampler.communicate()


def test_a_target_may_be_killed_at_any_moment(marey: Marey) -> None:
    chance = random.Random(11)
    for _ in range(100 if IS_LONG else 5):
        recording = marey.new_recording()
        with running("threads", 8) as target:
            sampler = marey.start("attach", target.pid, "-q", "-o", recording, "--rate", 1000, "--exact")
            time.sleep(chance.random() * 0.15)
            target.process.kill()
            out, error = sampler.communicate(timeout=60)
        # Before the first round there is nothing to read, which is reported; it never crashes.
        assert sampler.returncode in (0, 2), (out, error)
        if sampler.returncode == 0:
            marey.run("report", recording)
        else:
            assert str(target.pid) in error or "nothing was sampled" in error


def test_code_that_is_thrown_away_leaves_no_wrong_names(marey: Marey) -> None:
    """Addresses of code are used again: made_7 stands in <made 7> on line 7, whatever stood there before."""
    with running("code_churn") as target:
        stacks = marey.stacks(
            marey.attach(target.pid, "--exact", "--rate", 1000, "--max-slowdown", "100%", seconds=1.5)
        )
    made = [(stack[-1], n) for stack, n in stacks.items() if stack[-1].file.startswith("<made")]
    assert sum(n for _, n in made) > 50
    wrong = [
        (frame, n)
        for frame, n in made
        if frame.function.removeprefix("made_") not in frame.file
        or (frame.function != "<module>" and frame.line not in (1, int(frame.function.removeprefix("made_"))))
    ]
    assert [row for row in wrong if row[0].function != "<module>"] == []


def test_a_function_of_3000_lines_has_its_line(marey: Marey) -> None:
    with running("long_function") as target:
        stacks = marey.stacks(marey.attach(target.pid, "--rate", 200, seconds=0.5))
    n = sum(stacks.values())
    assert n > 20
    at = sum(n for stack, n in stacks.items() if stack[-1] == Frame("long", "<long>", 2990))
    assert at >= n * 0.9, stacks.most_common(3)


@pytest.mark.parametrize("version", PYTHONS if IS_LONG else [NEWEST])
def test_a_stack_of_50000_calls_is_whole(marey: Marey, version: str) -> None:
    with running("deep", 50000, command=[PYTHONS[version]]) as target:
        # Frames of 3.10 lie here and there; a thousand more are found each time.
        is_old = version.startswith("3.10.")
        options = ("--rate", 200 if is_old else 10, "--max-slowdown", "100%")
        recording = marey.attach(target.pid, *options, seconds=8 if is_old else 0.4)
    deepest = max(marey.stacks(recording), key=len)
    assert sum(frame.function == "down" for frame in deepest) == 50000
    assert deepest[-1].function == "spin"
    assert target.grammar.fault(deepest) == ""


def test_two_interpreters_are_both_seen(marey: Marey) -> None:
    with running("interpreters") as target:
        stacks = marey.stacks(marey.attach(target.pid, "--rate", 200, seconds=0.6))
    assert functions_on(stacks, ["inside"])["inside"] > 0
    assert functions_on(stacks, ["outside"])["outside"] > 0


def start_with_pid(pid: int, command: list[str]) -> subprocess.Popen[bytes] | None:
    """Start `command` with this free pid; None if another process got it."""
    try:
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
    except OSError:
        pytest.skip("only root chooses the pid of a new process")
    process = subprocess.Popen(command)
    if process.pid == pid:
        return process
    process.kill()
    process.wait()
    return None


def test_a_pid_that_is_used_again_is_another_process(marey: Marey) -> None:
    for _ in range(20):
        target = Target("flat").wait_until_ready()
        recording = marey.new_recording()
        sampler = marey.start("attach", target.pid, "-q", "-o", recording, "--snapshot", "--rate", 5, "--no-children")
        wait_until(lambda path=recording: path.exists() and any(path.iterdir()), "no recording begins")
        time.sleep(0.3)
        target.end()
        other = Path(__file__).parent / "targets" / "duty.py"
        again = start_with_pid(target.pid, [PYTHONS[NEWEST], str(other), "30"])
        try:
            out, error = sampler.communicate(timeout=20)
            assert sampler.returncode == 0, (out, error)
            assert not functions_in(marey.stacks(recording)) & {"seventy", "twenty", "ten"}
        finally:
            sampler.kill()
            if again:
                again.kill()
                again.wait()
        if again:
            return
    pytest.fail("no process got the pid that had become free")
