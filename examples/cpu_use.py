"""Averages of a loop with the CPU usage of its parts, by the stopwatch; no recording is needed.

    python examples/cpu_use.py

The first line is the result; the report follows. `decode` computes all the time, `wait` does not, as its CPU usage
shows.
"""

import time

import marey


def decode() -> int:
    return sum(i * i for i in range(30_000))


def main() -> None:
    stopwatch = marey.Stopwatch(num_warmup_iters=2)
    for name in ("decode", "wait"):
        stopwatch.set_cpu_usage_meas_name(name, usage=["thread", "process"])
    for _ in range(40):
        with stopwatch("decode"):
            decode()
        with stopwatch("wait"):
            time.sleep(0.003)
        stopwatch.finish_iter(samples=1)

    stats = stopwatch.stats()
    parts = []
    for row in stats.iterations:
        used = stats["usage"].row(name=row["name"])["thread_cpu"]
        parts.append(f"{row['name']} {row['mean_ns'] / 1e6:.2f} ms at {used:.0%} of a processor")
    print(f"mean of {stopwatch.get_num_nonwarmup_iters_measured()} iterations: {', '.join(parts)}")
    stopwatch.print_eval_times()


if __name__ == "__main__":
    main()
