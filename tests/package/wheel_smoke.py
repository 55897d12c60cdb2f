"""Use an installed wheel: import, record, report, the command in both its forms, what C extensions ask for.

python wheel_smoke.py        status 0 when all of it works

Run it in an environment that has the wheel and nothing else, in an empty folder far from the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import kymo

PROGRAM = """
import kymo
with kymo.range("outer"):
    with kymo.range("inner"):
        pass
raise SystemExit(7)
"""
# How the command can be started.
WAYS = {"python -m kymo": [sys.executable, "-m", "kymo"], "kymo": [str(Path(sys.executable).with_name("kymo"))]}


def run(command: list[str], expected: int = 0, **more: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)
    assert done.returncode == expected, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def check_package() -> None:
    package = Path(kymo.__file__).parent
    assert package.is_relative_to(sys.prefix), f"{package} is not this environment's"
    kymo.start("api.kymo")
    for step in range(3):
        with kymo.range("step", payload=step):
            kymo.counter("loss", 1 / (step + 1))
    kymo.stop()
    recording = kymo.load("api.kymo")
    assert recording.ranges.row(name="step")["count"] == 3
    assert "step" in recording.report()


def check_command(name: str, command: list[str]) -> None:
    recording = f"{name.replace(' ', '-')}.kymo"
    assert run([*command, "--version"]) == f"kymo {kymo.__version__}\n"
    names = run([*command, "help", "--names"]).split()
    for word in names:
        assert run([*command, word, "--help"]).startswith(f"Usage: kymo {word} ")
        assert run([*command, word, "--no-such-option"], 2) == ""
    # Unmodified programs are entered, and their status comes back.
    run([*command, "run", "-o", recording, "--", sys.executable, "program.py"], 7)
    run([*command, "run", "--", "./not-there"], 3)
    assert "inner" in run([*command, "report", recording, "--tree"])
    run([*command, "export", recording, "--to", "csv", "-o", f"{recording}.csv"])
    assert "inner" in Path(f"{recording}.csv").read_text()
    run([*command, "report", "not-there.kymo"], 2)


def check_page() -> None:
    """The wheel carries the viewer of the report page, where it was built with Node; then there is Node here, too."""
    recording = kymo.load("api.kymo")
    recording.to_html("page.html")
    html = Path("page.html").read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>") and html.endswith("</html>\n")
    has_viewer = 'id="index"' in html
    assert has_viewer or shutil.which("npm") is None, "the wheel was built without the viewer"
    assert recording.page().html == html
    run([*WAYS["kymo"], "compare", "api.kymo", "api.kymo", "--html", "compare.html"])
    assert ('id="index"' in Path("compare.html").read_text(encoding="utf-8")) == has_viewer


def check_c() -> None:
    """A program in C is built with what the package says and records by the environment."""
    include, libraries = kymo.get_include(), kymo.get_library_dir()
    assert Path(include, "kymo", "kymo.h").exists() and Path(libraries, "libkymo.so.0").exists()
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler, so nothing was built in C")
        return
    Path("in_c.c").write_text('#include <kymo/kymo.h>\nint main(void) { KYMO_SCOPE("in C"); return 0; }\n')
    run([compiler, "in_c.c", "-o", "in_c", f"-I{include}", f"-L{libraries}", "-lkymo", f"-Wl,-rpath,{libraries}"])
    run(["./in_c"], env={**os.environ, "KYMO": "c.kymo"})
    assert kymo.load("c.kymo").ranges["name"] == ["in C"]


def check_share() -> None:
    share = Path(sys.prefix, "share")
    assert (share / "man" / "man1" / "kymo-report.1").read_text().startswith(".TH KYMO")
    assert "complete -F _kymo kymo" in (share / "bash-completion" / "completions" / "kymo").read_text()


def main() -> None:
    assert not Path("python").exists(), "run this in an empty folder"
    Path("program.py").write_text(PROGRAM)
    check_package()
    for name, command in WAYS.items():
        check_command(name, command)
    check_page()
    check_c()
    check_share()
    print(f"kymo {kymo.__version__} works with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
