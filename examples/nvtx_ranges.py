"""Ranges that wait for the GPU, for Nsight Systems and for kymo's own recording.

    python examples/nvtx_ranges.py [RUN.kymo]          a recording, and its report
    nsys profile python examples/nvtx_ranges.py        the same ranges in Nsight Systems as well

It runs with and without a GPU.
"""

from __future__ import annotations

import sys

import kymo

try:
    import torch
except ImportError:
    sys.exit("this example needs torch")

# Once, in the main program. Everywhere else NVTXRangeWrapper() is the same object, switched on or off as it is here.
kymo.NVTXRangeWrapper().enable(sync_on_push=True, sync_on_pop=True, keep_track_of_range_order=True)


def step(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
    nvtx = kymo.NVTXRangeWrapper()
    nvtx.range_push("forward")
    loss: torch.Tensor = model(batch).square().mean()
    nvtx.range_pop("forward")
    nvtx.range_push("backward")
    loss.backward()
    nvtx.range_pop("backward")
    return loss


def main(path: str = "nvtx_ranges.kymo") -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).to(device)
    kymo.start(path)
    for i in range(50):
        with kymo.range("step", payload=i, category="train"):
            with kymo.range("read", domain="loader"):
                batch = torch.randn(64, 512, device=device)
            step(model, batch)
    kymo.stop()
    print(kymo.load(path).report())

    kymo.NVTXRangeWrapper().range_push("epoch")
    try:
        kymo.NVTXRangeWrapper().range_pop("step")
    except kymo.RangeError as error:
        print(f"A mistake is told before it takes effect:\n  {error}")
    kymo.NVTXRangeWrapper().range_pop("epoch")


if __name__ == "__main__":
    main(*sys.argv[1:])
