"""GPU tracing of selected iterations, started by the program itself; and a pause for another tool that needs CUPTI.

    python examples/gpu_window.py [RUN.marey]

If CUPTI or a GPU is missing, the first call reports it, and the loop runs unmeasured.
"""

import sys
import tempfile
from pathlib import Path

import marey


def make_step():
    try:
        import torch
    except ImportError:
        return lambda: None
    if not torch.cuda.is_available():
        return lambda: None
    a = torch.rand(1024, 1024, device="cuda")
    return lambda: (a @ a).sum().item()


def main(path):
    step = make_step()
    marey.start(path)
    try:
        marey.gpu.start(wait=5, warmup=1, active=10, repeat=1)
    except marey.MareyError as error:
        print(f"no GPU work is traced: {error}")
    for _ in range(20):
        with marey.iteration():
            step()
    with marey.gpu.paused():
        step()  # for example torch.profiler
    marey.gpu.settle()
    print(f"tracing: {marey.gpu.is_on()}, settled: {marey.gpu.is_settled()}, seen: {marey.gpu.counts()}")
    marey.gpu.stop()
    marey.stop()
    print(marey.load(path).kernels)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(str(Path(folder) / "gpu.marey"))
