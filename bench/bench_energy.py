#!/usr/bin/env python3
"""CPU share of the energy thread, per GPU.

    bench_energy.py [--quick] [--dir DIR] [--results FILE]

With the GPU of this machine, if any, in runs of 30 s and 10 s, because the last readings weigh more in a short run; and
with the tests' fake NVML, whose functions take almost no time, which leaves the cost of the thread. The figure is the
CPU time of the thread over the measured time, without opening NVML.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_results import Results, options_of

STANDIN = Path(__file__).parent.parent / "tests" / "standin" / "nvml_standin.c"
BAR_PERCENT = 0.1

MEASURE = """
import sys, time, marey
marey.start(sys.argv[1], energy=True)
time.sleep(float(sys.argv[2]))
marey.stop()
processes = marey.load(sys.argv[1]).processes
print(processes["energy_cpu_ns"][0], processes["duration_ns"][0], processes["devices"][0])
print(processes["energy_sources"][0])
"""


def share_of_a_core(folder: str, seconds: float, environment: dict[str, str]) -> tuple[float, int, str]:
    """Percent of a core, number of GPUs, and the sources."""
    recording = tempfile.mkdtemp(dir=folder, suffix=".marey")
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


def put(results: Results, what: str, share: float, n_gpus: int, is_judged: bool = True) -> None:
    share /= max(n_gpus, 1)
    bar = (f"<= {BAR_PERCENT} %", share <= BAR_PERCENT) if is_judged else ()
    results.put(what, f"{share:.4f} % of a core for each of {n_gpus}", *bar)


def main() -> None:
    args = options_of(__doc__).parse_args()
    results = Results(args.results)
    folder = tempfile.mkdtemp(dir=args.dir)
    if has_nvml():
        for seconds in (5,) if args.quick else (10, 30):
            share, n_gpus, sources = share_of_a_core(folder, seconds, {})
            what = f"energy: the thread, with the GPUs of this machine, for {seconds} s"
            put(results, what, share, n_gpus, is_judged=seconds == 30)
            print(sources)
    else:
        results.put("energy: the thread, with the GPUs of this machine", "not here: NVML sees none")
    compiler, library = shutil.which("cc"), Path(folder) / "nvml_standin.so"
    for n_gpus in (1, 8) if compiler else ():
        script = Path(folder) / "nvml.txt"
        script.write_text(f"gpus {n_gpus}\nring 20 119\nbusy_ring 200 71\n")
        subprocess.run(
            [compiler, "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", STANDIN, "-o", library, "-lm"], check=True
        )
        environment = {"MAREY_NVML_LIBRARY": str(library), "MAREY_STANDIN_NVML": str(script)}
        share, *_ = share_of_a_core(folder, 5 if args.quick else 15, environment)
        put(results, f"energy: the thread, with {n_gpus} stand-ins of GPUs", share, n_gpus)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
