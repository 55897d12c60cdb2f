"""docs/guide/migration.md: a section with a table for each tool, and every marey name in it exists."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import marey

MAREY = Path(sys.executable).with_name("marey")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "migration.md").read_text(encoding="utf-8")
TOOLS = ("ACCV-Lab", "edd_utils", "itwinai", "torch.profiler", "accelerate.profiler", "cProfile", "py-spy", "viztracer")
FRAMEWORKS = ("accelerate", "hf", "lightning", "torch", "loggers")


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("tool", [*TOOLS, "Hugging Face accelerate and Lightning"])
def test_each_tool_has_a_table_of_names(tool):
    found = [text for title, text in sections().items() if title.startswith(tool)]
    assert found
    assert all(re.search(r"^\|.*\| here \|", text, re.MULTILINE) or "| command |" in text for text in found)


def test_links_to_sections_are_of_sections():
    there = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in sections()}
    assert set(re.findall(r"\(#([^)]*)\)", PAGE)) <= there


def test_names_of_the_package_are_there():
    names = set(re.findall(r"\bmarey\.([a-zA-Z]\w*(?:\.[a-zA-Z]\w*)*)", PAGE))
    names |= {f"{m}.{n}" for m, n in re.findall(r"from marey\.(\w+) import (\w+)", PAGE)}
    assert len(names) > 20
    for dotted in names:
        module, *rest = dotted.split(".")
        if module in FRAMEWORKS:
            source = (ROOT / "docs" / "reference" / "python-names.md").read_text(encoding="utf-8")
            assert f"marey.{dotted}" in source, dotted
            continue
        thing: object = marey
        for part in (module, *rest):
            if not hasattr(thing, part):
                thing = importlib.import_module(f"{thing.__name__}.{part}")
            else:
                thing = getattr(thing, part)


def test_commands_and_their_options_are_there():
    found = re.findall(r"`marey ((?:[a-z][a-z-]+)[^`|]*)`", PAGE)
    assert len(found) > 20
    environment = {**os.environ, "NO_COLOR": "1"}
    helps: dict[str, str] = {}
    for text in found:
        command, *words = text.split(" -- ")[0].split()
        if command not in helps:
            done = subprocess.run(
                [MAREY, command, "--help"], env=environment, capture_output=True, text=True, check=True, timeout=60
            )
            helps[command] = done.stdout
        for word in words:
            option = re.match(r"--[a-z-]+", word)
            assert option is None or option[0] in helps[command], text


def test_columns_of_the_stopwatch_are_there(tmp_path):
    stopwatch = marey.Stopwatch()
    stopwatch.enable(0, None, False)
    stopwatch.set_cpu_usage_meas_name("a")
    stopwatch.start_one_time_measurement("once")
    stopwatch.start_meas("a")
    stopwatch.end_meas("a")
    stopwatch.finish_iter()
    stats = stopwatch.stats()
    section = sections()["ACCV-Lab: `optim_test_tools`"]
    rows = re.findall(r"^\| `.*` \| `(\w+)` \| (.*) \|$", section, re.MULTILINE)
    assert [table for table, _ in rows] == ["iteration", "iterations", "intervals", "intervals", "usage", "once"]
    for table, columns in rows:
        assert set(re.findall(r"`(\w+)`", columns)) <= set(stats[table].columns), table
    stopwatch.reset()
