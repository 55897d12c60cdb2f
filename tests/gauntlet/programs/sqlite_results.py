"""A parameter study of the logistic map that stores each result in a database. Plain Python."""

import sqlite3
import tempfile
import time


def simulate(rate, n=150):
    x = 0.5
    for _ in range(n):
        x = rate * x * (1 - x)
    return x


def store(connection, rate, value):
    connection.execute("INSERT INTO results VALUES (?, ?)", (rate, value))
    connection.commit()  # planted: io-bound


def main():
    n = 12_000
    with tempfile.TemporaryDirectory(dir=".") as folder:
        connection = sqlite3.connect(f"{folder}/results.db")
        connection.execute("CREATE TABLE results (rate REAL, value REAL)")
        start = time.perf_counter()
        for i in range(n):
            rate = 2.5 + 1.5 * i / n
            store(connection, rate, simulate(rate))
        connection.commit()
        elapsed = time.perf_counter() - start
        count = connection.execute("SELECT COUNT(*) FROM results").fetchone()[0]
        connection.close()
    print(f"{count} results, {1e3 * elapsed / n:.3f} ms/result")


if __name__ == "__main__":
    main()
