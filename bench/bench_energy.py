#!/usr/bin/env python3
"""What the thread that measures energy takes of a core, for each GPU.

    bench_energy.py [--quick] [--dir DIR] [--results FILE]

With the GPU of this machine where there is one; and with the stand-in of NVML that the tests use, whose functions take
next to no time: what is left is the thread's own. The figure is the CPU time of the thread by the time it measured,
without opening NVML.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_results import Results, median_with_interval, options_of

STANDIN = Path(__file__).parent.parent / "tests" / "standin" / "nvml_standin.c"
BAR_PERCENT = 0.1

MEASURE = """
import sys, time, kymo
kymo.start(sys.argv[1], energy=True)
time.sleep(float(sys.argv[2]))
kymo.stop()
processes = kymo.load(sys.argv[1]).processes
print(processes["energy_cpu_ns"][0], processes["duration_ns"][0], processes["devices"][0])
print(processes["energy_sources"][0])
"""


def share_of_a_core(folder: str, seconds: float, environment: dict[str, str]) -> tuple[float, int, str]:
    """Percent of a core, of how many GPUs, and what was read."""
    recording = tempfile.mkdtemp(dir=folder, suffix=".kymo")
    os.rmdir(recording)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, recording, str(seconds)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.rmtree(recording)
    first, _, sources = done.stdout.partition("\n")
    cpu_ns, wall_ns, *devices = first.split(" ")
    n = len([device for device in "".join(devices).split(",") if device])
    return 100 * int(cpu_ns) / int(wall_ns), n, sources.strip()


def has_nvml() -> bool:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return nvml.nvmlInit_v2() == 0


def put(results: Results, what: str, shares: list[float], n_gpus: int) -> None:
    low, middle, high = median_with_interval([share / max(n_gpus, 1) for share in shares])
    measured = f"{middle:.4f} % of a core for each of {n_gpus} [{low:.4f}, {high:.4f}]"
    results.put(what, measured, f"<= {BAR_PERCENT} %", middle <= BAR_PERCENT)


def main() -> None:
    args = options_of(__doc__).parse_args()
    results = Results(args.results)
    seconds, rounds = (5, 1) if args.quick else (15, 3)
    folder = tempfile.mkdtemp(dir=args.dir)
    if has_nvml():
        found = [share_of_a_core(folder, seconds, {}) for _ in range(rounds)]
        put(results, "energy: the thread, with the GPUs of this machine", [share for share, *_ in found], found[0][1])
        print(found[-1][2])
    else:
        results.put("energy: the thread, with the GPUs of this machine", "not here: NVML sees none")
    compiler, library = shutil.which("cc"), Path(folder) / "nvml_standin.so"
    for n_gpus in (1, 8) if compiler else ():
        script = Path(folder) / "nvml.txt"
        script.write_text(f"gpus {n_gpus}\n")
        subprocess.run(
            [compiler, "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", STANDIN, "-o", library, "-lm"], check=True
        )
        environment = {"KYMO_NVML_LIBRARY": str(library), "KYMO_STANDIN_NVML": str(script)}
        shares = [share_of_a_core(folder, seconds, environment)[0] for _ in range(rounds)]
        put(results, f"energy: the thread, with {n_gpus} stand-ins of GPUs", shares, n_gpus)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
