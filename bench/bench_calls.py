#!/usr/bin/env python3
"""Overhead of the call profiler per call, against cProfile, for each installed Python.

    bench_calls.py [--quick] [--dir DIR] [--results FILE]

Each candidate is a loop of calls, run without a profiler, under cProfile, and under marey.Profile without and with
signatures: all of them in each round, in rotating order, on one core, by CPU time. The overhead of a profiler is the
loop's time minus that of the bare loop in the same round, per call. The figure is the median of the ratios to cProfile.

The running Python is measured with its installed marey. Others, from 3.10 on, come from pyenv (or MAREY_PYTHONS, a
colon-separated list of paths), if cmake is available: the required parts of marey are built for each in
build/bench-3.X. A Python without numpy gets it in an environment there. Both are kept for the next run. The last line
lists the measured versions.
"""

from __future__ import annotations

import contextlib
import cProfile
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from itertools import repeat
from pathlib import Path
from typing import Any, Callable, Optional

from bench_results import Results, median_with_interval, options_of

ROOT = Path(__file__).resolve().parent.parent
NUMPY = {"3.10": "2.2.6", "3.11": "2.2.6", "3.12": "2.2.6", "3.13": "2.2.6"}
DATA_PROFILER_NS = 3900.0  # per call with signatures, measured once with its build for Python 3.8

LOOP = """
def loop(n, f, a, b):
    clock = thread_time_ns
    started = clock()
    for _ in repeat(None, n):
        {statement}
    return clock() - started
"""

# ---- in the measured Python ----


def empty() -> None:
    pass


def takes_two(a: Any, b: Any) -> None:
    pass


def workloads() -> dict[str, tuple[str, Any, Any, Any]]:
    """Return the statement of each loop, the function and two arguments."""
    found: dict[str, tuple[str, Any, Any, Any]] = {
        "no arguments": ("f()", empty, None, None),
        "a built-in": ("f(a)", len, [1, 2], None),
        "int and str": ("f(a, b)", takes_two, 1, "text"),
        "list and dict": ("f(a, b)", takes_two, [1, 2, 3], {"a": 1, "b": 2}),
    }
    with contextlib.suppress(ImportError):
        import numpy as np

        array = np.zeros(16, dtype=np.float32)
        found["two arrays"] = ("f(a, b)", takes_two, array, np.zeros((4, 8)))
        found["array and int"] = ("f(a, b)", takes_two, array, 1)
    with contextlib.suppress(ImportError):
        import torch

        found["two tensors"] = ("f(a, b)", takes_two, torch.zeros(16), torch.zeros(4, 8))
    return found


def profilers() -> dict[str, Callable[[], Any]]:
    import marey

    return {
        "cProfile": cProfile.Profile,
        "plain": lambda: marey.Profile(signatures=False),
        "signatures": lambda: marey.Profile(signatures=True),
    }


def loop_of(statement: str) -> Callable[..., int]:
    scope: dict[str, Any] = {"thread_time_ns": time.thread_time_ns, "repeat": repeat}
    exec(LOOP.format(statement=statement), scope)
    loop: Callable[..., int] = scope["loop"]
    return loop


def time_one(loop: Callable[..., int], n: int, make: Optional[Callable[[], Any]], given: tuple[Any, ...]) -> float:
    if make is None:
        return loop(n, *given) / n
    profile = make()
    profile.enable()
    try:
        return loop(n, *given) / n
    finally:
        profile.disable()


def measure(rounds: int, n: int) -> dict[str, dict[str, list[float]]]:
    """Return the overhead of each profiler per call, for each workload and round."""
    candidates: list[tuple[str, Optional[Callable[[], Any]]]] = [("bare", None), *profilers().items()]
    added: dict[str, dict[str, list[float]]] = {}
    for name, (statement, *given) in workloads().items():
        loop = loop_of(statement)
        added[name] = {candidate: [] for candidate, _ in candidates[1:]}
        for _, make in candidates:  # warm-up: new types, caches
            time_one(loop, 1000, make, tuple(given))
        for i in range(rounds):
            turn = candidates[i % len(candidates) :] + candidates[: i % len(candidates)]
            ns = {candidate: time_one(loop, n, make, tuple(given)) for candidate, make in turn}
            for candidate in added[name]:
                added[name][candidate].append(ns[candidate] - ns["bare"])
    return added


def words_here() -> str:
    """Describe the measured versions."""
    numpy, torch = (sys.modules.get(name) for name in ("numpy", "torch"))
    beside = [f"numpy {numpy.__version__}" if numpy else "no numpy", *([f"torch {torch.__version__}"] if torch else [])]
    return f"Python {platform.python_version()} ({', '.join(beside)})"


def measure_here(is_quick: bool) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    added = measure(5 if is_quick else 31, 20_000 if is_quick else 200_000)
    print(json.dumps({"what": words_here(), "added": added}))


# ---- every Python ----


def version_of(python: str) -> Optional[str]:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def pythons() -> dict[str, str]:
    """Return a Python for each version from 3.10 on, including the running one."""
    if "MAREY_PYTHONS" in os.environ:
        paths = [path for path in os.environ["MAREY_PYTHONS"].split(":") if path]
    else:
        root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
        paths = [str(path) for path in sorted(root.glob("versions/3.*/bin/python"))]
    if shutil.which("cmake") is None:
        paths = []
    found = {version: path for path in paths if (version := version_of(path)) in NUMPY}
    found[f"{sys.version_info[0]}.{sys.version_info[1]}"] = sys.executable
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


def run(*command: Any) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
        raise RuntimeError(f"{command[0]} failed")


def has_numpy(python: str) -> bool:
    return subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0


def with_numpy(version: str, python: str, folder: Path) -> str:
    """Return that Python if it has numpy, else one in an environment with numpy, if possible."""
    inner = folder / "venv" / "bin" / "python"
    if has_numpy(python):
        return python
    try:
        if not inner.exists():
            run(python, "-m", "venv", folder / "venv")
        if not has_numpy(str(inner)):
            run(inner, "-m", "pip", "install", "-q", "--retries=1", "--only-binary=:all:", f"numpy=={NUMPY[version]}")
    except RuntimeError:
        print(f"  Python {version}: numpy {NUMPY[version]} cannot be installed; its rows are skipped", file=sys.stderr)
        return python
    return str(inner)


def prepare(version: str, python: str) -> tuple[str, dict[str, str]]:
    """Build the required parts of marey; return a Python with numpy, and an environment in which it finds marey."""
    folder = ROOT / "build" / f"bench-{version}"
    options = ["-DMAREY_BUILD_PYTHON=ON", "-DMAREY_BUILD_EXAMPLES=OFF", f"-DPython_EXECUTABLE={python}"]
    print(f"  Python {version}: building marey in {folder.relative_to(ROOT)}", flush=True)
    run("cmake", "--preset", "release", "-S", ROOT, "-B", folder, *options)
    run("cmake", "--build", folder, "--target", "marey", "marey_python_native")
    paths = {"PYTHONPATH": str(folder / "python"), "LD_LIBRARY_PATH": str(folder / "core")}
    return with_numpy(version, python, folder), dict(os.environ, **paths)


def measure_python(version: str, python: str, is_quick: bool) -> tuple[str, dict[str, dict[str, list[float]]]]:
    """Return a description of the versions, and the results of measure()."""
    environment = dict(os.environ)
    if python != sys.executable:
        python, environment = prepare(version, python)
    command = [python, __file__, "--here", *["--quick"] * is_quick]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT / "bench")
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "it said nothing")
    measured = json.loads(done.stdout.splitlines()[-1])
    return measured["what"], measured["added"]


# ---- the table ----


def put_ratio(results: Results, what: str, rows: dict[str, list[float]], candidate: str, bar: Optional[float]) -> None:
    ratios = [ours / theirs for ours, theirs in zip(rows[candidate], rows["cProfile"])]
    low, middle, high = median_with_interval(ratios)
    ours, theirs = statistics.median(rows[candidate]), statistics.median(rows["cProfile"])
    measured = f"{middle:.2f} x [{low:.2f}, {high:.2f}], {ours:.0f} ns; cProfile {theirs:.0f} ns"
    results.put(what, measured, f"{bar:g} x cProfile" if bar else "", middle <= bar if bar else None)


def put_python(results: Results, version: str, measured: dict[str, dict[str, list[float]]]) -> None:
    has_monitoring = int(version.split(".")[1]) >= 12
    for workload in ("no arguments", "a built-in"):
        what = f"Python {version}: a call, {workload}, no signatures"
        put_ratio(results, what, measured[workload], "plain", 0.5 if has_monitoring else 1.0)
    for workload in ("int and str", "array and int", "two arrays", "list and dict", "two tensors"):
        if workload not in measured:
            continue
        bar = 1.25 if workload != "two tensors" else None
        put_ratio(results, f"Python {version}: a call, {workload}, signatures", measured[workload], "signatures", bar)
    if "two arrays" in measured:
        times = DATA_PROFILER_NS / statistics.median(measured["two arrays"]["signatures"])
        what = f"Python {version}: two arrays, against data_profiler's 3.9 us"
        results.put(what, f"{times:.0f} x less", "25 x less", times >= 25)


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("--here", action="store_true", help="measure the running Python alone, and print JSON")
    options = parser.parse_args()
    if options.here:
        measure_here(options.quick)
        return 0
    results = Results(options.results)
    measured, failed = [], []
    for version, python in pythons().items():
        try:
            what, added = measure_python(version, python, options.quick)
        except RuntimeError as error:
            print(f"bench: Python {version}: {error}", file=sys.stderr)
            failed.append(f"Python {version}")
            continue
        put_python(results, version, added)
        measured.append(what)
    print(f"  measured: {', '.join(measured) or 'none'}" + (f"; not measured: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
