"""The examples: each runs and is listed, and each helper of the package is used in one."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import marey

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")

# What is run here, and what its output says. The others have tests of their own, which run_elsewhere() finds.
SHORT = {
    "accelerate_loop.py": ["backward", "optimizer"],
    "accvlab_import.py": ["step"],
    "calls_dot.py": ["dot(a:ndarray(dtype=float32, shape=(16,)), b:ndarray(dtype=float32, shape=(16,)))"],
    "count_steps.py": ["(whole iteration)", "'driver': 'marey.iteration'"],
    "cpu_use.py": ["mean of 38 iterations: ", "decode", "of a processor"],
    "faster_batches.py loader": ["loss"],
    "faster_function.py 0.2": ["joined() is faster", "B is"],
    "hf_triggers.py out": ["iteration_", ": recorded in detail"],
    "gpu_window.py": ["settled: True"],
    "look_around.py": ["can record here: True"],
    "numba_ranges.py": ["solve: 10 times"],
    "nvtx_ranges.py run.marey": ["A mismatched pop is reported before it takes effect"],
    "own_words.py": ["reported, and nothing popped", "took most"],
    "read_trace.py": ["computation", "memory, pools"],
    "signed_calls.py": ["a call is recorded as total(batch:Batch(n=3))", "Batch(n=2000)"],
    "train_torch.py 1 640": ["epoch 1 of 1: loss"],
    "trainer_switches.py runs": ["an epoch takes"],
    "training_log.py": ["epoch_time_s,1.5", "by name: ['CSVLogger']"],
}
PACKAGES = {
    "accelerate_loop.py": "accelerate",
    "accvlab_import.py": "numpy",
    "calls_dot.py": "numpy",
    "faster_batches.py": "torch",
    "hf_triggers.py": "transformers",
    "nvtx_ranges.py": "torch",
    "read_trace.py": "torch",
    "test_golden.py": "numpy",
    "train_torch.py": "torch",
}


def needs(script: str) -> None:
    package = PACKAGES.get(script)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; tools/setup test installs it where an index is at hand")


@pytest.mark.parametrize("command", SHORT)
def test_it_runs_and_says_what_its_reader_expects(command, tmp_path):
    script, *arguments = command.split()
    needs(script)
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [words for words in SHORT[command] if words not in done.stdout] == []


LOOP = """
import time
import marey

class Loader:
    def __iter__(self):
        for i in range(3):
            time.sleep(0.02)
            yield i

class Loss(float):
    backward = lambda self: None

class optimizer:
    step = staticmethod(lambda: None)

loader, model, loss_of = Loader(), float, Loss
marey.start("run.marey")
"""


def test_the_loop_of_the_readme_has_the_wait_for_its_loader_in_the_step(run_python, tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    loop = next(
        part for part in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "batch in" in part
    )
    run_python(LOOP + loop + "marey.stop()\n")
    recording = marey.load(tmp_path / "run.marey")
    ranges = {row["name"]: row for row in recording.ranges}
    steps = {row["name"]: row for row in recording.iterations}
    assert ranges["forward"]["count"] == 3
    assert "(whole iteration)" in steps, "it has no steps"
    assert steps["(whole iteration)"]["min_ns"] > steps["data"]["min_ns"] > 20_000_000


def test_golden_dumps_are_written_then_hold_then_fail(tmp_path):
    needs("test_golden.py")
    script = tmp_path / "test_golden.py"
    shutil.copy(EXAMPLES / script.name, script)

    def run(*options: str) -> int:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(script)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode

    assert run("--golden-update") == 0
    assert run() == 0
    script.write_text(script.read_text().replace("np.ones(3) / 3", "np.ones(3) / 3.001"))
    assert run() != 0


def run_elsewhere() -> set[str]:
    """Examples that another test runs."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    # All in C and C++ are built and run against an installed marey, by tests/package/installed_examples.
    compiled = {path.name for path in EXAMPLES.glob("*.c*")}
    return compiled | {name for name in scripts if any(re.search(rf"\b{name}\b", text) for text in texts)}


def test_each_example_is_run_by_a_test_and_listed():
    names = {path.name for path in EXAMPLES.glob("*.*") if path.suffix in (".py", ".c", ".cpp")}
    here = {command.split()[0] for command in SHORT} | {"test_golden.py"}
    assert names - here - run_elsewhere() == set()
    assert {name for name in names if f"]({name})" not in README} == set()
    assert {name for name in re.findall(r"\]\(([\w.]+)\)", README) if not (EXAMPLES / name).exists()} == set()


def used_names() -> set[str]:
    """All that examples use of the package, by full names."""
    used: set[str] = set()
    for path in EXAMPLES.rglob("*.py"):
        aliases = {"marey": "marey"}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "marey":
                for alias in node.names:
                    aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    used.add(f"{node.module}.{alias.name}")
        for node in ast.walk(tree):
            parts, at = [], node
            while isinstance(at, ast.Attribute):
                parts.append(at.attr)
                at = at.value
            if parts and isinstance(at, ast.Name) and at.id in aliases:
                used.add(".".join([aliases[at.id], *reversed(parts)]))
    return used


# What a helper gives or raises, met by its use.
RESULTS = (
    "Breakdown|Comparison|Diff|Dump|DumpHandle|Findings|FunctionComparison|MareyError|Measurement|Range|Recording|"
    "Report|Scaling|StateError|StopwatchStats|Table|Tracing|Point|__version__"
)


# Of marey.Profile, marey.plot, pstats.Stats, marey.numba_nvtx, as other tools have them; parts of itwinai's commands.
SECOND_NAMES = r"marey\.(profiler\.(Profile|Stats|plot)|accvlab\.numba_nvtx\.\w+|itwinai\.\w+)"


def test_each_helper_is_in_an_example():
    page = (ROOT / "docs" / "reference" / "python-names.md").read_text(encoding="utf-8")
    helpers = set(re.findall(r"^\| `(marey\.[\w.]+)", page, re.MULTILINE))
    assert {f"marey.{name}" for name in marey.__all__} <= helpers
    helpers = {name for name in helpers if not re.fullmatch(SECOND_NAMES, name)}
    used = used_names()
    missing = {name for name in helpers if not any(u == name or u.startswith(f"{name}.") for u in used)}
    assert {name for name in missing if not re.search(rf"\.({RESULTS})$", name)} == set()
