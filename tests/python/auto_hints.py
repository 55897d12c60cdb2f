"""Run a program as `marey run` does in auto mode, and compare the hints of the hooks with the program's own count.

A program calls own("B") for each batch it receives, own("U") for each update it attempts, and own("E") when a loader is
exhausted. The hints of a run are written the same way: a request for a batch that was delivered is part of the batch,
and one that was not is the end of a loader.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

PREAMBLE = """
import atexit, json, os, sys
_auto = sys.modules["marey._auto"]
_native = sys.modules["marey._native"]
_seen = {"hints": [], "who": [], "samples": [], "own": "", "phases": [], "marks": []}

def own(letter):
    _seen["own"] += letter

def _tap(name, note):
    original = getattr(_auto, name)
    def tap(*args):
        note(*args)
        return original(*args)
    setattr(_auto, name, tap)

def _hint(what, who, samples):
    _seen["hints"].append("-UFB"[what])
    _seen["who"].append(who)
    _seen["samples"].append(samples)

if "marey._auto_torch" not in sys.modules:
    _tap("hint", _hint)
    _tap("enter", lambda name: _seen["phases"].append(name))
    _tap("leave", lambda: _seen["phases"].append(""))
    _mark = _native.mark
    def _tapped_mark(name, payload=None, **more):
        _seen["marks"].append([name, payload])
        _mark(name, payload, **more)
    _native.mark = _tapped_mark

def _write(pid=os.getpid()):
    if os.getpid() == pid:
        _seen["has_package"] = "marey" in sys.modules
        _seen["depth"] = _native.phase_depth()
        with open(os.environ["SEEN"], "w") as file:
            json.dump(_seen, file)
atexit.register(_write)
"""

TORCH = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)

class Data(torch.utils.data.Dataset):
    def __init__(self, n=12):
        self.n = n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        return torch.ones(4) * i, torch.ones(1)

def loader(n=12, batch_size=4, **options):
    return torch.utils.data.DataLoader(Data(n), batch_size=batch_size, **options)

def model():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

def loss_of(net, batch):
    return ((net(batch[0]) - batch[1]) ** 2).mean()
"""


@dataclass
class Seen:
    """What a run had: the hints as text, the program's own count, the phases in order."""

    hints: str
    own: str
    who: list[int]
    samples: list[float]
    phases: list[str]
    marks: list[list[Any]]
    depth: int
    has_package: bool
    output: str

    @property
    def steps(self) -> str:
        """The hints as a program writes its own."""
        return self.hints.replace("FB", "B").replace("F", "E")

    @property
    def spans(self) -> list[str]:
        """Each phase with those around it, outermost first, in the order of their begins."""
        stack: list[str] = []
        found = []
        for name in self.phases:
            if name:
                stack.append(name)
                found.append("/".join(stack))
            elif stack:
                stack.pop()
        return found


def run_auto(folder: Path, source: str, *, torch: bool = True, env: Optional[dict[str, str]] = None) -> Seen:
    """Run a program in auto mode; the package marey is not imported in it."""
    import marey

    package = Path(marey.__file__).parent
    script = folder / "program.py"
    script.write_text(PREAMBLE + (TORCH if torch else "") + textwrap.dedent(source))
    environment = {
        **os.environ,
        "PYTHONPATH": str(package / "boot"),
        "MAREY_PACKAGE_DIR": str(package.parent),
        "MAREY": str(folder / "run.marey"),
        "MAREY_OPTIONS": "auto=1",
        "SEEN": str(folder / "seen.json"),
        "CUDA_VISIBLE_DEVICES": "",
        **(env or {}),
    }
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads((folder / "seen.json").read_text())
    return Seen(**{**seen, "hints": "".join(seen["hints"])}, output=done.stdout)


def check(seen: Seen) -> Seen:
    """Assert that the hints are the program's own count, and that no phase stayed open."""
    assert seen.steps == seen.own
    assert seen.depth == 0
    return seen
