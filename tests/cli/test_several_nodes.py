"""A job on several nodes: network, UTS and time namespaces, torchrun on each, one folder that all of them write to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NODES, RANKS_PER_NODE, STEPS = 4, 4, 80
TRAIN = """
import os
import torch
import torch.distributed as dist
from torch import nn

def count_labels(labels):
    counts = [0] * 100
    for label in labels.tolist():
        for k in range(25):
            counts[(label + k) % 100] += 1  # the cause
    return counts

def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    model = nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    is_slow = str(dist.get_rank()) in os.environ["SLOW_RANKS"].split()
    for _ in range(STEPS):
        x, labels = torch.randn(64, 64), torch.randint(10, (64,))
        for _ in range(60 if is_slow else 0):
            count_labels(torch.randint(100, (400,)))
        loss = nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()

main()
""".replace("STEPS", str(STEPS))
CAUSE = 1 + next(i for i, line in enumerate(TRAIN.splitlines()) if "# the cause" in line)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[str]]:
    """Network namespaces on one bridge; 10.77.0.1 is the first node's address."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs ip (iproute2) and unshare (util-linux)")
    hub, names = f"marey{os.getpid()}", [f"marey{os.getpid()}-{i}" for i in range(NODES)]
    try:
        ip("netns", "add", hub)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces are not permitted here: {error.stderr.strip()}")
    try:
        ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        ip("-n", hub, "link", "set", "bridge", "up")
        for i, name in enumerate(names):
            ip("netns", "add", name)
            ip("-n", name, "link", "add", "net0", "type", "veth", "peer", "name", f"port{i}", "netns", hub)
            ip("-n", hub, "link", "set", f"port{i}", "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "net0")
            ip("-n", name, "link", "set", "net0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in (hub, *names):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def record(program: Path, nodes: list[str], folder: Path, slow_ranks: str) -> None:
    """One `marey run torchrun` on each node. Their monotonic clocks differ by days."""
    (folder / "train.py").write_text(TRAIN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "net0", "SLOW_RANKS": slow_ranks}
    jobs = []
    for i, name in enumerate(nodes):
        command = [program, "run", "--append", "-o", "job.marey", "--", sys.executable, "-m", "torch.distributed.run"]
        command += ["--nnodes", NODES, "--nproc-per-node", RANKS_PER_NODE, "--node-rank", i]
        command += ["--master-addr", "10.77.0.1", "--master-port", "29501", "train.py"]
        space = ["ip", "netns", "exec", name, "unshare", "--uts", "--time", "--monotonic", 200_000 * i]
        script = f'hostname node{i} && exec "$@"'
        words = [str(word) for word in (*space, "sh", "-c", script, "sh", *command)]
        jobs.append(
            subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        )
    for job in jobs:
        output = job.communicate(timeout=400)[0].decode()
        assert job.returncode == 0, output


def diagnosis_of(marey: Any, folder: Path) -> dict[str, Any]:
    done = marey("report", folder / "job.marey", "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["diagnosis"]
    return found


@pytest.mark.slow
def test_one_diagnosis_names_the_rank_and_its_node(program, marey, nodes, tmp_path):
    pytest.importorskip("torch")
    record(program, nodes, tmp_path, "9")
    found = diagnosis_of(marey, tmp_path)
    assert found["steps"]["n"] + found["steps"]["warmup"] == STEPS
    straggler = next(each for each in found["findings"] if each["id"] == "straggler")
    assert "rank 9 (node2)" in straggler["claim"]
    where = straggler["where"][0]
    assert (where["function"], where["line"], where["rank"]) == ("count_labels", CAUSE, 9)


@pytest.mark.slow
def test_a_slow_node_is_named_when_all_its_ranks_are_late(program, marey, nodes, tmp_path):
    pytest.importorskip("torch")
    record(program, nodes, tmp_path, "4 5 6 7")
    straggler = next(each for each in diagnosis_of(marey, tmp_path)["findings"] if each["id"] == "straggler")
    assert "the ranks of node1" in straggler["claim"]
