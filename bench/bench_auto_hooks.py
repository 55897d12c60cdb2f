"""Cost of auto mode's hooks for one training step: a batch, a forward, a backward, an update.

    marey run -o hooks.marey python bench/bench_auto_hooks.py

Each hook wraps a function that reads the clock at its start and end, so the time before and after it is the hook's; the
same time without the hook is subtracted. Hot is a loop of only these calls. Cold is between the parts of a training
step of a transformer, which evicts most of the caches. Prints the best hot round and the median of the cold calls.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch

ROUNDS, CALLS, STEPS = 9, 2000, 60


class Timed:
    """An empty function that stores when it ran."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    def __call__(self, *_: Any) -> Any:
        self.begun = perf_counter_ns()
        self.ended = perf_counter_ns()
        return None


class Batches(Timed):
    """One that returns a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.batch = (torch.ones(4, 4), torch.ones(4))

    def __call__(self, *_: Any) -> Any:
        super().__call__()
        return self.batch


class Model(torch.nn.Module):
    """An empty model."""

    def __init__(self) -> None:
        super().__init__()
        self.timed = Timed()

    def forward(self, x: Any) -> Any:
        """Only read the clock."""
        return self.timed(x)


def around(call: Callable[..., Any], timed: Timed) -> int:
    """The duration of a call minus that of the wrapped function."""
    begun = perf_counter_ns()
    call(timed)
    ended = perf_counter_ns()
    return timed.begun - begun + ended - timed.ended


def calls() -> dict[str, tuple[Timed, Callable[..., Any], Callable[..., Any]]]:
    """Yield for each hook: its name, the call without it, and with it."""
    auto = sys.modules["marey._auto"]
    loaders, models, torch_hooks = (auto.part(f"_auto_{name}") for name in ("loaders", "models", "torch"))
    auto.state.is_searching = False
    plain, hooked = Model(), Model()
    hooked.timed = plain.timed
    models._Hook(hooked).calls = models._TRIAL_CALLS
    found = {"forward": (plain.timed, plain, hooked)}
    timed: Timed
    for name, timed, wrapper in (
        ("batch", Batches(), loaders._next),
        ("backward", Timed(), torch_hooks._running),
        ("update", Timed(), torch_hooks._stepping),
    ):
        function = function_of(timed)
        found[name] = (timed, function, wrapper(function))
    return found


def function_of(timed: Timed) -> Callable[..., Any]:
    """Return a function that calls it, like a hook."""

    def function(*arguments: Any) -> Any:
        return timed(*arguments)

    return function


def hot(timed: Timed, call: Callable[..., Any]) -> float:
    """Return the best mean of a round, in ns."""
    return min(sum(around(call, timed) for _ in range(CALLS)) / CALLS for _ in range(ROUNDS))


def cold(hooks: dict[str, tuple[Timed, Callable[..., Any], Callable[..., Any]]]) -> dict[str, float]:
    """Return the medians between the parts of a training step, in ns."""
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    for handle in [h for hook in sys.modules["marey._auto_models"]._hooked.values() for h in hook.handles]:
        handle.remove()
    batch = torch.randn(8, 64, 256)
    times: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in hooks}

    def measure(name: str, i: int) -> None:
        timed, without, with_ = hooks[name]
        times[name][i % 2].append(around(with_ if i % 2 else without, timed))

    for i in range(2 * STEPS):
        measure("batch", i)
        loss = model(batch).square().mean()
        measure("forward", i)
        loss.backward()
        measure("backward", i)
        optimizer.step()
        measure("update", i)
        optimizer.zero_grad()
    return {name: statistics.median(with_) - statistics.median(without) for name, (without, with_) in times.items()}


def main() -> None:
    """Print a row for each hook, and for a step."""
    torch.set_num_threads(1)
    hooks = calls()
    in_step = cold(hooks)
    total = [0.0, 0.0]
    print(f"{'hook':10}{'hot us':>8}{'cold us':>9}")
    for name, (timed, without, with_) in hooks.items():
        row = [(hot(timed, with_) - hot(timed, without)) / 1e3, in_step[name] / 1e3]
        total = [total[0] + row[0], total[1] + row[1]]
        print(f"{name:10}{row[0]:8.2f}{row[1]:9.2f}")
    print(f"{'step':10}{total[0]:8.2f}{total[1]:9.2f}")


if __name__ == "__main__":
    main()
