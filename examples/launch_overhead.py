"""Are the kernels slow, or their launches? The same network operator by operator, and as a CUDA graph.

    marey run --gpu -o launches.marey -- python examples/launch_overhead.py
    marey report launches.marey --gpu

The network has many small layers: each kernel takes a few microseconds, less than the host needs to launch the next.
The report shows that `eager` is launch-bound, and the effect of a graph. Without a GPU, it shows a trace of PyTorch's
profiler from a GPU instead.
"""

from pathlib import Path

import marey

TRACE = Path(__file__).parents[1] / "tests" / "data" / "kineto" / "sampled_rank-0.json.gz"
LAYERS, WIDTH, BATCH, STEPS = 20, 64, 32, 50


def why_not_here():
    try:
        import torch
    except ImportError:
        return "PyTorch is not here, so nothing can be launched."
    return None if torch.cuda.is_available() else "There is no GPU here, so nothing can be launched."


def show_a_trace():
    """Print where GPUs wait for the host, in a trace of another machine."""
    print(f"Here is the trace of another job, {TRACE.name}. Its ranges that are launch-bound:\n")
    table = marey.load(TRACE).gpu("launch_bound")
    columns = [table[name] for name in ("name", "verdict", "launch_wait_share", "launches_per_ms")]
    bound = [row for row in zip(*columns) if row[1] == "launch-bound"]
    print(f"{'range':<36}{'launch wait':>12}{'launches/ms':>13}")
    for name, _, share, rate in bound:
        print(f"{name:<36}{share:>11.1%} {rate:>13.1f}")


def make_steps(torch):
    """Return a step of the network by operators, and one as a graph."""
    nn = torch.nn
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.LayerNorm(WIDTH))]
    model = nn.Sequential(*layers).cuda().eval()
    batch = torch.randn(BATCH, WIDTH, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # must run before it is captured
        for _ in range(3):
            model(batch)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(batch)
    return {"eager": lambda: model(batch), "graph": graph.replay}


def run():
    import torch

    with torch.inference_mode():
        for name, step in make_steps(torch).items():
            step()
            torch.cuda.synchronize()
            with marey.range(name):
                for _ in range(STEPS):
                    with marey.step():
                        step()
                torch.cuda.synchronize()
    print("To see what that was: marey report launches.marey --gpu")


if __name__ == "__main__":
    reason = why_not_here()
    if reason is None:
        run()
    else:
        print(reason)
        show_a_trace()
