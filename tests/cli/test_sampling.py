"""marey attach, stacks, top, watch and run --sample with real Python processes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from built import BUILD, ROOT
from sampled_programs import BUSY, ENDS_WITH_9, FAMILY, ONE_LONG_CALL, RANK, SHORT_LIFE, STUCK

Start = Callable[..., subprocess.Popen]


@pytest.fixture
def python(tmp_path: Path, environment: dict[str, str]) -> Iterator[Start]:
    """Start Python with this program, and wait until it prints that it is ready."""
    started = []

    def start(program: str, *command: str, **variables: str) -> subprocess.Popen:
        words = [*(command or (sys.executable,)), "-u", "-c", program]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(words, cwd=tmp_path, env={**environment, **variables}, **pipes)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def logs(recording: Path) -> list[Path]:
    return sorted(recording.glob("*.klog"))


# ---- stacks ----


def test_stacks_of_one_process_have_every_thread_with_its_line(marey, python):
    process = python(BUSY)
    spin = r"    spin \(<string>:[67]\)\n    main \(<string>:11\)\n    <module> \(<string>:12\)\n"
    rest = r'"rester"; waiting.*\n    rest \(<string>:4\)\n'
    for _ in range(50):  # on a busy machine the threads are still on their way there
        done = marey("stacks", process.pid)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("1 process, 2 threads, 2 different stacks\n")
        assert f'\npid {process.pid} "MainThread"; ' in done.stdout
        if re.search(spin, done.stdout) and re.search(rest, done.stdout):
            return
    pytest.fail(done.stdout)


def test_stacks_as_json(marey, python):
    process = python(BUSY)
    answer = json.loads(marey("stacks", process.pid, "--json").stdout)
    assert list(answer) == ["processes", "groups", "failures"]
    assert answer["processes"][0]["pid"] == process.pid
    assert answer["processes"][0]["python"] == ".".join(map(str, sys.version_info[:3]))
    threads = {group["threads"][0]["name"]: group for group in answer["groups"]}
    assert [frame["function"] for frame in threads["rester"]["frames"]][:1] == ["rest"]
    assert threads["MainThread"]["threads"][0]["state"] == "running"
    assert threads["rester"]["threads"][0]["state"] == "waiting"


def test_ranks_stand_together_and_the_outlier_is_reported(marey, python):
    ranks = [python(RANK, RANK=str(rank), WORLD_SIZE="4") for rank in range(4)]
    done = marey("stacks", *(rank.pid for rank in ranks))
    assert done.returncode == 0
    assert "\n3 of 4 main threads, the majority: ranks 0-2; waiting" in done.stdout
    outlier = f'\n1 of 4 main threads: rank 3, pid {ranks[3].pid} "MainThread"; waiting'
    assert outlier in done.stdout
    assert done.stdout.split(outlier)[1].splitlines()[1].startswith("    read (<string>:")


@pytest.mark.parametrize("command", ["stacks", "attach", "top", "watch"])
def test_what_cannot_be_read_is_named_with_the_reason(marey, tmp_path, command):
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        done = marey(command, sleeper.pid)
    finally:
        sleeper.kill()
        sleeper.wait()
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"marey: .*\b{sleeper.pid}\b.*\n", done.stderr)
    gone = marey(command, sleeper.pid)
    assert gone.returncode == 2 and f"there is no process {sleeper.pid}" in gone.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["stacks", "attach", "top", "watch"])
def test_what_is_no_process_id_is_refused(marey, command):
    for word in ("train.py", "0", "12x", "99999999999"):
        done = marey(command, word)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"marey: '{word}' is not a process id; ")


@pytest.mark.parametrize("command", ["stacks", "attach", "watch"])
def test_without_a_process_id_the_list_of_them_is_named(marey, command):
    assert "needs a process id" in marey(command).stderr and "'marey top' lists" in marey(command).stderr


def test_top_without_a_process_id_lists_what_runs_python(marey, python):
    process = python(STUCK)
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        done = marey("top")
    finally:
        sleeper.kill()
        sleeper.wait()
    pids = [line.split()[0] for line in done.stdout.splitlines()[1:] if line]
    assert done.returncode == 0 and str(process.pid) in pids and str(sleeper.pid) not in pids
    assert done.stdout.splitlines()[-1].startswith("next: marey top ")


def test_of_several_the_readable_ones_are_shown(marey, python):
    process = python(STUCK)
    done = marey("stacks", process.pid, 2**30)
    assert done.returncode == 2
    assert "wait_for_ever" in done.stdout and "not read: " in done.stdout


# ---- top ----


def test_one_table_of_functions_lines_threads_and_ranks(marey, python):
    process = python(BUSY, RANK="2", WORLD_SIZE="4")
    functions = marey("top", process.pid, "--once", "--window", "500ms").stdout.splitlines()
    assert functions[0].startswith(f"pid {process.pid}  ")
    assert functions[1].split() == ["self", "total", "function", "place"]
    assert re.match(r" *(100|9\d\.\d) %  100 %  spin +<string>:5$", functions[2])
    assert not any("rest" in line for line in functions)
    assert "rest" in marey("top", process.pid, "--once", "-w", "300ms", "--idle").stdout
    threads = marey("top", process.pid, "--once", "-w", "300ms", "--by", "threads").stdout
    assert re.search(rf" 2 +{process.pid}  MainThread  spin <string>:[67]", threads)
    assert re.search(r"0\.0 % .* rester +rest <string>:4", threads)
    ranks = marey("top", process.pid, "--once", "-w", "300ms", "--by", "ranks").stdout.splitlines()
    assert ranks[1].split()[:5] == ["cpu", "GIL", "rank", "pid", "threads"]
    assert re.search(rf" 2 +{process.pid} +2  spin <string>:[67]", ranks[2])


def test_without_a_terminal_tables_follow_one_another_until_it_ends(start, python):
    process = python(BUSY)
    top = start("top", process.pid)
    heads = 0
    for line in top.stdout:
        heads += line.startswith("pid ")
        process.kill()
    assert top.wait(timeout=30) == 0
    assert heads >= 1
    top.stdout.close()
    top.stderr.close()


class Screen:
    """A terminal with `marey ARGS...` in it."""

    def __init__(self, program: Path, environment: dict[str, str], *args: object, size: tuple[int, int] = (10, 40)):
        self.ours, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.resize(size)
        self.bytes = b""
        command = [str(program), *map(str, args)]
        streams = {"stdin": self.theirs, "stdout": self.theirs, "stderr": self.theirs}
        variables = {**environment, "TERM": "xterm"}
        self.process = subprocess.Popen(command, env=variables, **streams, start_new_session=True)

    def resize(self, size: tuple[int, int]) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def wait_for(self, pattern: str) -> str:
        """A part of the output, from the preceding screen on."""
        deadline = time.monotonic() + 30
        while not (found := re.search(pattern.encode(), self.bytes)):
            assert time.monotonic() < deadline, self.bytes[-2000:]
            self.bytes += os.read(self.ours, 65536)
        return found[0].decode()

    def press(self, key: str) -> None:
        self.bytes = b""
        os.write(self.ours, key.encode())

    def end(self) -> int:
        """The status; the terminal is as it was."""
        status = self.process.wait(timeout=30)
        os.set_blocking(self.ours, False)
        with contextlib.suppress(BlockingIOError):
            self.bytes += os.read(self.ours, 65536)
        assert termios.tcgetattr(self.theirs) == self.before
        assert self.bytes.count(b"\033[?1049l") == 1 and self.bytes.rstrip().endswith(b"\033[?1049l")
        assert b"\033[?25h" in self.bytes and b"\033[?7h" in self.bytes
        os.close(self.ours)
        os.close(self.theirs)
        return status


def screens(drawn: bytes) -> list[list[str]]:
    """Each complete screen, as lines without colors."""
    parts = drawn.decode().split("\033[H")[1:]
    whole = [part.split("\033[J")[0] for part in parts if "\033[J" in part]
    return [re.sub(r"\033\[[0-9;]*[mK]", "", part).split("\r\n") for part in whole]


def test_a_small_terminal_is_enough_and_keys_change_what_it_shows(program, environment, python):
    process = python(BUSY)
    screen = Screen(program, environment, "top", process.pid)
    screen.wait_for(r"spin(?s:.*)\033\[J")
    drawn = screens(screen.bytes)
    assert drawn and all(len(lines) <= 10 and all(len(line) <= 40 for line in lines) for lines in drawn)
    screen.press("t")
    screen.wait_for(r"MainThread(?s:.*)\033\[J")
    screen.press("l")
    screen.wait_for(r"total(?s:.*)spin(?s:.*)\033\[J")
    screen.resize((6, 100))
    os.kill(screen.process.pid, signal.SIGWINCH)
    screen.bytes = b""
    screen.wait_for(r"<string>:[67](?s:.*)\033\[J")
    screen.wait_for(r"by self \|(?s:.*)\033\[J")
    assert all(len(lines) <= 6 for lines in screens(screen.bytes))
    screen.press("p")
    screen.wait_for(r"\[paused\]")
    screen.press("q")
    assert screen.end() == 0


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
def test_a_signal_leaves_the_terminal_as_it_was(program, environment, python, ending):
    process = python(STUCK)
    screen = Screen(program, environment, "top", process.pid)
    screen.wait_for(r"wait_for_ever(?s:.*)\033\[J")
    screen.bytes = b""
    os.kill(screen.process.pid, ending)
    assert screen.end() == (0 if ending == signal.SIGINT else -ending)


def test_put_to_sleep_it_gives_the_terminal_back_and_takes_it_again(program, environment, python):
    process = python(STUCK)
    screen = Screen(program, environment, "top", process.pid)
    screen.wait_for(r"wait_for_ever(?s:.*)\033\[J")
    os.kill(screen.process.pid, signal.SIGTSTP)
    assert os.WIFSTOPPED(os.waitpid(screen.process.pid, os.WUNTRACED)[1])
    screen.wait_for(r"\033\[\?1049l")
    assert termios.tcgetattr(screen.theirs) == screen.before
    screen.bytes = b""
    os.kill(screen.process.pid, signal.SIGCONT)
    screen.wait_for(r"\033\[\?1049h(?s:.*)wait_for_ever")
    screen.press("q")
    assert screen.end() == 0


# ---- watch ----


def test_a_stall_is_reported_once_with_all_stacks(marey, start, python, tmp_path):
    process = python(STUCK)
    done = marey("watch", process.pid, "--stall", "500ms", "--once")
    assert done.returncode == 1
    assert re.match(r"\d{4}-.*: no progress for 0.5 s\n1 process, 1 thread", done.stdout)
    assert "\n    wait_for_ever (<string>:5)\n" in done.stdout and "; waiting: read pipe" in done.stdout

    watch = start("watch", process.pid, "--stall", "500ms", "-o", "hang.txt")
    assert "no progress for 0.5 s; the stacks are in hang.txt" in watch.stderr.readline()
    time.sleep(0.7)
    process.stdin.write("\n")
    process.stdin.flush()
    assert watch.communicate(timeout=30) == ("", "")
    assert watch.returncode == 0
    assert (tmp_path / "hang.txt").read_text().count("no progress for") == 1


def test_work_is_no_stall_unless_stacks_alone_count(marey, start, python):
    process = python(ONE_LONG_CALL)
    watch = start("watch", process.pid, "--stall", "1s", "--once")
    assert marey("watch", process.pid, "--stall", "1s", "--once", "--busy").returncode == 1
    assert watch.poll() is None
    watch.send_signal(signal.SIGINT)
    assert watch.communicate(timeout=30) == ("", "")
    assert watch.returncode == 0


# ---- attach ----


def test_attach_records_for_a_while_and_says_what_it_saw(marey, python, tmp_path):
    process = python(BUSY)
    done = marey("attach", process.pid, "--duration", "500ms", "--rate", "200")
    assert done.returncode == 0
    recording = tmp_path / f"attach-{process.pid}.marey"
    assert len(logs(recording)) == 1
    assert "spin" in done.stderr and f"marey report attach-{process.pid}.marey --samples" in done.stderr
    assert process.poll() is None
    again = marey("attach", process.pid, "-d", "200ms", "-q", "-o", recording, "--append")
    assert (again.returncode, again.stderr) == (0, "") and len(logs(recording)) == 2
    assert "already contains a recording" in marey("attach", process.pid, "-o", recording).stderr


def test_an_interrupted_attach_is_whole(marey, start, python):
    process = python(BUSY)
    attach = start("attach", process.pid, "-o", "run.marey")
    time.sleep(0.7)
    attach.send_signal(signal.SIGINT)
    attach.communicate(timeout=30)
    assert attach.returncode == 0
    report = marey("report", "run.marey", "--samples")
    assert report.returncode == 0 and "spin" in report.stdout


def test_attach_ends_with_its_processes(start, python):
    process = python(STUCK)
    attach = start("attach", process.pid, "-q", "-o", "run.marey")
    time.sleep(0.7)
    process.stdin.write("\n")
    process.stdin.flush()
    assert attach.communicate(timeout=30) == ("", "")
    assert attach.returncode == 0


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--exact", "--snapshot"], "--exact and --snapshot exclude one another"),
        (["--append", "--force"], "--append and --force exclude one another"),
        (["--rate", "0"], "--rate takes how often a second"),
        (["--rate", "fast"], "--rate takes how often a second"),
        (["--duration", "soon"], "--duration takes a time such as 60s"),
        (["--max-slowdown", "200%"], "--max-slowdown takes more than 0 and up to 100 percent"),
    ],
)
def test_options_that_make_no_sense(marey, tmp_path, words, sentence):
    done = marey("attach", os.getpid(), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"marey: {sentence}") and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# ---- run --sample ----


def test_run_samples_the_program_and_what_it_starts(marey, tmp_path):
    (tmp_path / "family.py").write_text(FAMILY.replace("SECONDS", "1"))
    done = marey("run", "--sample", "--", "sh", "-c", f"{shlex.quote(sys.executable)} family.py; exit $?")
    assert done.returncode == 5
    assert done.stderr.endswith("marey: recorded samples; next: marey report --samples sh.marey\n")
    report = json.loads(marey("report", "sh.marey", "--samples", "--idle", "--json").stdout)
    assert "child_work" in [row["function"] for row in report["functions"]]
    assert len(report["processes"]) == 2


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_program_that_dies_by_a_signal_passes_it_on_and_leaves_samples(marey, tmp_path, ending):
    words = (sys.executable, "-c", SHORT_LIFE, str(int(ending)))
    done = marey("run", "-q", "--sample=1000", "-o", "run.marey", "--", *words)
    assert done.returncode == -ending
    assert len(logs(tmp_path / "run.marey")) == 1


def test_a_signal_to_marey_run_goes_to_the_program_and_the_samples_stay(marey, start, tmp_path):
    run = start("run", "--sample", "-o", "run.marey", "--", sys.executable, "-u", "-c", ENDS_WITH_9)
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.5)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=30)
    assert run.returncode == 9
    assert "samples" in marey("report", "run.marey", "--samples").stdout


def test_a_program_without_python_leaves_nothing(marey, tmp_path):
    done = marey("run", "--sample", "--", "true")
    assert done.returncode == 0 and "no Python 3.10 or later ran in the program" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["true.marey"]  # wall and CPU time are there


def test_short_programs_keep_their_status(marey):
    for i in range(5):
        program = (sys.executable, "-S", "-c", f"raise SystemExit({i + 1})")
        done = marey("run", "-q", "--sample=5000", "--force", "-o", "run.marey", "--", *program)
        assert done.returncode == i + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher",
    [
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable],
    ],
    ids=["torchrun", "mpirun"],
)
def test_ranks_behind_launchers_are_known(program, environment, tmp_path, launcher):
    if shutil.which(launcher[0]) is None:
        pytest.skip(f"there is no {launcher[0]} here")
    (tmp_path / "rank.py").write_text(
        "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end:\n    pass\n"
    )
    run = [program, "run", "-q", "--sample", "-o", "run.marey", "--", *launcher, "rank.py"]
    assert subprocess.run(run, cwd=tmp_path, env=environment, timeout=300, check=False).returncode == 0
    report = [program, "report", "run.marey", "--samples", "--json"]
    answer = subprocess.run(report, cwd=tmp_path, env=environment, timeout=60, check=True, capture_output=True)
    assert {0, 1} <= {row["rank"] for row in json.loads(answer.stdout)["ranks"]}


def test_the_example_shows_its_slow_line(marey):
    program = (sys.executable, ROOT / "examples" / "slow_input.py", "1")
    assert marey("run", "-q", "--sample=250", "-o", "run.marey", "--", *program).returncode == 0
    report = json.loads(marey("report", "run.marey", "--samples", "--json").stdout)
    assert report["functions"][0]["function"] == "augment"
    assert report["lines"][0]["function"] == "augment"


def test_a_wrong_rate_is_reported_before_anything_runs(marey, tmp_path):
    done = marey("run", "--sample=often", "--", sys.executable, "-c", "open('ran', 'w')")
    assert done.returncode == 2 and "--sample takes how often a second" in done.stderr
    assert list(tmp_path.iterdir()) == []


# ---- as a non-root user ----


@pytest.fixture
def nobody(program: Path, tmp_path: Path) -> dict[str, object]:
    """What makes a process that of an unprivileged user, and a Python that such a one can run."""
    system = shutil.which("python3", path="/usr/bin:/bin")
    if os.geteuid() != 0 or system is None:
        pytest.skip("only root can become somebody else, who needs a Python in /usr/bin")
    tmp_path.chmod(0o777)
    for folder in [tmp_path, *tmp_path.parents][:4]:
        folder.chmod(folder.stat().st_mode | 0o055)
    return {"python": system, "as": {"user": 65534, "group": 65534, "extra_groups": []}}


def test_an_unprivileged_user_reads_what_is_its_own_and_learns_why_not_else(marey, nobody, python, tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    theirs = subprocess.Popen([nobody["python"], "-c", STUCK], **pipes, **nobody["as"])
    try:
        assert theirs.stdout.readline() == "ready\n"
        mine = marey("stacks", theirs.pid, **nobody["as"])
        assert (mine.returncode, mine.stderr) == (0, "") and "wait_for_ever" in mine.stdout
        refused = marey("stacks", python(STUCK).pid, **nobody["as"])
        assert (refused.returncode, refused.stdout) == (2, "")
        assert re.search(r"(root|sudo|user)", refused.stderr)
        words = (nobody["python"], "-c", "sum(range(10**7))")
        run = marey("run", "-q", "--sample", "-o", "own.marey", "--", *words, **nobody["as"])
        assert (run.returncode, run.stderr) == (0, "")
    finally:
        theirs.kill()
        theirs.communicate()


def test_a_program_that_allows_it_is_attached_to_by_an_unprivileged_user(marey, nobody, tmp_path):
    allow = f"ctypes.CDLL('{BUILD}/core/libmarey.so.0').marey_allow_attach(ctypes.c_int64(0))"
    program = f"import ctypes\nassert {allow} == 0\n{STUCK}"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    theirs = subprocess.Popen([nobody["python"], "-c", program], **pipes, **nobody["as"])
    try:
        assert theirs.stdout.readline() == "ready\n"
        assert "wait_for_ever" in marey("stacks", theirs.pid, **nobody["as"]).stdout
    finally:
        theirs.kill()
        theirs.communicate()
