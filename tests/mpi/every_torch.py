"""Each call of torch.distributed once, with gloo: python every_torch.py EXPECTED [undone]

Run by torchrun. What must be recorded of each call is written down beforehand, one JSON object a line, in EXPECTED with
the rank behind it. `undone` ends the tracing first: then nothing must be recorded.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch.distributed import all_reduce as all_reduce_by_name

import marey.torch

N = 8  # numbers in a tensor
B = 4 * N  # bytes


class Group:
    def __init__(self, name: str, ranks: str, size: int) -> None:
        self.name, self.ranks, self.size, self.next = name, ranks, size, 0


class Job:
    def __init__(self, path: str) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.world = Group("default_pg", f"0-{self.size - 1}", self.size)
        self.file = open(f"{path}.{self.rank}", "w")  # noqa: SIM115

    def expect(
        self,
        name: str,
        what: str,
        given: int = 0,
        got: int = 0,
        *,
        peer: int = -1,
        sequence: Any = None,
        group: Any = None,
    ) -> int:
        """One range; `sequence` "next" is the group's next number, which is given back."""
        group = group or self.world
        number = sequence
        if sequence == "next":
            number = group.next
            group.next += 1
        told = {"group": group.name, "ranks": group.ranks, "what": what, "in": given, "out": got}
        told |= {"size": group.size, "peer": peer, "sequence": number}
        print(json.dumps({"name": f"dist.{name}", "told": told}), file=self.file)
        return number

    def plain(self, name: str) -> None:
        print(json.dumps({"name": f"dist.{name}", "told": None}), file=self.file)


def tensor(value: float = 1.0, n: int = N) -> torch.Tensor:
    return torch.full((n,), float(value))


def with_a_root(job: Job, root: int) -> None:
    is_root = job.rank == root
    x = tensor(job.rank)
    job.expect("broadcast", "broadcast", B if is_root else 0, 0 if is_root else B, peer=root, sequence="next")
    dist.broadcast(x, root)
    assert x[0] == root
    job.expect("broadcast", "broadcast", B if is_root else 0, 0 if is_root else B, peer=root, sequence="next")
    dist.broadcast(x, group_src=root)
    x = tensor()
    job.expect("reduce", "reduce", B, B if is_root else 0, peer=root, sequence="next")
    dist.reduce(x, root)
    assert not is_root or x[0] == job.size
    parts = [tensor() for _ in range(job.size)] if is_root else None
    job.expect("gather", "gather", B, job.size * B if is_root else 0, peer=root, sequence="next")
    dist.gather(tensor(job.rank), parts, dst=root)
    assert not is_root or parts[-1][0] == job.size - 1
    job.expect("scatter", "scatter", job.size * B if is_root else 0, B, peer=root, sequence="next")
    dist.scatter(x, [tensor(r) for r in range(job.size)] if is_root else None, src=root)
    assert x[0] == job.rank


def of_all(job: Job) -> None:
    n = job.size
    job.expect("barrier", "barrier", sequence="next")
    dist.barrier()
    job.expect("monitored_barrier", "barrier", sequence="next")
    dist.monitored_barrier()
    x = tensor()
    job.expect("all_reduce", "all_reduce", B, B, sequence="next")
    dist.all_reduce(x)
    assert x[0] == n
    job.expect("all_reduce", "all_reduce", B, B, sequence="next")
    all_reduce_by_name(tensor(), op=dist.ReduceOp.MAX)
    job.expect("all_reduce_coalesced", "all_reduce", 2 * B, 2 * B, sequence="next")
    dist.all_reduce_coalesced([tensor(), tensor()])
    parts = [tensor() for _ in range(n)]
    job.expect("all_gather", "all_gather", B, n * B, sequence="next")
    dist.all_gather(parts, tensor(job.rank))
    assert parts[-1][0] == n - 1
    job.expect("all_gather_into_tensor", "all_gather", B, n * B, sequence="next")
    dist.all_gather_into_tensor(tensor(n=n * N), tensor())
    job.expect("all_gather_coalesced", "all_gather", 2 * B, 2 * n * B, sequence="next")
    dist.all_gather_coalesced([[tensor(), tensor()] for _ in range(n)], [tensor(), tensor()])
    job.expect("reduce_scatter", "reduce_scatter", n * B, B, sequence="next")
    dist.reduce_scatter(x, [tensor() for _ in range(n)])
    assert x[0] == n
    job.expect("reduce_scatter_tensor", "reduce_scatter", n * B, B, sequence="next")
    dist.reduce_scatter_tensor(x, tensor(n=n * N))
    job.expect("all_to_all", "all_to_all", n * B, n * B, sequence="next")
    dist.all_to_all([tensor() for _ in range(n)], [tensor() for _ in range(n)])
    job.expect("all_to_all_single", "all_to_all", n * B, n * B, sequence="next")
    dist.all_to_all_single(tensor(n=n * N), tensor(n=n * N))


def messages(job: Job) -> None:
    """Pairs of ranks: the even one sends first."""
    other, is_even = job.rank ^ 1, job.rank % 2 == 0
    x = tensor()
    if is_even:
        job.expect("send", "send", B, peer=other)
        dist.send(x, other)
        job.expect("recv", "recv", 0, B, peer=other)
        assert dist.recv(x, None) == other
    else:
        job.expect("recv", "recv", 0, B, peer=other)
        dist.recv(x, group_src=other)
        job.expect("send", "send", B, peer=other)
        dist.send(x, other)
    job.expect("isend", "send", B, peer=other)
    sending = dist.isend(x, other)
    job.expect("irecv", "recv", 0, B, peer=other)
    receiving = dist.irecv(x, other)
    job.expect("wait", "send", peer=other)
    sending.wait()
    job.expect("wait", "recv", peer=other)
    receiving.wait()
    operations = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, tensor(), other)]
    job.plain("batch_isend_irecv")
    job.expect("isend", "send", B, peer=other)
    job.expect("irecv", "recv", 0, B, peer=other)
    works = dist.batch_isend_irecv(operations)
    for work, what in zip(works, ("send", "recv")):
        job.expect("wait", what, peer=other)
        work.wait()


def started_and_waited_for(job: Job) -> None:
    first = job.expect("all_reduce", "all_reduce", B, B, sequence="next")
    x = tensor()
    one = dist.all_reduce(x, async_op=True)
    second = job.expect("broadcast", "broadcast", B * (job.rank == 0), B * (job.rank != 0), peer=0, sequence="next")
    other = dist.broadcast(tensor(), 0, async_op=True)
    job.expect("wait", "broadcast", peer=0, sequence=second)
    other.wait()
    job.expect("wait", "all_reduce", sequence=first)
    one.wait()
    one.wait()  # it is over, so that there is nothing to record
    assert x[0] == job.size


def of_some(job: Job) -> None:
    ranks = list(range(job.rank % 2, job.size, 2))
    for parity in (0, 1):
        made: Optional[dist.ProcessGroup] = dist.new_group(list(range(parity, job.size, 2)), group_desc="half")
        if parity == job.rank % 2:
            half, name = made, f"half {made.group_name}"
    group = Group(name, ",".join(map(str, ranks)), len(ranks))
    job.expect("all_reduce", "all_reduce", B, B, sequence="next", group=group)
    dist.all_reduce(tensor(), group=half)
    is_root = job.rank == ranks[-1]
    root = ranks[-1]
    job.expect("broadcast", "broadcast", B * is_root, B * (not is_root), peer=root, sequence="next", group=group)
    dist.broadcast(tensor(), group=half, group_src=len(ranks) - 1)


def objects(job: Job) -> None:
    """By what they call: sizes first, then the bytes. How many they are is up to pickle."""
    print(json.dumps({"any": ["dist.all_gather", "dist.all_gather"]}), file=job.file)
    job.world.next += 2
    found = [None] * job.size
    dist.all_gather_object(found, {"rank": job.rank})
    assert found[-1] == {"rank": job.size - 1}


def mistakes(job: Job) -> None:
    """Torch's own errors come out, and nothing else."""
    for call in (
        lambda: dist.broadcast(tensor(), group_src=job.size + 5),
        lambda: dist.all_reduce("text"),
        lambda: dist.send(tensor(), job.rank),
        lambda: dist.all_gather(None, tensor()),
    ):
        try:
            call()
        except (ValueError, TypeError, RuntimeError):
            continue
        raise AssertionError("no error")


def main() -> None:
    tracing = marey.torch.trace_distributed()
    again = marey.torch.trace_distributed()
    dist.init_process_group("gloo")
    job = Job(sys.argv[1])
    again.undo()  # the first is still on
    if "undone" in sys.argv:
        tracing.undo()
        assert dist.all_reduce.__code__.co_filename != marey.torch.__file__
    with_a_root(job, 0)
    with_a_root(job, job.size - 1)
    of_all(job)
    messages(job)
    started_and_waited_for(job)
    of_some(job)
    objects(job)
    job.file.close()
    marey.mark("mistakes")
    if "mistakes" in sys.argv:
        mistakes(job)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
