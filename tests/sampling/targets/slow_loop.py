"""A program whose time goes into one slow loop of Python, among other work."""

import json
import sys
import time


def parse(rows):
    total = 0
    for row in rows:
        total += sum(x * x for x in row) if row and row[0] < 0 else len(row)
    return total


def distances(points):
    total = 0
    for p in points:
        for q in points:
            total += (p - q) * (p - q) if p > q else (q - p)  # planted
    return total


def save(total):
    return json.dumps({"total": total, "items": list(range(200))})


def main(seconds):
    print("ready", flush=True)
    rows, points, end = [[1, 2, 3]] * 200, list(range(150)), time.perf_counter() + seconds
    while time.perf_counter() < end:
        save(parse(rows) + distances(points))


main(float(sys.argv[1]))
