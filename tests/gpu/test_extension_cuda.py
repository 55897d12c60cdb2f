"""With a real GPU: the example extension's kernel runs, and its ranges nest in those of Python.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or CUDA compiler.

    python tests/gpu/test_extension_cuda.py
"""

from __future__ import annotations

import array
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP = 77
SOURCES = Path(__file__).resolve().parents[2] / "examples" / "extension"


def build(folder: Path) -> None:
    """Build and install the extension with CMake alone, as a machine without scikit-build-core can."""
    python = f"-DPython_EXECUTABLE={sys.executable}"
    for command in (
        ["cmake", "-S", str(SOURCES), "-B", str(folder / "build"), python],
        ["cmake", "--build", str(folder / "build")],
        ["cmake", "--install", str(folder / "build"), "--prefix", str(folder / "site")],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
    shutil.copytree(SOURCES / "src", folder / "site", dirs_exist_ok=True)


def main() -> int:
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(nvcc).exists() or not Path("/dev/nvidiactl").exists():
        print("not here: no CUDA compiler or no GPU")
        return SKIP
    os.environ["CUDACXX"] = nvcc
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        sys.path.insert(0, str(folder / "site"))
        import smooth

        import marey

        values = array.array("d", (float(i % 7) for i in range(100_000)))
        by_cpu, by_gpu = (array.array("d", values) for _ in range(2))
        marey.start(folder / "run.marey", check=True)
        with marey.range("script"):
            smooth.cpu(values, by_cpu, 3)
            smooth.cuda(values, by_gpu, 3)
        marey.stop()
        difference = max(abs(a - b) for a, b in zip(by_cpu, by_gpu))
        tree = marey.load(folder / "run.marey").tree
        rows = list(zip(tree["depth"], tree["name"], tree["count"]))
        print(f"largest difference {difference:.3g}; ranges: {rows}")
        nests = rows[0] == (0, "script", 1) and all(depth >= 1 for depth, _, _ in rows[1:]) and len(rows) >= 4
        return 0 if difference < 1e-9 and nests else 1


if __name__ == "__main__":
    sys.exit(main())
