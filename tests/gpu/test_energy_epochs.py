"""With a real GPU: joules of epochs and phases against the driver's counter, read at the same times.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch. It takes
half a minute.

    python tests/gpu/test_energy_epochs.py
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch, skip

import marey

SECONDS = 8.0


class Counter:
    """The driver's energy counter, in joules."""

    def __init__(self, uuid: str) -> None:
        try:
            self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            skip("there is no NVML")
        self.device = ctypes.c_void_p()
        found = self.nvml.nvmlInit_v2() == 0 and (
            self.nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode(), ctypes.byref(self.device)) == 0
            if uuid
            else self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0
        )
        if not found:
            skip("NVML does not answer")

    def read(self) -> float:
        mj = ctypes.c_ulonglong()
        if self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(mj)) != 0:
            skip("this GPU has no energy counter")
        return mj.value / 1000


def run(torch: Any, counter: Counter, path: Path) -> list[float]:
    """One epoch that multiplies, one that waits; the driver's joules of each."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    truth = []
    marey.start(path, energy=True)
    for works in (True, False):
        with marey.epoch():
            before, until = counter.read(), time.monotonic() + SECONDS
            with marey.phase("multiply" if works else "wait"):
                while time.monotonic() < until:
                    with marey.iteration(samples=10), marey.range("step"):
                        for _ in range(10 * works):
                            a @ a
                        torch.cuda.synchronize()
                        time.sleep(0.0 if works else 0.005)
            truth.append(counter.read() - before)
    marey.stop()
    return truth


def judge(path: Path, truth: list[float]) -> None:
    energy = marey.load(path).energy
    for text in energy(by="note")["text"]:
        print(f"  note: {text}")
    epochs = [row for row in energy(by="epoch") if row["kind"] == "gpu"]
    check("two epochs have joules", len(epochs) == 2 and all(row["joules"] is not None for row in epochs))
    for row, counted in zip(epochs, truth):
        error = row["joules"] - counted
        print(
            f"epoch {row['epoch']}: marey {row['joules']:.1f} J ± {row['plus_minus_j']:.1f} J, driver {counted:.1f} J, "
            f"{error / counted:+.2%}, mean {row['mean_w']:.0f} W, peak {row['peak_w']:.0f} W, util {row['utilization']}"
        )
        # The driver's counter moves in steps, at either end of both.
        check(f"epoch {row['epoch']}: within its uncertainty", abs(error) <= row["plus_minus_j"] + 0.1 * row["mean_w"])
    check("the first epoch is within 3 % of the driver's counter", abs(epochs[0]["joules"] / truth[0] - 1) < 0.03)
    check("work takes more than waiting", epochs[0]["mean_w"] > epochs[1]["mean_w"])
    (whole,) = (row for row in energy() if row["kind"] == "gpu")
    check("epochs take no more than the run", sum(row["joules"] for row in epochs) <= whole["joules"] * 1.001)
    check(f"one GPU is counted, and not {whole['devices']}", whole["devices"] == 1)
    check(f"joules come from the counter: {whole['measured_by']}", whole["measured_by"] == "counter")
    phases = {row["name"]: row["joules"] for row in energy(by="phase") if row["kind"] == "gpu"}
    check("phases are as their epochs", abs(phases["multiply"] / epochs[0]["joules"] - 1) < 0.02)
    step = next(row for row in energy(by="range") if row["name"] == "step")
    print(f"ranges 'step': {step['count']}, {step['joules']} J, {step['note']!r}")
    groups = [row for row in energy(by="iteration") if row["kind"] == "gpu"]
    print(f"{len(groups)} groups of iterations, the first {groups[0]['joules']} J ± {groups[0]['plus_minus_j']} J")
    check("groups of iterations have joules", all(row["joules"] is not None for row in groups[:-1]))


def main() -> int:
    torch = import_torch()
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    counter = Counter("" if uuid is None else str(uuid))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.marey"
        judge(path, run(torch, counter, path))
    print("all holds" if not FAILURES else f"{len(FAILURES)} do not hold")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
