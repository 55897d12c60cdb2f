"""kymo completion: what Tab completes in bash, zsh and fish."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import shells


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Recordings, one of them below a directory, and things that are none."""
    here = tmp_path / "here"
    for name in ("train.kymo", "second run.kymo", "old/first.kymo", "notes"):
        (here / name).mkdir(parents=True)
    for name in ("lone.klog", "train.py", "table.csv"):
        (here / name).write_text("")
    return here


@pytest.fixture
def script(kymo):
    """The script for a shell, as the command prints it."""

    def printed(shell: str) -> str:
        done = kymo("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return printed


@pytest.fixture
def commands(kymo) -> list[str]:
    """Every command there is."""
    return kymo("help", "--names").stdout.split()


# Each line, with all that may be offered at its end. Every shell has its own way to show directories and "key=".
OFFERED = {
    "kymo rep": ["report"],
    "kymo report --u": ["--unit"],
    "kymo report --unit ": ["ns", "us", "ms", "s"],
    "kymo report train.kymo --color a": ["auto", "always"],
    "kymo export -t ": [
        "perfetto",
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
    "kymo export --to per": ["perfetto", "perfetto-gpu"],
    "kymo completion ": ["bash", "zsh", "fish"],
    "kymo report t": ["train.kymo"],
    "kymo report l": ["lone.klog"],
    "kymo report n": ["notes"],
    "kymo export old/": ["first.kymo"],
    "kymo report train.kymo se": ["second run.kymo"],
    "kymo run -o no": ["notes"],
    "kymo report -o ta": ["table.csv"],
    "kymo report --sort ": [],
}


def plain(words: list[str]) -> list[str]:
    """Words without what a shell hangs on: the folders in front, a slash behind, quoting."""
    return sorted({os.path.basename(word.rstrip("/")).replace("\\", "") for word in words})


def bash_words(script: str, line: str, env: dict[str, str], cwd: Path) -> list[str]:
    """Call the completion function as bash would, with the words that bash makes of the line."""
    words = [piece for word in line.split(" ") for piece in word.replace("=", " = ").split(" ") if piece or not word]
    quoted = " ".join(f"'{word}'" for word in words)
    call = (
        f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}\n"
        "_kymo; printf '%s\\n' \"${COMPREPLY[@]}\""
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
    assert set(commands) < set(bash_words(script("bash"), "kymo ", environment, folder))
    assert set(commands) == set(bash_words(script("bash"), "kymo help ", environment, folder))


@pytest.mark.parametrize(
    "typed, becomes",
    [
        ("kymo exp", "kymo export "),
        ("kymo report --uni", "kymo report --unit "),
        ("kymo report --unit=n", "kymo report --unit=ns "),
        ("kymo report sec", "kymo report second\\ run.kymo/"),
        ("kymo report second\\ r", "kymo report second\\ run.kymo/"),
        ("kymo report ol", "kymo report old/"),
        ("kymo run --options pol", "kymo run --options policy="),
        ("kymo run --options policy=b", "kymo run --options policy=block "),
        ("kymo run --options pool=1m,cloc", "kymo run --options pool=1m,clock="),
        ("kymo run --options pool=1m,clock=m", "kymo run --options pool=1m,clock=monotonic "),
        ("kymo run --options=clock=t", "kymo run --options=clock=tsc "),
        ("kymo run --output=no", "kymo run --output=notes/"),
        ("kymo run -o x.kymo -- /bin/cat tra", "kymo run -o x.kymo -- /bin/cat train."),
        ("kymo run -q /bin/cat --append train.p", "kymo run -q /bin/cat --append train.py "),
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
    assert set(shells.zsh_words(setup, "kymo ", environment, folder)) == {*commands, "help"}
    assert "policy" in shells.zsh_words(setup, "kymo run --options pool=1m,", environment, folder)
    words = shells.zsh_words(setup, "kymo run --options pool=1m,policy=", environment, folder)
    assert sorted(words) == ["block", "keep-newest", "keep-oldest"]


def test_zsh_finds_the_installed_function_by_itself(program, folder, environment):
    functions = program.parent / "share" / "zsh" / "site-functions"
    if not functions.exists():
        pytest.skip("this build has no completion scripts, because it has sanitizers or is for another machine")
    setup = f"fpath=('{functions}' $fpath)\nautoload -U compinit && compinit -u -D"
    assert shells.zsh_words(setup, "kymo rep", environment, folder) == ["report"]


# ---- fish ----


@pytest.mark.parametrize("line", OFFERED)
def test_fish_offers_what_the_tables_have(script, folder, environment, line):
    assert plain(shells.fish_words(script("fish"), line, environment, folder)) == sorted(OFFERED[line])


def test_fish_offers_every_command(script, commands, folder, environment):
    assert set(shells.fish_words(script("fish"), "kymo ", environment, folder)) == {*commands, "help"}
    assert set(shells.fish_words(script("fish"), "kymo help ", environment, folder)) == set(commands)


@pytest.mark.parametrize(
    "line, words",
    [
        ("kymo run --options policy=", ["policy=block", "policy=keep-newest", "policy=keep-oldest"]),
        ("kymo run --options pool=1m,clock=t", ["pool=1m,clock=tsc"]),
        ("kymo run -o x.kymo -- /bin/cat train.p", ["train.py"]),
        ("kymo run /bin/cat --appen", []),
    ],
)
def test_fish_offers_keys_and_programs(script, folder, environment, line, words):
    assert sorted(shells.fish_words(script("fish"), line, environment, folder)) == sorted(words)


# ---- mistakes ----


def test_an_unknown_shell_is_told(kymo):
    done = kymo("completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kymo: there is no completion for 'tcsh'; the shells are bash, zsh and fish\n"
    assert kymo("completion").returncode == 2
