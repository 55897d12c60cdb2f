"""Run the gauntlet's programs under `marey run` and judge the diagnosis; bench/bench_gauntlet.py prints the figures."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Optional, Union

from catalog import HEALTHY, SLOW, Healthy, Slow

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = HERE / "programs"
BUILD = Path(os.environ.get("MAREY_BUILD", ROOT / "build" / "dev"))
MAREY = BUILD / "cli" / "marey"
MARK = re.compile(r"(?:#|/\*) planted: ([a-z-]+)")
INNER = re.compile(r"(\.<locals>)?\.<(listcomp|dictcomp|setcomp|genexpr|lambda)>$")  # counts as the function around it
C_FUNCTION = re.compile(r"\w[\w *]*?(\w+)\(")
TIME = re.compile(r"([\d.]+) ms/\w+")
LIMIT_S = 300
EXPERIMENTAL = {"exposed-communication", "throttled"}
WITHOUT_PLACE = {"cpu-oversubscribed", "memory-leak", "memory-near-limit", "throttled"}  # risks that name no function

Program = Union[Slow, Healthy]


def rules() -> set[str]:
    """Ids of the findings that exist."""
    files = (ROOT / "core" / "analyze" / "diagnosis").glob("finding_*.c")
    return {file.stem[len("finding_") :].replace("_", "-") for file in files}


# ---- programs ----


def source_of(program: Program, is_fixed: bool) -> str:
    text = (PROGRAMS / program.file).read_text()
    if is_fixed:
        fix = next(each.fix for each in SLOW if each.file == program.file)
        for old, new in fix:
            if text.count(old) != 1:
                raise ValueError(f"{program.file}: {text.count(old)} times in the program: {old!r}")
            text = text.replace(old, new)
    return text


class _Functions(ast.NodeVisitor):
    """The qualified name of the innermost function around a line; comprehensions belong to the function around them."""

    def __init__(self, line: int) -> None:
        self.line, self.scope, self.found = line, [], "<module>"

    def visit(self, node: ast.AST) -> None:
        named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if named:
            self.scope.append(node.name)
            if not isinstance(node, ast.ClassDef):
                if node.lineno <= self.line <= (node.end_lineno or 0):
                    self.found = ".".join(self.scope)
                self.scope.append("<locals>")
        self.generic_visit(node)
        if named:
            self.scope = self.scope[: -1 if isinstance(node, ast.ClassDef) else -2]


def planted_in(file: str) -> tuple[str, str, list[int]]:
    """Id, function and lines of what is planted in a program."""
    text = (PROGRAMS / file).read_text()
    lines = text.splitlines()
    marks = [(i, found[1]) for i, line in enumerate(lines, 1) if (found := MARK.search(line))]
    if file.endswith(".c"):
        heads = (C_FUNCTION.match(line) for line in lines[: marks[0][0]])
        return marks[0][1], [head[1] for head in heads if head][-1], [i for i, _ in marks]
    functions = _Functions(marks[0][0])
    functions.visit(ast.parse(text))
    return marks[0][1], functions.found, [i for i, _ in marks]


def find_python(version: Optional[str]) -> Optional[str]:
    if version is None:
        return os.environ.get("MAREY_PYTHON", sys.executable)
    kept = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python"))
    return str(kept[0]) if kept else shutil.which(f"python{version}")


def missing(program: Program, is_rule_needed: bool = True) -> str:
    """Why a program cannot run here; empty if it can. A program whose rule does not exist yet waits for it."""
    if program.file.endswith(".c") and shutil.which("cc") is None:
        return "needs a C compiler"
    packages = [name for name in program.needs if importlib.util.find_spec(name) is None]
    if packages:
        return "needs " + ", ".join(packages)
    if program.is_gpu and not os.path.exists("/dev/nvidiactl"):
        return "needs a GPU"
    if isinstance(program, Healthy) and find_python(program.python) is None:
        return f"needs Python {program.python}"
    if isinstance(program, Slow) and is_rule_needed and planted_in(program.file)[0] not in rules():
        return f"there is no rule {planted_in(program.file)[0]} yet"
    return ""


def name_of(program: Program) -> str:
    words = [program.file, program.arguments, "2 threads" * (program.threads == 2)]
    if isinstance(program, Healthy):
        words += [f"Python {program.python}" if program.python else ""]
    return ", ".join(word for word in words if word)


# ---- runs ----


class Run:
    """One run of a program: the time of a step, the CPU time with that of its children, the wall time."""

    def __init__(self, folder: Path, program: Program, is_fixed: bool, recording: Optional[Path]) -> None:
        home = folder / ("fixed" if is_fixed else "slow")
        home.mkdir(parents=True, exist_ok=True)
        script = home / program.file
        script.write_text(source_of(program, is_fixed))
        python = find_python(program.python if isinstance(program, Healthy) else None)
        command = [str(python), str(script)]
        if script.suffix == ".c":
            command = [str(script.with_suffix(""))]
            compiler = ["cc", "-O2", "-g", "-pthread", "-o", *command, str(script), "-lm"]
            subprocess.run(compiler, check=True, capture_output=True)
        command += shlex.split(program.arguments)
        if recording is not None:
            command = [str(MAREY), "run", "--force", "-o", str(recording), *command]
        threads = {name: str(program.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        environment = {**os.environ, **threads, "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"}
        if python != sys.executable:
            environment.pop("PYTHONPATH", None)
        out_path, error_path = home / "out.txt", home / "error.txt"
        began = time.perf_counter()
        with out_path.open("w") as out, error_path.open("w") as error:
            child = subprocess.Popen(command, cwd=home, env=environment, stdout=out, stderr=error)
        late = threading.Timer(LIMIT_S, child.kill)
        late.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except KeyboardInterrupt:
            child.terminate()
            raise
        finally:
            late.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        self.wall_s = time.perf_counter() - began
        self.cpu_s = usage.ru_utime + usage.ru_stime
        if child.returncode != 0:
            raise RuntimeError(f"{program.file} ended with {child.returncode}: {error_path.read_text()[-2000:]}")
        found = TIME.findall(out_path.read_text())
        self.step_ms = float(found[-1]) if found else 1e3 * self.wall_s  # by the program's own clock


def diagnosis_of(recording: Path, is_experimental: bool) -> dict[str, Any]:
    command = [str(MAREY), "report", str(recording), "--json"]
    if is_experimental:
        command += ["--diagnosis", "--experimental"]
    done = subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    nothing = {
        "findings": [],
        "verdict": "",
        "steps": None,
        "cost": {"measured": False},
    }  # it ended before the first sample
    found: dict[str, Any] = json.loads(done.stdout)
    return found if is_experimental else found.get("diagnosis", nothing)


def run(folder: Path, program: Program, is_fixed: bool, recording: Optional[Path]) -> Run:
    """Run once more if torch's gloo aborts at the end, as it does in one of ten runs, with and without marey."""
    for _ in range(4):
        try:
            return Run(folder, program, is_fixed, recording)
        except RuntimeError as error:
            if "terminated with signal SIGABRT" not in str(error):
                raise
    return Run(folder, program, is_fixed, recording)


def record(program: Program, is_fixed: bool, folder: Path) -> tuple[dict[str, Any], Run]:
    recording = folder / "run.marey"
    recorded = run(folder, program, is_fixed, recording)
    try:
        is_experimental = isinstance(program, Slow) and planted_in(program.file)[0] in EXPERIMENTAL
        return diagnosis_of(recording, is_experimental), recorded
    finally:
        shutil.rmtree(recording, ignore_errors=True)


# ---- judging ----


def short(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding for the file of results."""
    where = finding["where"][0] if finding["where"] else {}
    return {
        "id": finding["id"],
        "function": where.get("function"),
        "line": where.get("line"),
        "file": Path(where["file"]).name if where.get("file") else None,
        "gain": finding["gain"],
        "because": [short(cause) for cause in finding["because"]],
        "claim": finding["claim"],
    }


def rank_of(findings: list[dict[str, Any]], planted: str) -> Optional[int]:
    """The place of a finding, counted from 1; the cause of a finding counts as that finding."""
    for i, finding in enumerate(findings, 1):
        if planted in (finding["id"], *(cause["id"] for cause in finding["because"])):
            return i
    return None


def is_there(finding: dict[str, Any], planted: tuple[str, str, list[int]], file: str) -> bool:
    ident, function, lines = planted
    causes = (cause for cause in finding["because"] if cause["id"] == ident)
    entry = finding if finding["id"] == ident else next(causes)
    named = INNER.sub("", entry["function"] or "")
    last = function.rpartition(".")[2]
    return entry["file"] == file and entry["line"] in lines and named in (function, last)


def judge_slow(program: Slow, folder: Path, n_rounds: int) -> dict[str, Any]:
    """Record the slow program and its twin, then time both in turns, without marey."""
    planted = planted_in(program.file)
    slow, recorded = record(program, False, folder)
    fixed, _ = record(program, True, folder)
    runs = [(run(folder, program, False, None), run(folder, program, True, None)) for _ in range(n_rounds)]
    findings = [short(each) for each in slow["findings"]]
    rank = rank_of(findings, planted[0])
    found = findings[rank - 1] if rank else None
    is_right = bool(found and (planted[0] in WITHOUT_PLACE or is_there(found, planted, program.file)))
    result = {
        "program": name_of(program), "planted": planted[0], "function": planted[1], "lines": planted[2],
        "findings": findings, "rank": rank, "is_place_right": is_right,
        "fixed": [short(each) for each in fixed["findings"]],
        "verdict": slow["verdict"], "verdict_fixed": fixed["verdict"], "cost_claimed": slow["cost"],
    }  # fmt: skip
    if runs:
        is_whole = slow["steps"] is None or program.is_whole_run
        pairs = [(1e3 * a.wall_s, 1e3 * b.wall_s) if is_whole else (a.step_ms, b.step_ms) for a, b in runs]
        result["ms"] = pairs
        result["measured"] = statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)
        result["measured_least"] = min(a for a, _ in pairs) / max(b for _, b in pairs)
        result["cost_cpu"] = recorded.cpu_s / statistics.median(a.cpu_s for a, _ in runs) - 1
    if found and found["gain"]:
        result["at_most"] = found["gain"]["at_most"]
    return result


def judge_healthy(program: Healthy, folder: Path) -> dict[str, Any]:
    diagnosis, recorded = record(program, program.is_fixed, folder)
    findings = [short(each) for each in diagnosis["findings"]]
    return {
        "program": name_of(program), "findings": findings, "verdict": diagnosis["verdict"], "wall_s": recorded.wall_s,
        "cost_claimed": diagnosis["cost"],
    }  # fmt: skip


def wilson(k: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    if n == 0:
        return 0.0, 1.0
    z, p = 1.96, k / n
    center, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (center - half) / (1 + z * z / n)), min(1.0, (center + half) / (1 + z * z / n))


def is_fixed_silent(result: dict[str, Any]) -> bool:
    """Is the planted cause no longer found at its place in the fixed twin? Another place may come to light."""
    rank = rank_of(result["fixed"], result["planted"])
    return rank is None or result["fixed"][rank - 1]["function"] != result["function"]


def all_programs() -> list[Program]:
    return [*SLOW, *HEALTHY]
