"""marey completion: what Tab completes in bash, zsh and fish."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import shells


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Recordings, one of them below a directory, and other files."""
    here = tmp_path / "here"
    for name in ("train.marey", "second run.marey", "old/first.marey", "notes"):
        (here / name).mkdir(parents=True)
    for name in ("lone.klog", "train.py", "table.csv"):
        (here / name).write_text("")
    return here


@pytest.fixture
def environment(environment: dict[str, str], program: Path) -> dict[str, str]:
    """Complete through the command, which the scripts call."""
    return {**environment, "PATH": f"{program.parent}:{environment['PATH']}"}


@pytest.fixture
def script(marey):
    """The script for a shell, as the command prints it."""

    def printed(shell: str) -> str:
        done = marey("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return printed


@pytest.fixture
def commands(marey) -> list[str]:
    """All commands."""
    return marey("help", "--names").stdout.split()


# Each line, with all that may be offered at its end. Every shell has its own way to show directories and "key=".
OFFERED = {
    "marey rep": ["report"],
    "marey report --u": ["--unit"],
    "marey report --unit ": ["ns", "us", "ms", "s"],
    "marey report train.marey --color a": ["auto", "always"],
    "marey export -t ": [
        "perfetto",
        "perfetto-tar",
        "perfetto-gpu",
        "chrome",
        "csv",
        "kineto",
        "sqlite",
        "speedscope",
        "collapsed",
        "flamegraph",
        "pstats",
        "callgrind",
        "pyspy",
    ],
    "marey export --to per": ["perfetto", "perfetto-tar", "perfetto-gpu"],
    "marey completion ": ["bash", "zsh", "fish"],
    "marey report t": ["train.marey"],
    "marey report l": ["lone.klog"],
    "marey report n": ["notes"],
    "marey export old/": ["first.marey"],
    "marey report train.marey se": ["second run.marey"],
    "marey run -o no": ["notes"],
    "marey report -o ta": ["table.csv"],
    "marey report --sort ": [],
}


def plain(words: list[str]) -> list[str]:
    """Words without leading folders, a trailing slash and quoting."""
    return sorted({os.path.basename(word.rstrip("/")).replace("\\", "") for word in words})


def bash_words(script: str, line: str, env: dict[str, str], cwd: Path) -> list[str]:
    """Call the completion function like bash, with bash's word splitting."""
    words = [piece for word in line.split(" ") for piece in word.replace("=", " = ").split(" ") if piece or not word]
    quoted = " ".join(f"'{word}'" for word in words)
    call = (
        f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}\n"
        "_marey; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    command = [shells.need("bash"), "--norc", "--noprofile", "-c", call]
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return [word.rstrip(" ") for word in done.stdout.splitlines() if word]


# ---- bash ----


@pytest.mark.parametrize("line", OFFERED)
def test_bash_offers_what_the_tables_have(script, folder, environment, line):
    assert plain(bash_words(script("bash"), line, environment, folder)) == sorted(OFFERED[line])


def test_bash_offers_every_command(script, commands, folder, environment):
    assert set(commands) < set(bash_words(script("bash"), "marey ", environment, folder))
    assert set(commands) == set(bash_words(script("bash"), "marey help ", environment, folder))


@pytest.mark.parametrize(
    "typed, becomes",
    [
        ("marey expo", "marey export "),
        ("marey report --uni", "marey report --unit "),
        ("marey report --unit=n", "marey report --unit=ns "),
        ("marey report sec", "marey report second\\ run.marey/"),
        ("marey report second\\ r", "marey report second\\ run.marey/"),
        ("marey report ol", "marey report old/"),
        ("marey run --options pol", "marey run --options policy="),
        ("marey run --options policy=b", "marey run --options policy=block "),
        ("marey run --options pool=1m,cloc", "marey run --options pool=1m,clock="),
        ("marey run --options pool=1m,clock=m", "marey run --options pool=1m,clock=monotonic "),
        ("marey run --options=clock=t", "marey run --options=clock=tsc "),
        ("marey run --output=no", "marey run --output=notes/"),
        ("marey run -o x.marey -- /bin/cat tra", "marey run -o x.marey -- /bin/cat train."),
        ("marey run -q /bin/cat --append train.p", "marey run -q /bin/cat --append train.py "),
    ],
)
def test_tab_in_bash_completes_the_line(script, folder, environment, typed, becomes):
    line = shells.bash_line(script("bash"), typed, environment, folder)
    assert line == becomes


# ---- zsh ----


def zsh_setup(script: str) -> str:
    return f"autoload -U compinit && compinit -u -D\n{script}"


@pytest.mark.parametrize("line", OFFERED)
def test_zsh_offers_what_the_tables_have(script, folder, environment, line):
    assert plain(shells.zsh_words(zsh_setup(script("zsh")), line, environment, folder)) == sorted(OFFERED[line])


def test_zsh_offers_every_command_and_keys(script, commands, folder, environment):
    setup = zsh_setup(script("zsh"))
    assert set(shells.zsh_words(setup, "marey ", environment, folder)) == {*commands, "help"}
    assert "policy" in shells.zsh_words(setup, "marey run --options pool=1m,", environment, folder)
    words = shells.zsh_words(setup, "marey run --options pool=1m,policy=", environment, folder)
    assert sorted(words) == ["block", "keep-newest", "keep-oldest"]


def test_zsh_finds_the_installed_function_by_itself(program, folder, environment):
    functions = program.parent / "share" / "zsh" / "site-functions"
    if not functions.exists():
        pytest.skip("this build has no completion scripts, because it has sanitizers or is for another machine")
    setup = f"fpath=('{functions}' $fpath)\nautoload -U compinit && compinit -u -D"
    assert shells.zsh_words(setup, "marey rep", environment, folder) == ["report"]


# ---- fish ----


@pytest.mark.parametrize("line", OFFERED)
def test_fish_offers_what_the_tables_have(script, folder, environment, line):
    assert plain(shells.fish_words(script("fish"), line, environment, folder)) == sorted(OFFERED[line])


def test_fish_offers_every_command(script, commands, folder, environment):
    assert set(shells.fish_words(script("fish"), "marey ", environment, folder)) == {*commands, "help"}
    assert set(shells.fish_words(script("fish"), "marey help ", environment, folder)) == set(commands)


@pytest.mark.parametrize(
    "line, words",
    [
        ("marey run --options policy=", ["policy=block", "policy=keep-newest", "policy=keep-oldest"]),
        ("marey run --options pool=1m,clock=t", ["pool=1m,clock=tsc"]),
        ("marey run -o x.marey -- /bin/cat train.p", ["train.py"]),
        ("marey run /bin/cat --appen", []),
    ],
)
def test_fish_offers_keys_and_programs(script, folder, environment, line, words):
    assert sorted(shells.fish_words(script("fish"), line, environment, folder)) == sorted(words)


# ---- mistakes ----


def test_an_unknown_shell_is_reported(marey):
    done = marey("completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "marey: no completion for 'tcsh'; the supported shells are bash, zsh and fish\n"
    assert marey("completion").returncode == 2
