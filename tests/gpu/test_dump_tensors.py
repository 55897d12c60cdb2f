"""With a real GPU: dumps have the value at the call, without waiting, and memory may be reused.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_dump_tensors.py
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "bench"))
from dump_library import CUDA, Dumper, Tensor, describe

DTYPES = {"float32": 12, "bfloat16": 11, "int64": 9, "uint8": 2, "bool": 1, "float8_e4m3fn": 17}


def on_gpu(torch: Any, x: Any) -> Tensor:
    tensor = describe(x.data_ptr(), DTYPES[str(x.dtype).removeprefix("torch.")], tuple(x.shape), tuple(x.stride()))
    tensor.memory, tensor.device = CUDA, x.device.index
    tensor.stream = torch.cuda.current_stream(x.device).cuda_stream
    return tensor


def read_step(folder: Path, step: int) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    """The bytes of each tensor, and all lines."""
    lines = [json.loads(line) for line in (folder / f"step-{step:08}.jsonl").read_text().splitlines()]
    data = (folder / f"step-{step:08}.safetensors").read_bytes()
    start = lines[0]["data_start"]
    values = [line for line in lines[1:] if "seq" in line]
    found = {v["name"]: data[start + v["offset"] :][: v["bytes"]] for v in values if "offset" in v}
    return found, values


def bytes_of(x: Any) -> bytes:
    import torch

    return bytes(x.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())


def at_the_call(torch: Any, dumper: Dumper, folder: Path) -> None:
    dumper.enable(folder)
    x = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
    dumper.add(b"first", on_gpu(torch, x))  # creates the stream, the pool and the ring, which takes a while
    dumper.flush()
    dumper.wait()
    expected = bytes_of(x)
    torch.cuda._sleep(50_000_000)  # so that nothing of what follows has happened when the calls return
    dumper.add(b"before", on_gpu(torch, x))
    # Asked for here: what torch does next may load kernels, for which the driver waits.
    check("the call comes back while the GPU is still busy", not torch.cuda.current_stream().query())
    x.zero_()
    dumper.add(b"after", on_gpu(torch, x))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = torch.full((1000, 3), 7.0, device="cuda")
        dumper.add(b"side", on_gpu(torch, y))
        y.add_(1)
    dumper.flush()
    dumper.wait()
    found, _ = read_step(folder, 1)
    check("a tensor that is changed in place right after the call is dumped as it was", found["before"] == expected)
    check("and the next one as it is then", found["after"] == bytes(len(expected)))
    check("another stream has its own order", found["side"] == bytes_of(torch.full((1000, 3), 7.0)))
    dumper.disable()


def reused_memory(torch: Any, dumper: Dumper, folder: Path) -> None:
    dumper.enable(folder, no_stats=1)
    n, wrong = 200, 0
    for _ in range(4):
        torch.cuda._sleep(20_000_000)
        for i in range(n):
            x = torch.full((64, 1024), float(i), device="cuda")
            dumper.add(f"t{i}".encode(), on_gpu(torch, x))
            del x  # the next one takes its memory
        dumper.flush()
    dumper.wait()
    for step in range(4):
        found, _ = read_step(folder, step)
        wrong += sum(found[f"t{i}"] != bytes_of(torch.full((64, 1024), float(i))) for i in range(n))
    check(f"tensors whose memory is reused at once are right ({wrong} of {4 * n} wrong)", wrong == 0)
    dumper.disable()


def layouts_and_types(torch: Any, dumper: Dumper, folder: Path) -> None:
    dumper.enable(folder)
    x = torch.randn(257, 129, device="cuda")
    wide = torch.randn(4096, 4096, device="cuda")
    tensors = {
        "plain": x,
        "transposed": x.t(),
        "expanded": x[:1].expand(50, 129),
        "strided": x[::3, ::2],
        "column": wide[:, 5],
        "columns": wide[:, 8:24],
        "bfloat16": x.to(torch.bfloat16),
        "float8": x.to(torch.float8_e4m3fn),
        "bool": x > 0,
        "int64": torch.arange(1000, device="cuda"),
        "scalar": torch.tensor(3.5, device="cuda"),
        "empty": torch.empty(0, 4, device="cuda"),
        "large": torch.randn(90 << 20, device="cuda"),
    }
    for name, tensor in tensors.items():
        dumper.add(name.encode(), on_gpu(torch, tensor))
    dumper.flush()
    dumper.wait()
    found, _ = read_step(folder, 0)
    for name, tensor in tensors.items():
        check(f"{name} is right", found.get(name) == bytes_of(tensor))
    check("nothing failed", dumper.counts().n_failed == 0)
    dumper.disable()


def captures(torch: Any, dumper: Dumper, folder: Path) -> None:
    dumper.enable(folder)
    x = torch.ones(1024, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        dumper.add(b"captured", on_gpu(torch, y))
    graph.replay()
    dumper.add(b"replayed", on_gpu(torch, y))
    dumper.flush()
    dumper.wait()
    found, values = read_step(folder, 0)
    check("a tensor of a capture is missing, and said to be", values[0].get("missing") == "gpu")
    check("after the replay it is right", found["replayed"] == bytes_of(torch.full((1024,), 2.0)))
    dumper.disable()


def threads(torch: Any, dumper: Dumper, folder: Path) -> None:
    import threading

    dumper.enable(folder, no_stats=1)

    def work(k: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(50):
                x = torch.full((1000,), float(k * 1000 + i), device="cuda")
                dumper.add(f"thread{k}.t{i}".encode(), on_gpu(torch, x))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    dumper.flush()
    dumper.wait()
    found, _ = read_step(folder, 0)
    numbers = [(k, i) for k in range(4) for i in range(50)]
    right = all(found[f"thread{k}.t{i}"] == bytes_of(torch.full((1000,), float(k * 1000 + i))) for k, i in numbers)
    check("threads with streams of their own", right)
    dumper.disable()


def main() -> int:
    torch = import_torch()
    dumper = Dumper()
    torch.cuda.init()
    for test in (at_the_call, reused_memory, layouts_and_types, captures, threads):
        with tempfile.TemporaryDirectory() as name:
            begin = time.perf_counter()
            test(torch, dumper, Path(name) / "d")
            print(f"   {test.__name__}: {time.perf_counter() - begin:.1f} s")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
