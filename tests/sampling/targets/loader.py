"""A job with two DataLoader workers, whose time is spent on processing items in the workers.

loader.py SECONDS [N_WORKERS]
"""

import os
import sys
import time

import torch


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        return augment(i)


def augment(i):
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:  # planted
        pass
    return torch.tensor([float(i)])


def tell_pid(worker):
    os.write(1, b"worker %d %d\n" % (worker, os.getpid()))


def main(seconds, n):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Slow(), batch_size=8, num_workers=n, worker_init_fn=tell_pid)
    print("ready", flush=True)
    end = time.perf_counter() + seconds
    for batch in loader:
        batch.sum()
        if time.perf_counter() > end:
            break


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2)
