"""With a real GPU: `marey run --nvtx` records the NVTX events of PyTorch and NCCL.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_nvtx_told.py
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch

STEPS = 20

# What is run under `marey run --nvtx`. A job of one rank makes NCCL's calls, and needs no second GPU.
PROGRAM = f"""
import os
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
with torch.autograd.profiler.emit_nvtx(record_shapes=True):
    for step in range({STEPS}):
        torch.cuda.nvtx.range_push("step")
        model(torch.randn(16 + step, 64, device="cuda")).sum().backward()
        torch.cuda.nvtx.range_pop()
torch.cuda.nvtx.mark("done")
started = torch.cuda.nvtx.range_start("async")
torch.cuda.nvtx.range_end(started)
torch.cuda.synchronize()

if torch.distributed.is_available() and torch.distributed.is_nccl_available():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    values = torch.ones(1024, device="cuda")
    for _ in range({STEPS}):
        torch.distributed.all_reduce(values)
    torch.cuda.synchronize()
    torch.distributed.destroy_process_group()
    print("NCCL")
"""


def record(folder: Path, *options: str) -> tuple[Path, str]:
    """Run the program; return the recording and its output."""
    import marey

    script, path = folder / "program.py", folder / f"run{len(options)}.marey"
    script.write_text(PROGRAM)
    command = Path(marey.__file__).parent / "bin" / "marey"
    done = subprocess.run(
        [command, "run", "--only", "ranges", "--quiet", *options, "-o", path, "--", sys.executable, script],
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    check(f"the program ends well: {done.returncode} {done.stderr[-500:]!r}", done.returncode == 0)
    return path, done.stdout


def payloads_of(trace: list[dict[str, Any]], name: str) -> list[Any]:
    return [e.get("args", {}).get("payload") for e in trace if e.get("name") == name and e["ph"] == "X"]


def check_torch(path: Path, trace: list[dict[str, Any]]) -> None:
    import marey

    recording = marey.load(path)
    ranges = dict(zip(recording.ranges["name"], recording.ranges["count"]))
    print(f"{len(ranges)} names, {sum(ranges.values())} ranges, for example {sorted(ranges)[:12]}")
    check(f"each step is a range: {ranges.get('step')}", ranges.get("step") == STEPS)
    check(
        f"aten::linear twice a step, under one name: {ranges.get('aten::linear')}",
        ranges.get("aten::linear") == 2 * STEPS,
    )
    check("no name has a number that varies", not any(re.search(r", (seq|op_id|sizes) = ", name) for name in ranges))
    shapes = payloads_of(trace, "aten::linear")
    print(f"payloads of aten::linear: {shapes[:2]}")
    check("shapes are payloads", len(shapes) == 2 * STEPS and all("sizes = [[" in str(s) for s in shapes))
    check("the mark is there", "done" in recording.marks["name"])
    check("the async range is there", "async" in recording.async_ranges["name"])
    print(f"warnings: {recording.warnings}; lost: {recording.lost_events}")
    check("nothing was lost", recording.lost_events == 0)


def check_nccl(path: Path, trace: list[dict[str, Any]]) -> None:
    import marey

    sites = marey.load(path).sites
    names = sorted({n for n, d in zip(sites["name"], sites["domain"]) if d == "NCCL"})
    print(f"of the domain NCCL: {names}")
    check("NCCL's calls are ranges", "ncclAllReduce" in names)
    payloads = payloads_of(trace, "ncclAllReduce")
    print(f"{len(payloads)} calls of ncclAllReduce, the last with {payloads[-1:]}")
    check("each call has its size", len(payloads) >= STEPS and all("4096" in str(p) for p in payloads[-STEPS:]))


def main() -> int:
    import_torch()
    with tempfile.TemporaryDirectory() as name:
        import marey

        folder = Path(name)
        path, printed = record(folder, "--nvtx")
        file = folder / "trace.json"
        marey.load(path).export("chrome", file)
        trace = json.loads(file.read_text())["traceEvents"]
        check_torch(path, trace)
        if "NCCL" in printed:
            check_nccl(path, trace)
        else:
            print("this torch has no NCCL")
        both, _ = record(folder, "--nvtx", "--gpu")
        kernels = len(marey.load(both).kernels["name"])
        check(f"with --gpu as well: {kernels} kernels by name", kernels > 0)
    print("all holds" if not FAILURES else f"{len(FAILURES)} do not hold")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
