"""Reading a trace of torch.profiler: operators, computation and communication, memory; also as a recording.

    python examples/read_trace.py [TRACE.json]

Without a trace it makes one, of a few steps of a small model on the CPU.
"""

import sys
import tempfile
from pathlib import Path

import marey


def make_trace(folder: Path) -> Path:
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    model, path = torch.nn.Linear(256, 256), folder / "trace.json"
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True) as prof:
        for _ in range(3):
            with record_function("step"):
                model(torch.randn(64, 256)).sum().backward()
    prof.export_chrome_trace(str(path))
    return path


def main(folder: Path) -> None:
    trace = Path(sys.argv[1]) if len(sys.argv) > 1 else make_trace(folder)
    operators = marey.operators(trace, by_name=True)
    print(f"{len(operators)} operators; largest self time: {operators['name'][0]}")
    print(marey.breakdown(trace))
    for name, table in marey.memory_report(trace).items():
        print(f"memory, {name}: {len(table)} rows")
    run = marey.import_trace(trace, folder / "trace.marey")
    print(run.report(limit=5))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
