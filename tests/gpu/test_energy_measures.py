"""With a real GPU: cost and update periods of NVML's readings, and energy of 30 s of work against integrated power.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch. It takes
a minute and a half.

    python tests/gpu/test_energy_measures.py
"""

from __future__ import annotations

import csv
import ctypes
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch, skip

Series = list[tuple[int, float]]

# An unmodified program: it multiplies for a number of seconds, and prints the driver's joules.
MATMUL = """
import ctypes, sys, time, torch
nvml = ctypes.CDLL("libnvidia-ml.so.1")
handle, mj = ctypes.c_void_p(), [ctypes.c_ulonglong(), ctypes.c_ulonglong()]
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(mj[0]))
began = time.monotonic()
while time.monotonic() < began + float(sys.argv[1]):
    for _ in range(10):
        a @ a
    torch.cuda.synchronize()
nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(mj[1]))
print((mj[1].value - mj[0].value) / 1000, time.monotonic() - began)
"""


class Field(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint) for name in ("id", "scope")),
        *((name, ctypes.c_longlong) for name in ("stamp", "latency")),
        *((name, ctypes.c_int) for name in ("type", "status")),
        ("value", ctypes.c_ulonglong),
    ]


class Sample(ctypes.Structure):
    _fields_ = [("stamp", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class Metric(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint),
        ("status", ctypes.c_int),
        ("value", ctypes.c_double),
        ("names", ctypes.c_void_p * 3),
    ]


class Metrics(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("n", ctypes.c_uint),
        ("before", ctypes.c_void_p),
        ("after", ctypes.c_void_p),
        ("metrics", Metric * 256),
    ]


class Nvml:
    """NVML's readings, each a function that returns a number."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            skip("there is no NVML")
        self.device = ctypes.c_void_p()
        if self.library.nvmlInit_v2() != 0 or self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            skip("NVML does not answer")
        self.gpm = [ctypes.c_void_p(), ctypes.c_void_p()]
        self.samples = (Sample * 512)()

    def ask(self, function: str, *args: Any, kind: Any = ctypes.c_uint) -> float:
        out = kind()
        error = getattr(self.library, function)(self.device, *args, ctypes.byref(out))
        return float(out.value) if error == 0 else float("nan")

    def instant(self) -> float:
        field = Field(id=186)
        error = self.library.nvmlDeviceGetFieldValues(self.device, 1, ctypes.byref(field))
        return float(field.value & 0xFFFFFFFF) if error == 0 and field.status == 0 else float("nan")

    def power(self) -> float:
        return self.ask("nvmlDeviceGetPowerUsage")

    def energy(self) -> float:
        return self.ask("nvmlDeviceGetTotalEnergyConsumption", kind=ctypes.c_ulonglong)

    def energy_field(self) -> float:
        field = Field(id=83)
        error = self.library.nvmlDeviceGetFieldValues(self.device, 1, ctypes.byref(field))
        return float(field.value) if error == 0 and field.status == 0 else float("nan")

    def ring(self, kind: int) -> float:
        """The number of samples."""
        n, type_of = ctypes.c_uint(len(self.samples)), ctypes.c_int()
        error = self.library.nvmlDeviceGetSamples(
            self.device, kind, ctypes.c_ulonglong(0), ctypes.byref(type_of), ctypes.byref(n), self.samples
        )
        return float(n.value) if error == 0 else float("nan")

    def gpm_sample(self) -> float:
        if not self.gpm[0]:
            for sample in self.gpm:
                self.library.nvmlGpmSampleAlloc(ctypes.byref(sample))
        self.gpm.reverse()
        return float(self.library.nvmlGpmSampleGet(self.device, self.gpm[1]) or 0)

    def gpm_metrics(self) -> float:
        got = Metrics(version=1, n=4, before=self.gpm[0], after=self.gpm[1])
        for i, metric in enumerate((2, 3, 5, 10)):
            got.metrics[i].id = metric
        return float("nan") if self.library.nvmlGpmMetricsGet(ctypes.byref(got)) else got.metrics[0].value

    def memory(self) -> float:
        out = (ctypes.c_ulonglong * 3)()
        return float(out[2]) if self.library.nvmlDeviceGetMemoryInfo(self.device, out) == 0 else float("nan")

    def readings(self) -> dict[str, Callable[[], float]]:
        wide = {"kind": ctypes.c_ulonglong}
        return {
            "instant power": self.instant,
            "power usage": self.power,
            "total energy": self.energy,
            "utilization samples": lambda: self.ring(1),
            "total energy, by field": self.energy_field,
            "power samples": lambda: self.ring(0),
            "GPM sample": self.gpm_sample,
            "GPM metrics": self.gpm_metrics,
            "SM clock": lambda: self.ask("nvmlDeviceGetClockInfo", 1),
            "memory clock": lambda: self.ask("nvmlDeviceGetClockInfo", 2),
            "temperature": lambda: self.ask("nvmlDeviceGetTemperature", 0),
            "throttle reasons": lambda: self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", **wide),
            "memory used": self.memory,
        }


def print_costs(nvml: Nvml, when: str) -> None:
    print(f"what a reading takes, {when}: median on the wall, mean of CPU time, worst on the wall; in us")
    for name, read in nvml.readings().items():
        wall, cpu = [], []
        for _ in range(40):
            began, cpu_began = time.perf_counter_ns(), time.thread_time_ns()
            value = read()
            cpu.append((time.thread_time_ns() - cpu_began) / 1000)
            wall.append((time.perf_counter_ns() - began) / 1000)
            time.sleep(0.01)
        times = f"{statistics.median(wall):9.1f} {statistics.mean(cpu):9.1f} {max(wall):9.1f}"
        print(f"  {name:20} {times}   last value {value:.0f}")


def print_period(what: str, read: Callable[[], float]) -> None:
    """The update period of a value, read as fast as possible for two seconds."""
    changes, last, end = [], read(), time.monotonic() + 2
    while time.monotonic() < end:
        value = read()
        if value != last:
            changes.append(time.monotonic())
            last = value
    steps = [b - a for a, b in zip(changes, changes[1:])]
    print(f"  {what} changes every {statistics.median(steps) * 1000:.1f} ms" if steps else f"  {what} does not change")


def counters(recording: Path) -> dict[str, Series]:
    done = subprocess.run(
        [sys.executable, "-m", "marey", "export", str(recording), "--to", "csv", "-o", "-"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Series] = defaultdict(list)
    for row in csv.DictReader(io.StringIO(done.stdout)):
        if row["kind"] == "counter" and row["category"] == "energy":
            found[row["name"]].append((int(row["start_ns"]), float(row["value"])))
    return found


def integral(power: Series, begin: int, end: int) -> float:
    """Joules from `begin` to `end`, straight lines between readings."""
    joules = 0.0
    for (t0, p0), (t1, p1) in zip(power, power[1:]):
        a, b = max(t0, begin), min(t1, end)
        if a < b:
            slope = (p1 - p0) / (t1 - t0)
            joules += (2 * p0 + slope * (a - t0 + b - t0)) / 2 * (b - a) / 1e9
    return joules


def check_matmul(torch: Any, folder: Path) -> None:
    """Half a minute in three epochs, measured in the process."""
    import marey

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    marey.start(folder / "matmul.marey", energy=True)
    for _ in range(3):
        with marey.epoch():
            end = time.monotonic() + 10
            while time.monotonic() < end:
                for _ in range(10):
                    a @ a
                torch.cuda.synchronize()
    marey.stop()
    found = counters(folder / "matmul.marey")
    for name, series in sorted(found.items()):
        values = [value for _, value in series]
        print(f"  {name:28} {len(values):5} values, {min(values):.6g} to {max(values):.6g}")
    energy, power = found["GPU 0 energy (J)"], found["GPU 0 power (W)"]
    counted = energy[-1][1] - energy[0][1]
    integrated = integral(power, energy[0][0], energy[-1][0])
    print(f"  readings of the counter: {[round((ns - energy[0][0]) / 1e9, 2) for ns, _ in energy]} s")
    check(
        f"30 s of matmul: counter {counted:.1f} J, integrated {integrated:.1f} J, {counted / integrated - 1:+.2%}",
        abs(counted / integrated - 1) < 0.03,
    )
    # Where it is dear not all edges of epochs so short are read, for the thread stays within its bar.
    check("the counter was read at the start and the end", energy[-1][0] - energy[0][0] > 29e9)
    steps = [b - a for (a, _), (b, _) in zip(power, power[1:])]
    print(f"  power: a value every {statistics.median(steps) / 1e6:.1f} ms, at most {max(steps) / 1e6:.1f} ms apart")
    busy = [value for _, value in found["GPU 0 utilization (%)"]]
    check(f"utilization under load is {statistics.mean(busy):.1f} %", statistics.mean(busy) > 90)
    loaded = marey.load(folder / "matmul.marey")
    processes = loaded.processes
    share = processes["energy_cpu_ns"][0] / processes["duration_ns"][0]
    print(f"  {processes['energy_sources'][0]}")
    check(f"the thread took {share:.4%} of a core", share <= 0.001)
    print(loaded.energy(by="epoch"))
    uuid = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
    check(f"devices are {processes['devices'][0]}, torch says {uuid}", uuid in processes["devices"][0])


def check_run(folder: Path) -> None:
    """`marey run --energy` of a program without marey, against what it reads itself; the device by its UUID."""
    import marey

    uuid = marey.load(folder / "matmul.marey").processes["devices"][0].split(",")[0]
    recording = folder / "run.marey"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "marey", "run", "-q", "--energy", "-o", str(recording)),
            sys.executable,
            "-c",
            MATMUL,
            "12",
        ],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": uuid[:20]},
        capture_output=True,
        text=True,
        check=True,
    )
    print(f"  marey run says: {done.stderr.strip() or 'nothing'}")
    joules, seconds = map(float, done.stdout.split())
    found = counters(recording)
    check(f"only {uuid} is measured", {name[:5] for name in found if "GPU" in name} == {"GPU 0"})
    energy, power = found["GPU 0 energy (J)"], found["GPU 0 power (W)"]
    peak = max(value for _, value in power)
    # What the program did not read: its start and end, at a power between idle and peak.
    rest = (energy[-1][0] - energy[0][0]) / 1e9 - seconds
    more = energy[-1][1] - energy[0][1] - joules
    check(
        f"the program counted {joules:.1f} J in {seconds:.1f} s, the run {joules + more:.1f} J, {rest:.1f} s longer",
        0 <= more <= rest * peak + 0.02 * joules,
    )


def main() -> int:
    torch = import_torch()
    nvml = Nvml()
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    print_costs(nvml, "idle")
    for _ in range(12000):  # some ten seconds of work, which goes on meanwhile
        a @ a
    print_costs(nvml, "while it works")
    print_period("instant power", nvml.instant)
    print_period("power usage", nvml.power)
    print_period("the energy counter", nvml.energy)
    torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        check_matmul(torch, Path(folder))
        check_run(Path(folder))
    print("all holds" if not FAILURES else f"{len(FAILURES)} do not hold")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
