"""Ranges that wait for the GPU, for Nsight Systems and for marey.

    python examples/nvtx_ranges.py [RUN.marey]         a recording, and its report
    nsys profile python examples/nvtx_ranges.py        the same ranges in Nsight Systems as well

It runs with and without a GPU.
"""

from __future__ import annotations

import sys

import marey

try:
    import torch
except ImportError:
    sys.exit("this example needs torch")

# Once, in the main program. Elsewhere NVTXRangeWrapper() returns the same object, enabled or not.
marey.NVTXRangeWrapper().enable(sync_on_push=True, sync_on_pop=True, keep_track_of_range_order=True)


def step(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
    nvtx = marey.NVTXRangeWrapper()
    nvtx.range_push("forward")
    loss: torch.Tensor = model(batch).square().mean()
    nvtx.range_pop("forward")
    nvtx.range_push("backward")
    loss.backward()
    nvtx.range_pop("backward")
    return loss


def main(path: str = "nvtx_ranges.marey") -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).to(device)
    marey.start(path)
    for i in range(50):
        with marey.range("step", payload=i, category="train"):
            with marey.range("read", domain="loader"):
                batch = torch.randn(64, 512, device=device)
            step(model, batch)
    marey.stop()
    print(marey.load(path).report())

    marey.NVTXRangeWrapper().range_push("epoch")
    try:
        marey.NVTXRangeWrapper().range_pop("step")
    except marey.RangeError as error:
        print(f"A mismatched pop is reported before it takes effect:\n  {error}")
    marey.NVTXRangeWrapper().range_pop("epoch")


if __name__ == "__main__":
    main(*sys.argv[1:])
