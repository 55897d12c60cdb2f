"""Completion in real shells: a shell in a pseudo-terminal, a typed line, the Tab key."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

PROMPT = "marey-test-prompt> "
PATIENCE_S = 60  # for a machine that is busy; an answer comes at once


def need(shell: str) -> str:
    """The shell's path; skips the test if it is missing."""
    return shutil.which(shell) or pytest.skip(f"{shell} is not installed here")


def terminal(command: list[str], env: dict[str, str], cwd: Path) -> Terminal:
    """Start a shell whose standard streams are a terminal, and wait for its prompt."""
    controller, end = pty.openpty()
    process = subprocess.Popen(
        command, stdin=end, stdout=end, stderr=end, env=env, cwd=cwd, start_new_session=True, close_fds=True
    )
    os.close(end)
    return Terminal(controller, process)


class Terminal:
    """Writes input and reads output."""

    def __init__(self, controller: int, process: subprocess.Popen) -> None:
        self.controller = controller
        self.process = process

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.controller)

    def type(self, text: str) -> None:
        os.write(self.controller, text.encode())

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read until `pattern` has been shown."""
        shown = ""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if select.select([self.controller], [], [], 0.1)[0]:
                shown += os.read(self.controller, 65536).decode(errors="replace")
            found = re.search(pattern, shown)
            if found:
                return found
        raise AssertionError(f"{pattern!r} did not come; shown was {shown!r}")


def wait_for_file(path: Path, end: str = "\n") -> str:
    """The output of a key binding, when complete."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().endswith(end):
            return path.read_text().removesuffix(end)
        time.sleep(0.02)
    raise AssertionError(f"the shell did not write {path}")


def bash_line(script: str, line: str, env: dict[str, str], cwd: Path) -> str:
    """The line after Tab was pressed at its end, in an interactive bash."""
    answer = cwd.parent / "line"
    answer.unlink(missing_ok=True)
    start = cwd.parent / "bashrc"
    start.write_text(
        f"{script}\nPS1='{PROMPT}'\nbind 'set bell-style none'\nbind 'set enable-bracketed-paste off'\n"
        f"""bind -x '"\\C-o": printf "%s\\n" "$READLINE_LINE" >"{answer}"'\n"""
    )
    shell = [need("bash"), "--noprofile", "--rcfile", str(start), "-i"]
    with terminal(shell, {**env, "TERM": "dumb"}, cwd) as bash:
        bash.wait_for(PROMPT)
        bash.type(f"{line}\t")
        bash.type("\x0f")
        return wait_for_file(answer)


# In place of what zsh would show, the words it would offer. _arguments and its kin ask compadd for arrays, too, by
# -O, -A and -D; those calls are theirs.
ZSH_CAPTURE = """
    compadd() {
        local -a own=("${@[1,(i)(-|--)]}")
        if [[ -n ${own[(r)-[OAD]*]} ]]; then builtin compadd "$@"; return; fi
        local -a hits
        builtin compadd -O hits "$@"
        print -rl -- $hits >>"$MAREY_ANSWER"
        builtin compadd "$@"
    }
    report() { : >>"$MAREY_ANSWER"; zle complete-word; print -r -- . >>"$MAREY_ANSWER" }
    zle -C complete-word .complete-word _main_complete
    zle -N report
    bindkey '^O' report
"""


def zsh_words(setup: str, line: str, env: dict[str, str], cwd: Path) -> list[str]:
    """Completions of zsh at the end of the line. `setup` loads the completion."""
    answer = cwd.parent / "words"
    answer.unlink(missing_ok=True)
    home = cwd.parent / "zsh"
    home.mkdir(exist_ok=True)
    (home / ".zshrc").write_text(f"{setup}\nPS1='{PROMPT}'\nunset zle_bracketed_paste\n{ZSH_CAPTURE}")
    variables = {**env, "TERM": "dumb", "ZDOTDIR": str(home), "MAREY_ANSWER": str(answer)}
    with terminal([need("zsh"), "-d", "-i"], variables, cwd) as zsh:
        zsh.wait_for(PROMPT)
        zsh.type(line + "\x0f")
        words = wait_for_file(answer, ".\n").split("\n")
    return [word for word in words if word]


def fish_words(script: str, line: str, env: dict[str, str], cwd: Path) -> list[str]:
    """What fish offers at the end of the line."""
    variables = {**env, "HOME": str(cwd.parent), "MAREY_LINE": line}
    command = [need("fish"), "--no-config", "-c", f"{script}\ncomplete -C $MAREY_LINE"]
    done = subprocess.run(command, env=variables, cwd=cwd, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return [word.split("\t")[0] for word in done.stdout.splitlines()]
