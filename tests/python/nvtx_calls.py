"""Reads the call log of the tests' NVTX tool and fake CUDA runtime."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional


@dataclass
class Calls:
    """The calls of one run, in their order, and how the program ended."""

    every: list[dict[str, Any]]
    done: subprocess.CompletedProcess[str]

    @property
    def lines(self) -> list[str]:
        """Ranges, marks and waits as short texts: "sync", "push forward", "pop", "mark here in loader"."""
        kinds = ("sync", "push", "pop", "mark", "start", "end")
        return [_short(call) for call in self.every if call["call"] in kinds]

    def of(self, kind: str, message: Optional[str] = None) -> list[dict[str, Any]]:
        return [c for c in self.every if c["call"] == kind and (message is None or c.get("message") == message)]

    def one(self, kind: str, message: str) -> dict[str, Any]:
        found = self.of(kind, message)
        assert len(found) == 1, (kind, message, self.every)
        return found[0]


def _short(call: dict[str, Any]) -> str:
    words = [call["call"]]
    if call.get("message") is not None:
        words.append(call["message"])
    if call.get("domain"):
        words.append(f"in {call['domain']}")
    return " ".join(words)


def read_calls(log: Path) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text(errors="surrogateescape").splitlines()]


def is_balanced(calls: list[dict[str, Any]]) -> bool:
    """Whether on each thread and in each domain every pop had its push, and every push its pop."""
    depths: dict[tuple[int, int, str], int] = {}
    for call in calls:
        if call["call"] not in ("push", "pop"):
            continue
        key = (call["pid"], call["tid"], call["domain"])
        depths[key] = depths.get(key, 0) + (1 if call["call"] == "push" else -1)
        if depths[key] < 0:
            return False
    return not any(depths.values())
