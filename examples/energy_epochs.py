"""How much energy does an epoch take?

    python examples/energy_epochs.py [RUN.marey]

Two epochs on the GPU if PyTorch finds one, else on the CPU. If energy cannot be measured, the program prints why and
continues: measuring never makes a training fail.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import marey

BATCH, SECONDS = 64, 2.5


def make_step() -> tuple[str, Callable[[], Any]]:
    """Work that takes energy: a matrix product, or sums in Python without PyTorch."""
    try:
        import torch
    except ImportError:
        return "the CPU, by Python alone", lambda: sum(i * i for i in range(200_000))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a = torch.rand(4096 if device == "cuda" else 512, 4096 if device == "cuda" else 512, device=device)

    def step() -> None:
        for _ in range(20):
            a @ a
        if device == "cuda":
            torch.cuda.synchronize()  # otherwise the step would end after the launch, not after the work

    return f"{device}, by PyTorch", step


def train(step: Callable[[], Any]) -> None:
    for _ in range(2):
        with marey.epoch():
            until = time.monotonic() + SECONDS
            with marey.phase("train"):
                while time.monotonic() < until:
                    with marey.iteration(samples=BATCH):
                        step()
            with marey.phase("evaluate"):
                time.sleep(0.5)  # an idle GPU also takes energy


def show(path: str) -> None:
    run = marey.load(path)
    try:
        epochs = run.energy(by="epoch")
    except marey.MareyError as error:
        print(f"No energy was measured: {error}")
        for text in run.table("warnings")["text"]:
            print(f"  {text}")
        return
    for row in epochs:
        if row["joules"] is None:
            print(f"epoch {row['epoch']}, {row['kind']}: {row['note']}")
            continue
        per_sample = "" if row["joules_per_sample"] is None else f", {row['joules_per_sample']:.3g} J for a sample"
        print(
            f"epoch {row['epoch']}, {row['kind']}: {row['joules']:.0f} J ± {row['plus_minus_j']:.0f} J, "
            f"mean {row['mean_w']:.0f} W{per_sample}"
        )
    for row in run.energy(by="phase"):
        joules = row["note"] if row["joules"] is None else f"{row['joules']:.0f} J ± {row['plus_minus_j']:.0f} J"
        print(f"phase {row['name']}, {row['kind']}: {joules}")
    for text in run.energy(by="note")["text"]:
        print(f"note: {text}")


def main() -> None:
    folder = tempfile.TemporaryDirectory()
    path = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder.name) / "energy.marey")
    where, step = make_step()
    print(f"Two epochs on {where}")
    marey.start(path, energy=True)
    path = marey.recording_path()  # the path of `marey run`, if it runs this program
    train(step)
    marey.stop()
    show(path)
    folder.cleanup()


if __name__ == "__main__":
    main()
