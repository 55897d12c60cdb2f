"""Monte Carlo estimates of option prices by a pool of processes, each with numpy. The results are averaged."""

import multiprocessing
import time

import numpy as np

PATHS, STEPS, ROUNDS = 4000, 50, 400
PROCESSES = 24


def simulate(seed):
    """The mean payoff of one set of paths."""
    rng = np.random.default_rng(seed)
    price = np.full(PATHS, 100.0)
    for _ in range(STEPS):
        price *= np.exp(0.0002 + 0.01 * rng.standard_normal(PATHS))  # planted: cpu-oversubscribed
    return np.maximum(price - 100, 0).mean()


def main():
    start = time.perf_counter()
    with multiprocessing.Pool(PROCESSES) as pool:
        means = pool.map(simulate, range(ROUNDS), chunksize=1)
    print(f"price {np.mean(means):.4f}, {1e3 * (time.perf_counter() - start) / ROUNDS:.3f} ms/set")


if __name__ == "__main__":
    main()
