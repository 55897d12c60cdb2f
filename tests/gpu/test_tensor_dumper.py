"""With a real GPU: marey.TensorDumper takes torch's CUDA tensors as they are at the call, of any stream and type.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_tensor_dumper.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch

import marey


def read_step(folder: Path, step: int = 0) -> dict[str, tuple[dict[str, Any], bytes]]:
    """The line and the bytes of each tensor."""
    lines = [json.loads(line) for line in (folder / f"step-{step:08}.jsonl").read_text().splitlines()]
    data = (folder / f"step-{step:08}.safetensors").read_bytes()
    start = lines[0]["data_start"]
    values = [line for line in lines[1:] if "offset" in line]
    return {line["name"]: (line, data[start + line["offset"] :][: line["bytes"]]) for line in values}


def bytes_of(x: Any) -> bytes:
    import torch

    return bytes(x.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())


class ByDLPack:
    """An array of a library that speaks DLPack alone."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


class ByInterface:
    """One that has __cuda_array_interface__, as Numba's do."""

    def __init__(self, tensor: Any) -> None:
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


def values_at_the_call(torch: Any, folder: Path) -> None:
    dumper = marey.TensorDumper(folder)
    x = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
    wanted = {"before": x.clone()}
    torch.cuda._sleep(50_000_000)  # so that nothing of what follows has happened when the calls return
    dumper.add_tensor_data("before", x)
    x.mul_(2)
    wanted["after"] = x.clone()
    dumper.add_tensor_data("after", x)
    x.zero_()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        y = torch.full((1000, 3), 7.0, device="cuda")
        dumper.add_tensor_data("side", y)
        wanted["side"] = y.clone()
        y.zero_()
    dumper.dump()
    dumper.disable()
    found = read_step(folder)
    for name, tensor in wanted.items():
        check(f"{name} is the value at the call", found[name][1] == bytes_of(tensor))


def types_and_strides(torch: Any, folder: Path) -> None:
    dumper = marey.TensorDumper(folder)
    raw = torch.arange(96, dtype=torch.uint8, device="cuda")
    wanted = {}
    names = ("bool", "int8", "int64", "float16", "bfloat16", "float64", "complex64", "float8_e4m3fn", "float8_e5m2")
    for name in names:
        wanted[name] = (raw % 2 if name == "bool" else raw).view(getattr(torch, name)).reshape(2, -1)
    square = torch.arange(64.0, device="cuda").reshape(8, 8)
    wanted |= {"transposed": square.t(), "strided": square[::3, 1::2], "expanded": square[:, :1].expand(8, 5)}
    wanted |= {"scalar": square[3, 4], "empty": square[:0], "parameter": torch.nn.Parameter(square)}
    for name, tensor in wanted.items():
        dumper.add_tensor_data(name, tensor)
    dumper.add_tensor_data("dlpack", ByDLPack(square[::2]))
    dumper.add_tensor_data("interface", ByInterface(square[1::2]))
    wanted |= {"dlpack": square[::2], "interface": square[1::2]}
    dumper.dump()
    dumper.disable()
    found = read_step(folder)
    for name, tensor in wanted.items():
        line, data = found[name]
        check(f"{name} has its shape and its bytes", line["shape"] == list(tensor.shape) and data == bytes_of(tensor))


def models(torch: Any, folder: Path) -> None:
    torch.manual_seed(0)
    dumper = marey.TensorDumper(folder)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 16, device="cuda")
    with dumper.dump_module(model, params=True, grads=True, optimizer=optimizer):
        out = model(x)
        out.square().mean().backward()
        gradient = model[0].weight.grad.clone()
        optimizer.step()
        dumper.dump()
    dumper.disable()
    found = read_step(folder)
    check("the model's output", found["model.out"][1] == bytes_of(out))
    check("the first layer's gradient", found["%grad.0.grad.weight"][1] == bytes_of(gradient))
    check("the parameter behind the step", found["optimizer.param.0.weight"][1] == bytes_of(model[0].weight))


def comparisons(torch: Any, folder: Path) -> None:
    dumper = marey.TensorDumper(folder, layout="accvlab")
    data = {"json": torch.randn(20, device="cuda"), "image": torch.rand(8, 8, 3, device="cuda")}
    override = {"image": marey.TensorDumper.Type.IMAGE_RGB}

    def add() -> None:
        dumper.add_tensor_data("d", data, marey.TensorDumper.Type.JSON, override)

    add()
    dumper.dump()
    dumper.reset_dump_count()
    add()
    dumper.compare_to_dumped_data()
    dumper.reset_dump_count()
    data["json"][7] += 1
    add()
    try:
        dumper.compare_to_dumped_data()
        check("a number that changed is found", False)
    except ValueError as error:
        check("a number that changed is found", "d.json[7]" in str(error) and "image" not in str(error))
    dumper.disable()


def main() -> int:
    torch = import_torch()
    with tempfile.TemporaryDirectory() as folder:
        for part in (values_at_the_call, types_and_strides, models, comparisons):
            part(torch, Path(folder) / part.__name__)
            marey.TensorDumper().reset()
    print(f"{len(FAILURES)} of the above do not hold" if FAILURES else "all holds")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
