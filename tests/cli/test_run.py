"""marey run: where it records to, what the program gets, what is passed on."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def logs(recording: Path) -> list[Path]:
    return sorted(recording.glob("*.klog"))


# ---- where it records to ----


def test_it_says_where_the_recording_is_and_what_to_type_next(marey, emit, tmp_path):
    done = marey("run", "--only", "ranges", "--", emit, 3)
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr == "marey: recorded 1 process, 12 events; next: marey report emit.marey\n"
    assert len(logs(tmp_path / "emit.marey")) == 1
    assert json.loads((tmp_path / "emit.marey" / "meta.json").read_text())["command"] == f"{emit} 3"


def test_quiet_says_nothing_when_all_went_well(marey, emit):
    assert marey("run", "--only", "ranges", "-q", emit, 1).stderr == ""


def test_a_second_run_takes_the_next_free_name(marey, emit, tmp_path):
    for name in ("emit.marey", "emit-2.marey", "emit-3.marey"):
        assert name in marey("run", "--only", "ranges", "--", emit, 1).stderr
        assert (tmp_path / name).is_dir()


@pytest.mark.parametrize(
    "words, name",
    [
        (["python3", "train.py"], "train"),
        (["python3.11", "-u", "-W", "ignore", "dir/train.py", "other.py"], "train"),
        (["python3", "-m", "pkg.train", "x"], "pkg.train"),
        (["python3", "-c", "pass"], "python3"),
        (["torchrun", "--nproc-per-node=2", "finetune.py"], "finetune"),
        (["./a.out", "train"], "a.out"),
    ],
)
def test_the_name_is_the_programs(marey, tmp_path, words, name):
    tool = tmp_path / "bin" / words[0]
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho $MAREY\n")
    tool.chmod(0o755)
    if words[0].startswith("./"):
        tool.rename(tmp_path / words[0])
    done = marey("run", "--only", "ranges", "--", *words, env={"PATH": f"{tool.parent}:{os.environ['PATH']}"})
    assert done.stdout == f"{tmp_path}/{name}.marey\n"


def test_a_name_with_spaces_can_be_pasted(marey, program, emit, tmp_path):
    done = marey("run", "--only", "ranges", "-o", "my run's.marey", emit, 1)
    assert done.stderr.endswith("next: marey report 'my run'\\''s.marey'\n")
    command = done.stderr.split("next: marey ")[1]
    assert b"outer" in subprocess.check_output(["sh", "-c", f'"$0" {command}', program], cwd=tmp_path)


def test_a_recording_is_not_overwritten_unasked(marey, emit, recording):
    before = logs(recording)
    done = marey("run", "--only", "ranges", "-o", recording, emit, 1)
    assert done.returncode == 2
    assert "--append adds to it, --force replaces it" in done.stderr
    assert logs(recording) == before


def test_append_adds_a_process(marey, emit, recording):
    done = marey("run", "--only", "ranges", "--append", "-o", recording, emit, 1)
    assert "recorded 2 processes" in done.stderr
    assert len(logs(recording)) == 2


def test_force_replaces_the_recording(marey, emit, recording):
    before = logs(recording)
    done = marey("run", "--only", "ranges", "--force", "-o", recording, emit, 1)
    assert "recorded 1 process, 4 events" in done.stderr
    assert logs(recording) != before


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("meta.json")])
@pytest.mark.parametrize("name", ["notes.klog", "zz.pool", "energy-me.lock"])
def test_force_removes_nothing_beside_a_directory_or_link_of_its_names(marey, emit, recording, make, name):
    before = logs(recording)
    make(recording / name)
    done = marey("run", "--only", "ranges", "--force", "-o", recording, emit, 1)
    assert [log for log in logs(recording) if log.name != name] == before and before != []
    assert (recording / "meta.json").exists()
    assert done.returncode == 2
    assert "holds more than a recording" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("how", [[], ["--append"], ["--force"]])
def test_a_directory_with_other_files_is_never_touched(marey, emit, recording, how):
    (recording / "thesis.txt").write_text("years of work")
    before = sorted(recording.iterdir())
    done = marey("run", "--only", "ranges", *how, "-o", recording, emit, 1)
    assert done.returncode == 2
    assert "holds more than a recording" in done.stderr
    assert sorted(recording.iterdir()) == before


def test_a_file_in_the_way_is_refused(marey, emit, tmp_path):
    (tmp_path / "run.marey").write_text("")
    done = marey("run", "--only", "ranges", "--force", "-o", "run.marey", emit, 1)
    assert (done.returncode, "is not a directory" in done.stderr) == (2, True)


def test_a_missing_parent_is_reported_before_the_program_starts(marey, tmp_path):
    done = marey("run", "--only", "ranges", "-o", "no/such/run.marey", "touch", "started")
    assert done.returncode == 2
    assert "no/such/run.marey" in done.stderr
    assert not (tmp_path / "started").exists()


def test_an_unwritable_place_is_reported_before_the_program_starts(marey, tmp_path):
    done = marey("run", "--only", "ranges", "-o", "/proc/run.marey", "touch", "started")
    assert (done.returncode, "/proc/run.marey" in done.stderr) == (2, True)
    assert not (tmp_path / "started").exists()


def test_ranks_of_one_launch_share_a_recording(marey, emit, tmp_path):
    for rank in "012":
        done = marey("run", "--only", "ranges", "-o", "run.marey", emit, 1, env={"RANK": rank, "WORLD_SIZE": "3"})
        assert done.returncode == 0
    assert [log.name.split("-")[0] for log in logs(tmp_path / "run.marey")] == ["r0", "r1", "r2"]


@pytest.mark.parametrize("attempt", range(20))
def test_ranks_that_create_a_recording_at_the_same_moment_share_it(start, environment, emit, tmp_path, attempt):
    ranks = 8
    environment.update(WORLD_SIZE=str(ranks), TORCHELASTIC_RUN_ID="one")
    started = []
    for rank in range(ranks):
        environment["RANK"] = str(rank)
        started.append(start("run", "--only", "ranges", "-o", "run.marey", emit, 1))
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    names = sorted(path.name for path in (tmp_path / "run.marey").iterdir())
    assert names[0] == "meta.json"
    assert [name.split("-")[0] for name in names[1 : ranks + 1]] == [f"r{rank}" for rank in range(ranks)]
    assert [name.split("-")[0] for name in names[ranks + 1 :]] == ["run"] * ranks
    assert json.loads((tmp_path / "run.marey" / "meta.json").read_text())["format"] == "marey recording"


def test_a_later_launch_does_not_mix_in(marey, emit):
    ranks = {"RANK": "0", "WORLD_SIZE": "2"}
    assert (
        marey(
            "run", "--only", "ranges", "-o", "run.marey", emit, 1, env={**ranks, "TORCHELASTIC_RUN_ID": "a"}
        ).returncode
        == 0
    )
    assert (
        marey(
            "run", "--only", "ranges", "-o", "run.marey", emit, 1, env={**ranks, "TORCHELASTIC_RUN_ID": "a"}
        ).returncode
        == 0
    )
    done = marey("run", "--only", "ranges", "-o", "run.marey", emit, 1, env={**ranks, "TORCHELASTIC_RUN_ID": "b"})
    assert (done.returncode, "--append" in done.stderr) == (2, True)


def test_somebody_elses_meta_is_not_deleted(marey, emit, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "meta.json").write_text('{"format": "theirs"}')
    assert marey("run", "--only", "ranges", "--force", "-o", "theirs", emit, 1).returncode == 2
    assert (tmp_path / "theirs" / "meta.json").exists()


# ---- the program's environment ----


def environment_of(marey, name: str, **env: str) -> str:
    return marey("run", "--only", "ranges", "--", "sh", "-c", f'printf %s "${name}"', env=env).stdout


def test_the_recordings_path_is_absolute(marey, tmp_path):
    assert environment_of(marey, "MAREY") == str(tmp_path / "sh.marey")


def test_options_are_joined(marey):
    done = marey(
        "run",
        "--only",
        "ranges",
        "--options",
        "policy=block",
        "--",
        "sh",
        "-c",
        'echo "$MAREY_OPTIONS"',
        env={"MAREY_OPTIONS": "pool=1MiB"},
    )
    assert done.stdout == "pool=1MiB,policy=block\n"


def test_a_run_has_an_id(marey):
    assert len(environment_of(marey, "MAREY_RUN_ID")) == 16
    assert environment_of(marey, "MAREY_RUN_ID", TORCHELASTIC_RUN_ID="job7") == "job7"
    assert environment_of(marey, "MAREY_RUN_ID", SLURM_JOB_ID="12", SLURM_STEP_ID="3") == "slurm-12.3"


def test_python_finds_the_boot_folder_first(marey, tmp_path):
    boot = tmp_path / "boot"
    boot.mkdir()
    (boot / "sitecustomize.py").write_text("")
    assert environment_of(marey, "PYTHONPATH", MAREY_BOOT=str(boot), PYTHONPATH="/mine") == f"{boot}:/mine"


def test_standard_input_goes_to_the_program(marey):
    assert marey("run", "--only", "ranges", "--", "cat", input="hello").stdout == "hello"


def test_options_behind_the_program_are_its_own(marey):
    assert marey("run", "echo", "--help", "--", "-o").stdout == "--help -- -o\n"


def test_wrong_options_end_it_before_the_program_starts(marey, tmp_path):
    for args, env in ((["--options", "pol=1"], {}), ([], {"MAREY_OPTIONS": "pool=lots"})):
        done = marey("run", "--only", "ranges", *args, "touch", "started", env=env)
        assert done.returncode == 2
        assert done.stderr.startswith("marey: ")
    assert list(tmp_path.iterdir()) == []


def test_options_can_be_listed(marey):
    done = marey("run", "--options", "help")
    assert done.returncode == 0
    assert "pool" in done.stdout


# ---- signals and exit status ----


def test_the_exit_status_is_passed_on(marey, emit):
    for status in (0, 1, 2, 3, 77, 255):
        assert marey("run", "--only", "ranges", "--", emit, 1, f"exit={status}").returncode == status


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGABRT, signal.SIGTERM, signal.SIGINT])
def test_death_by_a_signal_is_passed_on_and_the_events_stay(marey, emit, sig):
    done = marey("run", "--only", "ranges", "--", emit, 3, f"kill={int(sig)}")
    assert done.returncode == -sig
    assert "12 events" in done.stderr


@pytest.mark.parametrize("sig", ["TERM", "HUP", "USR1", "USR2", "QUIT", "INT"])
def test_signals_sent_to_marey_reach_the_program(start, emit, sig):
    with start("run", "--only", "ranges", emit, 1, "wait", "exit=5") as running:
        assert running.stdout.readline() == "ready\n"
        running.send_signal(getattr(signal, f"SIG{sig}"))
        assert running.stdout.read() == f"got {sig}\n"
        assert running.wait(20) == 5


def test_control_c_reaches_the_program_once(program, emit, tmp_path, environment):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(program, [str(program), "run", "--only", "ranges", str(emit), "1", "wait", "exit=6"], environment)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            seen += os.read(terminal, 1000)
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
    assert seen.count(b"got INT") == 1


@pytest.mark.parametrize(
    "program_name, words",
    [
        ("no-such-program", "no program of that name on PATH"),
        ("./no-such-file", "No such file"),
        ("./plain.txt", "not executable"),
        (".", "not executable"),
    ],
)
def test_a_program_that_cannot_start_gives_status_3(marey, tmp_path, program_name, words):
    (tmp_path / "plain.txt").write_text("text")
    done = marey("run", "--only", "ranges", "-o", "x.marey", "--", program_name)
    assert done.returncode == 3
    assert words in done.stderr
    assert not (tmp_path / "x.marey").exists()


# ---- when nothing was recorded ----


def test_no_events_name_the_command_that_would_have_some(marey, tmp_path):
    done = marey("run", "--only", "ranges", "true", "--flag", "two words")
    assert done.returncode == 0
    why, what = done.stderr.splitlines()
    assert why == (
        "marey: no events: the program has no marey ranges, or is not linked with libmarey; if it starts Python, this "
        "shows where its time goes: marey run --sample -- true --flag 'two words'"
    )
    assert re.fullmatch(
        r"marey: recorded wall time \(.*s\) and CPU time \(.*s\) only; next: marey compare true.marey OTHER.marey", what
    )
    assert sorted(path.suffix for path in (tmp_path / "true.marey").iterdir()) == [".json", ".krun"]
    assert marey("run", "--only", "ranges", "-q", "true").stderr.startswith("marey: no events: ")


@pytest.mark.parametrize("flags", ["-I", "-S", "-bE"])
def test_a_python_that_will_not_listen_gets_a_message(marey, tmp_path, flags):
    (tmp_path / "train.py").write_text("")
    done = marey("run", "--only", "ranges", "--", sys.executable, flags, "train.py")
    assert f"Python's option -{flags[-1]} keeps marey out" in done.stderr


def test_a_script_whose_first_line_will_not_listen_gets_a_message(marey, tmp_path):
    (tmp_path / "python3").symlink_to(sys.executable)  # a first line cannot name a path with a space
    script = tmp_path / "train.py"
    script.write_text(f"#!{tmp_path}/python3 -I\n")
    script.chmod(0o755)
    assert "Python's option -I keeps marey out" in marey("run", "--only", "ranges", "--", "./train.py").stderr


def test_a_python_program_without_ranges_gets_a_message(marey, tmp_path):
    (tmp_path / "train.py").write_text("")
    assert (
        "the program has no marey ranges" in marey("run", "--only", "ranges", "--", sys.executable, "train.py").stderr
    )


def test_a_reason_that_is_printed_is_the_only_one(marey, compiled, tmp_path):
    (tmp_path / "files.c").write_text(
        """#include <fcntl.h>
        #include <marey/marey.h>
        int main(void)
        {
            while (open("/dev/null", O_RDONLY) >= 0)
                ;
            MAREY_SCOPE("range");
            return 0;
        }"""
    )
    program = compiled(str(tmp_path / "files.c"))
    done = marey("run", "--only", "ranges", "-o", "run.marey", "--", "sh", "-c", f"ulimit -n 64; exec {program}")
    assert "nothing is recorded: " in done.stderr and "Too many open files" in done.stderr
    assert "no marey ranges" not in done.stderr
    assert not list((tmp_path / "run.marey").glob("not-recorded-*"))
