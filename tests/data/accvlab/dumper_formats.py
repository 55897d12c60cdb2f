"""Every form of a value, converters, overrides, gradients, ragged batches and ranges; ends itself after three dumps.

python dumper_formats.py FOLDER [old]

`old` compares one step with what is in FOLDER.
"""

import sys

import numpy as np
import torch
from accvlab.batching_helpers import RaggedBatch
from accvlab.optim_test_tools import TensorDumper

Type = TensorDumper.Type
SIZE = 4


def gradient_image(size, blue):
    """Red grows to the right, green downwards."""
    image = torch.empty(size, size, 3)
    image[..., 0] = torch.arange(size)[None, :] / (size - 1)
    image[..., 1] = torch.arange(size)[:, None] / (size - 1)
    image[..., 2] = blue
    return image


def boxes(count, shift):
    corners = torch.arange(count) % 2
    return torch.stack([corners, corners, corners + 1 + shift, corners + 2], dim=-1)


class Wrapper:
    def __init__(self, tensor):
        self.tensor = tensor
        self.note = 'made "here" \u2192 there'


dumper = TensorDumper()
dumper.enable(sys.argv[1])
dumper.perform_after_dump_count(1 if "old" in sys.argv else 3, sys.exit)
if "old" in sys.argv:
    dumper.set_dump_is_compare(eps_numerical_data=0.0)
dumper.register_custom_converter(Wrapper, lambda x: {"tensor": x.tensor, "note": x.note})

for i in range(10):
    images = [gradient_image(SIZE, blue + 0.1 * (i + 1)) for blue in (0.0, 0.5, 1.0, 0.25, 0.75)]
    small = [gradient_image(2, blue + 0.1 * (i + 1)) for blue in (0.0, 0.5)]
    corners = [boxes(3, shift) for shift in range(3)]
    wrapped = Wrapper(images[0])
    for number in (0, 2, 4):
        images[number].requires_grad = True
    combined = torch.stack([torch.stack([images[0], images[1]]), torch.stack([images[2], images[3]])])
    combined = torch.permute(combined[:, None], (0, 1, 3, 5, 4, 2))

    dumper.add_tensor_data("images.first", images[0], Type.IMAGE_RGB)
    dumper.add_tensor_data(
        "images.others",
        {"second": images[1], "third": images[2], "boxes": corners[0]},
        Type.IMAGE_RGB,
        dump_type_override={"boxes": Type.JSON},
    )
    dumper.add_tensor_data(
        "images.others",
        {
            "binary_1": images[3],
            "binary_2": images[4],
            "combined": combined,
            "wrapped": wrapped,
            "left_out": torch.ones(10, 10),
        },
        Type.BINARY,
        dump_type_override={"combined": Type.IMAGE_BGR},
        permute_axes_override={"combined": (0, 1, 5, 2, 4, 3)},
        exclude=["left_out"],
    )
    dumper.add_tensor_data("images.others", {"small_1": small[0], "small_2": small[1]}, Type.JSON)
    dumper.add_tensor_data(
        "kinds",
        {
            "half": torch.tensor([0.1, 65504.0, 6e-8], dtype=torch.float16),
            "brain": torch.tensor([0.1, 1e30], dtype=torch.bfloat16),
            "double": torch.tensor([0.1, 1e16, 1e-5], dtype=torch.float64),
            "integer": torch.tensor([[-1], [2**62]]),
            "truth": torch.tensor([True, False]),
            "empty": torch.zeros(2, 0),
            "array": np.arange(3, dtype=np.float32) / 3,
            "number": 0.1,
            "nothing": None,
            "list": [torch.tensor(0.2), "text", {"deep": torch.tensor(3)}],
        },
        Type.JSON,
    )

    dumper.add_grad_data("images.first", images[0], Type.IMAGE_RGB, None)
    dumper.add_grad_data("images.others", {"second": images[1], "third": images[2]}, Type.IMAGE_RGB)
    dumper.add_grad_data("images.others", {"binary_1": images[3], "binary_2": images[4]}, Type.BINARY)

    def draw_and_add(corners=corners):
        def drawn(corners):
            image = torch.zeros(SIZE, SIZE)
            for x1, y1, x2, y2 in corners:
                image[y1:y2, x1:x2] += 0.25
            return image

        pictures = {"boxes1": drawn(corners[0]), "more": {"boxes2": drawn(corners[1]), "boxes3": drawn(corners[2])}}
        dumper.add_tensor_data("images.others", pictures, Type.IMAGE_I)

    dumper.run_if_enabled(draw_and_add)

    ragged = RaggedBatch(torch.arange(15.0).reshape(3, 5) / 3, sample_sizes=torch.tensor([3, 5, 1]))
    dumper.enable_ragged_batch_dumping(as_per_sample=True)
    dumper.add_tensor_data("ragged.batch_1", ragged, Type.JSON)
    dumper.enable_ragged_batch_dumping(as_per_sample=False)
    dumper.add_tensor_data("ragged.batch_2", ragged, Type.JSON)

    for inner in range(4):
        dumper.push_range(lambda inner=inner: f"inner_{inner}")
        dumper.add_tensor_data("dummy.tensor", torch.tensor(inner), Type.JSON)
        dumper.pop_range()

    summed = [torch.sum(images[number] * images[number]) for number in (2, 4)]
    dumper.set_gradients(summed)
    dumper.dump()
