"""Calls in a recording: by marey.start(calls=True), by the environment, in threads and children."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import marey

PROGRAM = """
    import os, sys, threading
    def leaf(n):
        return n
    def work(n):
        return [leaf(n) for _ in range(n)]
    def main():
        work(5)
        thread = threading.Thread(target=work, args=(3,))
        thread.start()
        thread.join()
        if "fork" in sys.argv:
            child = os.fork()
            if child == 0:
                work(7)
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
"""


def strings(path: Path) -> list[str]:
    """Texts in the logs of a recording; blocks of calls are not packed."""
    found: list[str] = []
    for log in sorted(path.glob("*.klog")):
        found.append(" ".join(t.decode() for t in re.findall(rb"[ -~]{4,}", log.read_bytes())))
    return found


def run(tmp_path: Path, program: str, *args: str, options: str = "") -> Path:
    path = tmp_path / "run.marey"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    if options:
        environment.update(MAREY=str(path), MAREY_OPTIONS=options)
    script = tmp_path / "program.py"  # the recording has the command line, so no program is on it
    script.write_text(textwrap.dedent(program))
    done = subprocess.run(
        # From 3.12 on Python warns of a fork beside threads, and the one that writes the log may be there.
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script), *args],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return path


def test_start_with_calls_puts_them_into_the_recording(tmp_path: Path) -> None:
    program = PROGRAM + "\n    import marey\n    marey.start('run.marey', calls=True)\n    main()\n    marey.stop()\n"
    (text,) = strings(run(tmp_path, program))
    assert "leaf" in text and "n:int" in text and "main" in text


def test_the_environment_asks_for_calls_and_the_exit_writes_them(tmp_path: Path) -> None:
    program = PROGRAM + "\n    import marey\n    main()\n"
    (text,) = strings(run(tmp_path, program, options="calls=1,calls.signatures=0"))
    assert "leaf" in text and "n:int" not in text


def test_a_forked_child_has_calls_of_its_own(tmp_path: Path) -> None:
    program = PROGRAM + "\n    import marey\n    main()\n"
    texts = strings(run(tmp_path, program, "fork", options="calls=1"))
    assert len(texts) == 2
    assert all("leaf" in text for text in texts)


@pytest.mark.parametrize("is_written", [False, True], ids=["at once", "after a first writing"])
def test_of_a_killed_process_it_is_reported_what_is_missing(tmp_path: Path, is_written: bool) -> None:
    """Counts are written every 5 s. What was there before the kill is in the table."""
    path = tmp_path / "run.marey"
    program = (
        PROGRAM
        + "\n    import time, marey\n    marey.start('run.marey', calls=True)\n    main()\n    print(flush=True)\n"
    )
    (tmp_path / "program.py").write_text(textwrap.dedent(program + "    while True:\n        time.sleep(0.1)\n"))
    victim = subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, stdout=subprocess.PIPE)
    assert victim.stdout is not None and victim.stdout.read(1) == b"\n"  # main() is over
    while is_written and "leaf" not in strings(path)[0]:
        assert victim.poll() is None
        time.sleep(0.1)
    victim.kill()
    victim.communicate()
    if is_written:
        calls = marey.load(path).calls()
        assert dict(zip(calls["function"], calls["calls"]))["leaf"] == 8
        (note,) = marey.load(path).calls(by="note")["text"]
        assert "the process was killed or called _exit: its last calls (up to 5 s)" in note
    else:
        with pytest.raises(
            marey.MareyError, match="the process was killed or called _exit before its calls were written"
        ):
            marey.load(path).calls()


def test_only_chosen_modules_are_in_the_recording(tmp_path: Path) -> None:
    program = PROGRAM + (
        "\n    import marey, json\n    marey.start('run.marey', calls=True, calls_modules=['json', 'csv'])\n"
        "    main()\n    json.dumps([1])\n    marey.stop()\n"
    )
    (text,) = strings(run(tmp_path, program))
    assert "dumps" in text and "leaf" not in text


def test_a_recording_without_calls_has_none(tmp_path: Path) -> None:
    program = PROGRAM + "\n    import marey\n    marey.start('run.marey')\n    main()\n    marey.stop()\n"
    (text,) = strings(run(tmp_path, program))
    assert "leaf" not in text


def test_wrong_options_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"calls\.signatures"):
        marey.start(tmp_path / "r.marey", calls=True, calls_signatures="all")
    with pytest.raises(ValueError, match=r"calls\.memory"):
        marey.start(tmp_path / "r.marey", calls=True, calls_memory="no")
