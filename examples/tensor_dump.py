#!/usr/bin/env python3
"""Dumps the values of a small detector, and compares a later run with them.

    python tensor_dump.py dumps              writes dumps/0, dumps/1 and dumps/2, then stops
    python tensor_dump.py dumps --compare    checks for the same numbers; prints differences and ends with status 1
    python tensor_dump.py dumps --compare --bug 1     a wrong normalisation from step 1 on

A program written for ACCV-Lab's TensorDumper: only the import differs.
"""

from __future__ import annotations

import argparse
import sys

import torch

from marey.accvlab import TensorDumper  # was: from accvlab.optim_test_tools import TensorDumper


class Boxes:
    """Labelled boxes of an image: a type that the dumper does not know."""

    def __init__(self, corners: torch.Tensor, labels: list[str]) -> None:
        self.corners = corners
        self.labels = labels


class RaggedBatch:
    """Samples of different lengths, padded to one tensor."""

    def __init__(self, tensor: torch.Tensor, sample_sizes: torch.Tensor) -> None:
        self.tensor = tensor
        self.sample_sizes = sample_sizes
        self.non_uniform_dim = 1
        self.num_batch_dims = 1


# ---- one file of the program: the data ----


def load_batch(step: int) -> tuple[torch.Tensor, Boxes]:
    """Two images, channels first, with a gradient each; boxes for the first one."""
    ramp = torch.linspace(0, 1, 32)
    image = torch.stack([ramp.expand(32, 32), ramp.expand(32, 32).T, torch.full((32, 32), 0.1 * step)])
    boxes = Boxes(torch.tensor([[2, 3, 12, 20], [16, 8, 30, 30]]), ["car", "sign"])
    TensorDumper().add_tensor_data(
        "batch",
        {"images": torch.stack([image, 1 - image]), "boxes": boxes, "scratch": torch.zeros(1000)},
        TensorDumper.Type.BINARY,
        dump_type_override={"images": TensorDumper.Type.IMAGE_RGB, "corners": TensorDumper.Type.JSON},
        permute_axes_override={"images": (0, 2, 3, 1)},
        exclude=["scratch"],
    )
    return torch.stack([image, 1 - image]), boxes


# ---- another one: the model ----


def forward(weight: torch.Tensor, images: torch.Tensor, has_bug: bool) -> torch.Tensor:
    """Three layers, each in a separate range."""
    dumper = TensorDumper()
    x = images.flatten(1)[:, : weight.shape[0]]
    for layer in range(3):
        dumper.push_range(lambda: f"layer_{layer}")  # noqa: B023 (called at once, or never)
        x = torch.tanh(x @ weight)
        if layer == 1:
            x = (x - x.mean()) / (x.std() + (1e-3 if has_bug else 1e-5))
        dumper.add_tensor_data("out", x, TensorDumper.Type.JSON)
        dumper.add_tensor_data("norm", lambda: {"value": x.norm()}, TensorDumper.Type.JSON)  # noqa: B023
        dumper.pop_range()
    return x


def draw_boxes(boxes: Boxes) -> None:
    """An image of the boxes, created only if it is dumped."""
    canvas = torch.zeros(32, 32)
    for x0, y0, x1, y1 in boxes.corners.tolist():
        canvas[y0:y1, x0:x1] += 0.5
    TensorDumper().add_tensor_data("pictures.boxes", canvas, TensorDumper.Type.IMAGE_I)


# ---- the training script: only this part enables dumping ----


def train(bug_from: int) -> None:
    """Ten steps; the dumper ends the program after three."""
    dumper = TensorDumper()
    torch.manual_seed(0)
    weight = (torch.randn(64, 64) * 0.2).requires_grad_()
    for step in range(10):
        images, boxes = load_batch(step)
        out = forward(weight, images, has_bug=step >= bug_from)
        dumper.run_if_enabled(lambda: draw_boxes(boxes))  # noqa: B023
        dumper.enable_ragged_batch_dumping(as_per_sample=True)
        dumper.add_tensor_data("lengths", RaggedBatch(out.detach(), torch.tensor([3, 5])), TensorDumper.Type.JSON)
        loss = out.square().sum()
        dumper.add_grad_data("weight", weight, TensorDumper.Type.JSON)
        dumper.set_gradients(loss)
        dumper.dump()
        weight = (weight - 0.01 * torch.autograd.grad(loss, weight)[0]).detach().requires_grad_()


def main() -> None:
    """Enable and configure the dumper, and train."""
    parser = argparse.ArgumentParser(description="Dump a small model's tensors, or compare them with a dump.")
    parser.add_argument("directory")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--bug", type=int, default=1000, metavar="STEP")
    options = parser.parse_args()
    dumper = TensorDumper()
    dumper.enable(options.directory)
    dumper.register_custom_converter(Boxes, lambda boxes: {"corners": boxes.corners, "labels": boxes.labels})
    if options.compare:
        dumper.set_dump_is_compare(num_errors_per_tensor_to_show=2)
    dumper.perform_after_dump_count(3, sys.exit)
    train(options.bug)


if __name__ == "__main__":
    main()
