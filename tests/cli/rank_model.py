"""A model of bench/rank_logs.c: the times of every range of every rank.

The generator draws each step from a base and some bits of a linear congruential generator, in nanoseconds, so every
figure here is exact. Change both together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LAYERS = 10
BEGIN, END = 1, 2
MULTIPLIER, ADDEND, GOLDEN, MASK = 6364136223846793005, 1442695040888963407, 0x9E3779B97F4A7C15, 2**64 - 1

Step = tuple[int, str, int, int]  # begin or end, of which range, its base in nanoseconds, bits of jitter


def one_range(name: str, base_ns: int, bits: int) -> list[Step]:
    return [(BEGIN, name, 300, 8), (END, name, base_ns, bits)]


def one_pass(name: str, layer_ns: int) -> list[Step]:
    layers = [one_range(f"{name}.layer{i}", layer_ns + 1000 * i, 14) for i in range(LAYERS)]
    return [(BEGIN, name, 500, 8), *(step for layer in layers for step in layer), (END, name, 700, 8)]


LOOP: list[Step] = [
    (BEGIN, "step", 2000, 10),
    *one_range("data", 150000, 17),
    *one_range("to_device", 20000, 13),
    *one_pass("forward", 40000),
    *one_range("loss", 8000, 11),
    *one_range("zero_grad", 5000, 11),
    *one_pass("backward", 90000),
    *one_range("allreduce", 200000, 17),
    *one_range("optimizer", 60000, 14),
    *one_range("metrics", 3000, 10),
    (END, "step", 900, 9),
]
RANGES = [name for kind, name, _base, _bits in LOOP if kind == BEGIN]


@dataclass
class Rank:
    """One rank: the durations of each range by iteration, and the durations of iterations."""

    number: int
    durations: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in RANGES})
    iterations: list[int] = field(default_factory=list)

    @property
    def total_ns(self) -> int:
        return sum(self.durations["step"])


def run_rank(number: int, n_iterations: int) -> Rank:
    rank = Rank(number)
    random = (number + 1) * GOLDEN & MASK
    now = before = -1
    for _ in range(n_iterations):
        begun: dict[str, int] = {}
        for kind, name, base_ns, bits in LOOP:
            random = (random * MULTIPLIER + ADDEND) & MASK
            now += base_ns + (random >> (64 - bits))
            if kind == BEGIN:
                begun[name] = now
            else:
                rank.durations[name].append(now - begun[name])
            if before < 0:
                before = now  # the first iteration begins with the first event
        rank.iterations.append(now - before)
        before = now
    return rank


def nearest_rank(values: list[int], q: float) -> int:
    """Return the quantile as the report defines it: the smallest value that so many lie at or below."""
    ordered = sorted(values)
    share = q * len(ordered)
    at = min(int(share), len(ordered) - 1)
    return ordered[at - 1 if at > 0 and at == share else at]
