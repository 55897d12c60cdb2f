"""Rules of the diagnosis: a program with a planted cause has the finding with its line, and the fixed one has not.

Each program runs as it is, which is slow, and with --fixed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_diagnosis import diagnose, line_of

CHECKPOINTS = """
import sys
import torch

EVERY = 1000 if "--fixed" in sys.argv else 10

def save_state(model, step):
    state = {"model": model.state_dict(), "step": step}
    torch.save(state, "state.pt")

def train(model, optimizer):
    for step in range(1, 121):
        x = torch.randn(64, 256)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVERY == 0:
            save_state(model, step)

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
model.register_buffer("bank", torch.zeros(12_000_000))
train(model, torch.optim.SGD(model.parameters(), lr=0.01))
"""

EVALUATION = """
import sys
import torch
from torch import nn

torch.manual_seed(0)
every = 400 if "--fixed" in sys.argv else 8
X, VX = torch.randn(2000, 128), torch.randn(8000, 128)
model = nn.Sequential(nn.Linear(128, 512), nn.Tanh(), nn.Linear(512, 128))
optim = torch.optim.AdamW(model.parameters(), 1e-3)

def validate():
    model.eval()
    total = 0.0
    with torch.no_grad():
        for i in range(0, len(VX), 500):
            total += nn.functional.mse_loss(model(VX[i:i + 500]), VX[i:i + 500]).item()
    model.train()
    return total

for it in range(1, 161):
    xb = X[torch.randint(0, 2000, (256,))]
    loss = nn.functional.mse_loss(model(xb), xb)
    optim.zero_grad(); loss.backward(); optim.step()
    if it % every == 0:
        validate()
"""

METRIC = """
import sys
import torch
from torch import nn

class Tracker:
    def __init__(self, fixed):
        self.fixed, self.history = fixed, []

    def update(self, logits, targets):
        self.history.append((logits.detach(), targets))

    def summarize(self):
        pairs, self.history = self.history, []
        if self.fixed:
            return sum((logits.argmax(1) == y).sum() for logits, y in pairs)
        hits = 0
        for logits, targets in pairs:
            for row, want in zip(logits.tolist(), targets.tolist()):
                hits += sorted(row)[-1] == row[want]
        return hits

def main():
    torch.manual_seed(1)
    net, tracker = nn.Linear(512, 100), Tracker("--fixed" in sys.argv)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(1, 301):
        x, y = torch.randn(512, 512), torch.randint(0, 100, (512,))
        opt.zero_grad()
        logits = net(x)
        nn.functional.cross_entropy(logits, y).backward()
        opt.step()
        tracker.update(logits, y)
        if step % 25 == 0:
            tracker.summarize()

main()
"""

CLEANUP = """
import gc
import sys
import torch

class Trainer:
    def __init__(self, is_fixed):
        self.is_fixed = is_fixed
        self.corpus = [{"id": i, "text": [i]} for i in range(150_000)]
        self.layer = torch.nn.Linear(512, 512)
        self.opt = torch.optim.SGD(self.layer.parameters(), lr=0.1)

    def clean_up(self):
        if not self.is_fixed:
            gc.collect()

    def fit(self, steps):
        for step in range(steps):
            self.layer(torch.randn(512, 512)).square().mean().backward()
            self.opt.step()
            self.opt.zero_grad()
            if step % 12 == 0:
                self.clean_up()

Trainer("--fixed" in sys.argv).fit(180)
"""

KEPT_OBJECTS = """
import gc
import sys
import torch

def tokenize(n):
    tokens = []
    for i in range(n):
        tokens.append({"id": i, "text": [i]})
    return tokens

def fit(steps):
    layer = torch.nn.Linear(256, 256)
    opt = torch.optim.SGD(layer.parameters(), lr=0.1)
    history = []
    for step in range(steps):
        history.append(tokenize(2000))
        layer(torch.randn(128, 256)).square().mean().backward()
        opt.step()
        opt.zero_grad()

corpus = [{"id": i, "text": [i]} for i in range(100_000)]
if "--fixed" in sys.argv:
    gc.freeze()
    gc.set_threshold(50_000_000)
fit(300)
"""

COLLECT = """
import gc
import sys
import torch

cache = [{"key": i, "values": [i]} for i in range(60_000)]
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))
opt = torch.optim.AdamW(model.parameters())

def train_step(x):
    opt.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    opt.step()
    if "--fixed" not in sys.argv:
        gc.collect()

for _ in range(40):
    train_step(torch.randn(256, 256))
"""

HISTOGRAMS = """
import logging
import sys
import torch

class Meter:
    def __init__(self, every):
        self.every, self.logger = every, logging.getLogger("meter")
        self.logger.addHandler(logging.FileHandler("meter.log"))

    def log_step(self, step, model):
        if step % self.every == 0:
            for name, p in model.named_parameters():
                self.logger.warning("%s %s", name, sorted(p.detach().flatten().tolist())[::9])

model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.Tanh(), torch.nn.Linear(128, 128))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
meter = Meter(1000 if "--fixed" in sys.argv else 1)
for step in range(1, 121):
    optimizer.zero_grad()
    model(torch.randn(256, 128)).square().mean().backward()
    optimizer.step()
    meter.log_step(step, model)
"""

DASHBOARD = """
import sys
import threading
import torch

def correlate(values):
    best = 0.0
    for lag in range(1, 50):
        best = max(best, sum(map(float.__mul__, values, values[lag:])))
    return best

class Dashboard(threading.Thread):
    def __init__(self, pause):
        super().__init__(daemon=True)
        self.pause, self.values, self.done = pause, [0.5] * 20_000, threading.Event()

    def run(self):
        while not self.done.wait(self.pause):
            correlate(self.values)

dashboard = Dashboard(30 if "--fixed" in sys.argv else 0)
dashboard.start()
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(600):
    opt.zero_grad()
    model(torch.randn(64, 64)).square().mean().backward()
    opt.step()
dashboard.done.set()
"""

VOCABULARY = """
import sys
import torch

def count_pairs(words):
    counts = {}
    for i in range(len(words) - 8):
        for k in range(1, 8):
            counts[words[i], words[i + k]] = counts.get((words[i], words[i + k]), 0) + 1
    return counts

def train(steps):
    model = torch.nn.Linear(64, 64)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        opt.zero_grad()
        model(torch.randn(64, 64)).square().mean().backward()
        opt.step()

words = [i * i % 997 for i in range(400_000)]
count_pairs(words[:1000] if "--fixed" in sys.argv else words)
train(100)
"""

SIZES = """
import sys
import torch

torch._dynamo.config.cache_size_limit = 256
model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(4)])
compiled = torch.compile(model, backend="eager", dynamic="--fixed" in sys.argv)
opt = torch.optim.SGD(model.parameters(), lr=0.01)

def train_step(n):
    opt.zero_grad()
    compiled(torch.randn(n, 32)).square().mean().backward()
    opt.step()

for step in range(120):
    train_step(16 + step * 7 % 60)
"""

# The finding, its cause, the function and a part of its line.
PROGRAMS = {
    "checkpoints": (CHECKPOINTS, "slow-steps", "checkpoint", "save_state", "torch.save"),
    "evaluation": (EVALUATION, "slow-steps", "evaluation", "validate", "total += nn"),
    "metric": (METRIC, "slow-steps", None, "Tracker.summarize", "hits += sorted"),
    "cleanup": (CLEANUP, "slow-steps", "gc-pauses", "Trainer.clean_up", "gc.collect()"),
    "collect": (COLLECT, "gc-pauses", None, "train_step", "gc.collect()"),
    "histograms": (HISTOGRAMS, "logging-in-step", None, "Meter.log_step", "sorted("),
    "dashboard": (DASHBOARD, "gil-contention", None, "correlate", "best = max"),
    "vocabulary": (VOCABULARY, "startup-dominates", None, "count_pairs", "counts[words"),
    "sizes": (SIZES, "recompilation", "guard", "train_step", "compiled(torch"),
}

QUICK = ("checkpoints", "cleanup", "sizes")  # the gauntlet has other programs for each rule


@pytest.mark.needs_torch
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS]
)
def test_a_planted_cause_is_found_and_gone_when_it_is_fixed(tmp_path, name):
    source, rule, cause, function, line = PROGRAMS[name]
    program = tmp_path / f"{name}.py"
    program.write_text(source)
    diagnosis, printed = diagnose(tmp_path / "slow", program)
    finding = diagnosis["findings"][0]
    where = finding["where"][0]
    assert (finding["id"], where["function"]) == (rule, function), printed
    assert (Path(where["file"]).name, where["line"]) == (program.name, line_of(program, line)), printed
    causes = [each["id"] for each in finding["because"]]
    assert (causes[:1] == [cause]) if cause else causes == [], printed
    assert all(each["gain"] is None and each["claim"] in printed for each in finding["because"])
    assert 1.03 < finding["gain"]["at_most"] < 100 and finding["gain"]["low"] > 1.01

    fixed, printed = diagnose(tmp_path / "fixed", program, "--fixed")
    assert rule not in [each["id"] for each in fixed["findings"]], printed


@pytest.mark.needs_torch
def test_the_period_of_slow_steps(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(CHECKPOINTS)
    diagnosis, _ = diagnose(tmp_path, program)
    finding = diagnosis["findings"][0]
    assert "every 10th step" in finding["claim"] and "every 10th step" in finding["because"][0]["claim"]
    share = sum(each["share"] for each in finding["because"])
    assert finding["share"] == pytest.approx(share, abs=1e-6)


@pytest.mark.needs_torch
def test_collections_because_of_kept_objects(tmp_path):
    program = tmp_path / "kept.py"
    program.write_text(KEPT_OBJECTS)
    diagnosis, printed = diagnose(tmp_path / "slow", program)
    # Collections of all generations make outliers only where they are rare.
    found = [each for finding in diagnosis["findings"] for each in [finding, *finding["because"]]]
    collections = [each for each in found if each["id"] == "gc-pauses"]
    assert collections and collections[0]["where"][0]["function"] == "tokenize", printed
    fixed, printed = diagnose(tmp_path / "fixed", program, "--fixed")
    assert "gc-pauses" not in str(fixed["findings"]), printed
