"""Use an installed wheel: import, record, report, both forms of the command, support for C extensions.

python wheel_smoke.py        status 0 when all of it works

Run it in an environment that has the wheel and nothing else, in an empty folder far from the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import marey

PROGRAM = """
import marey
with marey.range("outer"):
    with marey.range("inner"):
        pass
raise SystemExit(7)
"""
# How the command can be started.
WAYS = {"python -m marey": [sys.executable, "-m", "marey"], "marey": [str(Path(sys.executable).with_name("marey"))]}


def run(command: list[str], expected: int = 0, **more: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)
    assert done.returncode == expected, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def check_package() -> None:
    package = Path(marey.__file__).parent
    assert package.is_relative_to(sys.prefix), f"{package} is not this environment's"
    marey.start("api.marey")
    for step in range(3):
        with marey.range("step", payload=step):
            marey.counter("loss", 1 / (step + 1))
    marey.stop()
    recording = marey.load("api.marey")
    assert recording.ranges.row(name="step")["count"] == 3
    assert "step" in recording.report()


def check_command(name: str, command: list[str]) -> None:
    recording = f"{name.replace(' ', '-')}.marey"
    assert run([*command, "--version"]) == f"marey {marey.__version__}\n"
    names = run([*command, "help", "--names"]).split()
    for word in names:
        assert run([*command, word, "--help"]).startswith(f"Usage: marey {word} ")
        assert run([*command, word, "--no-such-option"], 2) == ""
    # Unmodified programs are entered, and their status comes back.
    run([*command, "run", "--only", "ranges", "-o", recording, "--", sys.executable, "program.py"], 7)
    run([*command, "run", "--only", "ranges", "--", "./not-there"], 3)
    assert "inner" in run([*command, "report", recording, "--tree"])
    run([*command, "export", recording, "--to", "csv", "-o", f"{recording}.csv"])
    assert "inner" in Path(f"{recording}.csv").read_text()
    run([*command, "report", "not-there.marey"], 2)


def check_page() -> None:
    """The wheel carries the viewer of the report page, where it was built with Node; then there is Node here, too."""
    recording = marey.load("api.marey")
    recording.to_html("page.html")
    html = Path("page.html").read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>") and html.endswith("</html>\n")
    has_viewer = 'id="index"' in html
    assert has_viewer or shutil.which("npm") is None, "the wheel was built without the viewer"
    assert recording.page().html == html
    run([*WAYS["marey"], "compare", "api.marey", "api.marey", "--html", "compare.html"])
    assert ('id="index"' in Path("compare.html").read_text(encoding="utf-8")) == has_viewer


def check_c() -> None:
    """A program in C is built with what the package says and records by the environment."""
    include, libraries = marey.get_include(), marey.get_library_dir()
    assert Path(include, "marey", "marey.h").exists() and Path(libraries, "libmarey.so.0").exists()
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler, so nothing was built in C")
        return
    Path("in_c.c").write_text('#include <marey/marey.h>\nint main(void) { MAREY_SCOPE("in C"); return 0; }\n')
    run([compiler, "in_c.c", "-o", "in_c", f"-I{include}", f"-L{libraries}", "-lmarey", f"-Wl,-rpath,{libraries}"])
    run(["./in_c"], env={**os.environ, "MAREY": "c.marey"})
    assert marey.load("c.marey").ranges["name"] == ["in C"]


def check_share() -> None:
    share = Path(sys.prefix, "share")
    assert (share / "man" / "man1" / "marey-report.1").read_text().startswith(".TH MAREY")
    assert "complete -F _marey marey" in (share / "bash-completion" / "completions" / "marey").read_text()


def main() -> None:
    assert not Path("python").exists(), "run this in an empty folder"
    Path("program.py").write_text(PROGRAM)
    check_package()
    for name, command in WAYS.items():
        check_command(name, command)
    check_page()
    check_c()
    check_share()
    print(f"marey {marey.__version__} works with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
