"""k-means in numpy, on points around a few centers."""

import argparse
import time

import numpy as np


def nearest(points, centers):
    labels = np.empty(len(points), dtype=np.int64)
    for i in range(len(points)):
        labels[i] = np.argmin(((points[i] - centers) ** 2).sum(axis=1))  # planted: hot-function
    return labels


def update(points, labels, centers):
    new = centers.copy()
    for k in range(len(centers)):
        members = points[labels == k]
        if len(members):
            new[k] = members.mean(axis=0)
    return new


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=20000)
    parser.add_argument("--clusters", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=40)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    means = rng.normal(0, 5, (args.clusters, 8))
    points = means[rng.integers(args.clusters, size=args.points)] + rng.normal(0, 1, (args.points, 8))
    centers = points[rng.choice(args.points, args.clusters, replace=False)]
    start = time.perf_counter()
    for i in range(args.iterations):
        labels = nearest(points, centers)
        moved = update(points, labels, centers)
        shift = np.abs(moved - centers).max()
        centers = moved
        print(f"iteration {i}: shift {shift:.5f}")
    print(f"{1e3 * (time.perf_counter() - start) / args.iterations:.3f} ms/iteration")


if __name__ == "__main__":
    main()
