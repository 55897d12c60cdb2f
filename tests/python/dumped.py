"""Reads files of a TensorDumper with other packages: safetensors, numpy, json, Pillow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def manifest(folder: Path, step: int = 0) -> list[dict[str, Any]]:
    """The lines about values of one step."""
    lines = (folder / f"step-{step:08d}.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert records[0]["marey_dump"] == 1
    assert records[-1]["end"] is True
    return records[1:-1]


def entry(folder: Path, name: str, step: int = 0) -> dict[str, Any]:
    """The line about one value."""
    found = [record for record in manifest(folder, step) if record["name"] == name]
    assert len(found) == 1, f"{name} is there {len(found)} times among {names(folder, step)}"
    return found[0]


def names(folder: Path, step: int = 0) -> list[str]:
    """The names of all values, in the order of adding."""
    return [record["name"] for record in manifest(folder, step)]


def tensors(folder: Path, step: int = 0) -> dict[str, Any]:
    """The tensors of one step by their names."""
    from safetensors.torch import load_file

    loaded = load_file(folder / f"step-{step:08d}.safetensors")
    return {name: tensor for name, tensor in loaded.items() if not name.startswith("__pad__")}


def steps(folder: Path) -> list[int]:
    """The numbers of the steps that are there."""
    return sorted(int(path.name[5:13]) for path in folder.glob("step-*.jsonl"))


def tree(folder: Path, step: int = 0, name: str = "tensors.json") -> Any:
    """The JSON of a step in ACCV-Lab's layout."""
    return json.loads((folder / str(step) / name).read_text())


def done(dumper) -> None:
    """End the step and wait for its files."""
    dumper.dump()
    dumper.wait()
