"""Auto mode with torch.compile: the same graphs, no more breaks, the same results, and each update counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
from auto_hints import TORCH, check, run_auto

pytest.importorskip("torch")

# Programs, each with what it compiles. The backend is dynamo's own: no compiler for C is needed.
COMPILE = """
import torch._dynamo
from torch._dynamo.utils import counters

def compiled(function, **options):
    return torch.compile(function, backend="aot_eager", **options)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = model()
        self.last = nn.Linear(1, 1)
    def forward(self, x):
        return self.last(self.layers(x))

def dynamo():
    return {name: dict(counters[name]) for name in ("frames", "stats", "graph_break", "unimplemented")}
"""

PROGRAMS = {
    "model": """
        net = model()
        optimizer = torch.optim.AdamW(net.parameters())
        fast = compiled(net)
        for batch in loader(24):
            own("B")
            loss_of(fast, batch).backward()
            optimizer.step()
            own("U")
            optimizer.zero_grad()
        own("E")
    """,
    "model in place": """
        net = Net()
        net.compile(backend="aot_eager")
        optimizer = torch.optim.AdamW(net.parameters())
        for batch in loader(24):
            own("B")
            loss_of(net, batch).backward()
            optimizer.step()
            own("U")
            optimizer.zero_grad()
        own("E")
    """,
    "model found before it is compiled": """
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for i, batch in enumerate(loader(32)):
            own("B")
            fast = net if i < 3 else compiled(net, fullgraph=True) if i == 3 else fast
            loss_of(fast, batch).backward()
            optimizer.step()
            own("U")
        own("E")
    """,
    "optimizer in a function": """
        net = model()
        optimizer = torch.optim.AdamW(net.parameters(), lr=torch.tensor(0.01))
        @compiled
        def update():
            optimizer.step()
        for batch in loader(24):
            own("B")
            loss_of(net, batch).backward()
            update()
            own("U")
            optimizer.zero_grad(set_to_none=False)
        own("E")
    """,
    "step of an optimizer": """
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        update = compiled(optimizer.step)
        for batch in loader(24):
            own("B")
            loss_of(net, batch).backward()
            update()
            own("U")
            optimizer.zero_grad(set_to_none=False)
        own("E")
    """,
    "whole step": """
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        @compiled
        def train(batch):
            loss = loss_of(net, batch)
            loss.backward()
            optimizer.step()
            return loss
        for batch in loader(24):
            own("B")
            train(batch)
            own("U")
            optimizer.zero_grad(set_to_none=False)
        own("E")
    """,
    "function, no loader": """
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        loss_in_graph = compiled(lambda batch: loss_of(net, batch), fullgraph=True)
        for i in range(6):
            loss_in_graph((torch.ones(4, 4) * i, torch.ones(4, 1))).backward()
            optimizer.step()
            own("U")
            optimizer.zero_grad(set_to_none=False)
    """,
    "torch's own container in place": """
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        net.compile(backend="aot_eager")
        for batch in loader(24):
            own("B")
            loss_of(net, batch).backward()
            optimizer.step()
            own("U")
        own("E")
    """,
    "excluded optimizer": """
        net = model()
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=2)
        fast = compiled(net)
        for batch in loader(12):
            own("B")
            def closure():
                loss = loss_of(fast, batch)
                loss.backward()
                return loss
            optimizer.step(closure)
            own("U")
        own("E")
    """,
}
LAST = """
    import json
    print(json.dumps({"dynamo": dynamo(), "weights": [p.tolist() for p in net.parameters()]}))
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if i > 0 else []) for i, name in enumerate(PROGRAMS)]
)
def test_compiled_programs(tmp_path, name):
    source = COMPILE + textwrap.dedent(PROGRAMS[name]) + textwrap.dedent(LAST)
    seen = check(run_auto(tmp_path, source))
    script = tmp_path / "plain.py"
    script.write_text("def own(letter): pass\n" + TORCH + source)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    plain = subprocess.run(
        [sys.executable, str(script)], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True
    )
    assert json.loads(seen.output) == json.loads(plain.stdout)
    if "container" in name:  # torch compiles nothing
        return
    record = json.loads(dict(seen.marks)["torch.compile"])
    assert record["graphs"] == json.loads(plain.stdout)["dynamo"]["stats"]["unique_graphs"]
    assert record["graph_breaks"] == sum(json.loads(plain.stdout)["dynamo"]["graph_break"].values())
    if name.startswith("model"):
        assert seen.spans.count("forward") >= 5
    if name == "optimizer in a function":
        assert seen.spans.count("optimizer") >= 4


def test_recompilations_are_counted(tmp_path):
    seen = run_auto(
        tmp_path,
        COMPILE
        + """
@compiled
def twice(x, n):
    return x * n

for n in ("a", "b"):
    twice(torch.ones(2), len(n)), twice(torch.ones(2, 2), 2)
""",
    )
    record = json.loads(dict(seen.marks)["torch.compile"])
    assert record["recompiles"] >= 1
    row = record["recompiled"][0]
    assert row["function"] == "twice"
    assert row["file"] == str(tmp_path / "program.py")
    assert row["reason"]
