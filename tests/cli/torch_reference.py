"""Profile a few steps of a small model by torch and write what torch itself makes of them, for kymo to be judged by.

    python torch_reference.py DIR

Writes trace.json, rows.json (the rows of key_averages by name alone and by shapes and stack), tables (TEXT of
key_averages().table()) and stacks.txt.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 8, 3, stride=2, padding=1, dilation=2, groups=2)
        self.linear = nn.Linear(8 * 7 * 7, 10)

    def forward(self, x):
        x = torch.relu(self.convolution(x))
        return Doubled.apply(self.linear(x.flatten(1)))


def multiply(size: int) -> None:
    torch.mm(torch.ones(size, 3), torch.ones(3, 4))


def step(net: nn.Module, optimizer: torch.optim.Optimizer, size: int) -> None:
    with record_function("kymo:forward"):
        loss = net(torch.randn(size, 4, 16, 16)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    multiply(size)
    torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    torch.add(torch.ones(5), torch.tensor(1.0) * 3)
    torch.cat([torch.ones(2, 2), torch.ones(3, 2)])


def write_rows(prof: profile, into: Path) -> None:
    rows = {}
    for name, by_shapes, depth in (("plain", False, 0), ("whole", True, 5)):
        averages = prof.key_averages(group_by_input_shape=by_shapes, group_by_stack_n=depth)
        rows[name] = [
            {
                "name": row.key,
                "calls": row.count,
                "cpu_us": row.cpu_time_total,
                "self_cpu_us": row.self_cpu_time_total,
                "cpu_bytes": row.cpu_memory_usage,
                "self_cpu_bytes": row.self_cpu_memory_usage,
                "flops": row.flops,
                "shapes": str(row.input_shapes),
                "stack": ";".join(row.stack),
            }
            for row in averages
        ]
        for key in ("self_cpu_time_total", "count", "cpu_memory_usage"):
            (into / f"table-{name}-{key}.txt").write_text(averages.table(sort_by=key, row_limit=40))
    (into / "rows.json").write_text(json.dumps(rows))


def main(into: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    step(net, optimizer, 2)  # what is only done once is not what is tested
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    options = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}
    with profile(activities=[ProfilerActivity.CPU], experimental_config=verbose, **options) as prof:
        for size in (2, 2, 3):
            step(net, optimizer, size)
        other = threading.Thread(target=multiply, args=(7,))
        other.start()
        other.join()
    prof.export_chrome_trace(str(into / "trace.json"))
    prof.export_stacks(str(into / "stacks.txt"), "self_cpu_time_total")
    write_rows(prof, into)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
