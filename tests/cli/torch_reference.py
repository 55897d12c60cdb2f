"""Profile a few steps of a small model with torch and write torch's results, as a reference for marey.

    python torch_reference.py DIR [TRACE.json.gz ...]

Writes trace.json, rows.json (the rows of key_averages by name alone and by shapes and stack), tables (the text of
key_averages().table()) and stacks.txt; and for each TRACE, whose events are given to torch's own classes,
gpu-TRACE.txt.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from pathlib import Path

import torch
from torch import nn
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, _rewrite_name
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
    with record_function("marey:forward"):
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


HOST = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"}


def event_of(event: dict) -> FunctionEvent:
    args = event.get("args", {})
    shapes = [[] if any(isinstance(n, list) for n in dims) else dims for dims in args.get("Input Dims", [])]
    return FunctionEvent(
        id=args.get("External id", 0),
        name=_rewrite_name(event["name"], with_wildcard=True),
        thread=event["tid"],
        start_us=event["ts"],
        end_us=event["ts"] + event["dur"],
        input_shapes=shapes,
        stack=[],
        use_device="cuda",
        device_type=DeviceType.CPU if event["cat"] in HOST else DeviceType.CUDA,
        is_user_annotation="annotation" in event["cat"],
    )


def write_gpu_table(trace: Path, into: Path) -> None:
    """What torch's classes make of the events of a trace, work being given to the operators whose ids it has."""
    raw = [e for e in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] if e.get("cat") in HOST | DEVICE]
    base = min(event["ts"] for event in raw)
    for event in raw:
        event["ts"] = round(event["ts"] - base, 3)
    pairs = sorted(((event, event_of(event)) for event in raw), key=lambda pair: (pair[0]["ts"], -pair[0]["dur"]))
    operators = {made.id: made for event, made in pairs if event["cat"] == "cpu_op"}
    for event, made in pairs:
        if event["cat"] in DEVICE and event["cat"] != "gpu_user_annotation" and made.id in operators:
            operators[made.id].append_kernel(made.name, made.device_index, event["dur"])
    events = EventList([made for _, made in pairs], use_device="cuda")
    events._build_tree()
    averages = events.key_averages(group_by_input_shapes=True, group_by_stack_n=5)
    name = trace.name.removesuffix(".json.gz")
    (into / f"gpu-{name}.txt").write_text(averages.table(sort_by="self_cuda_time_total", row_limit=60))


def main(into: Path, traces: list[Path]) -> None:
    for trace in traces:
        write_gpu_table(trace, into)
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
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
