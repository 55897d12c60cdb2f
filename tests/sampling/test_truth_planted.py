"""The planted slow function is the first in the report, with its line."""

from __future__ import annotations

import re

import pytest
from watching import Marey, running

PLANTS = {
    "slow_loop": ("distances", ""),
    "blocking_call": ("ask", "receive socket"),
    "file_io": ("write_checkpoint", ""),
    "lock_wait": ("take", "futex"),
    "server": ("checksum", ""),
}


@pytest.mark.parametrize("name", PLANTS)
def test_the_cause_is_named_first_with_its_line(marey: Marey, name: str) -> None:
    function, waits = PLANTS[name]
    with running(name) as target:
        recording = marey.attach(target.pid, seconds=1)
    tables = marey.report(recording)
    first = tables["lines"][0]
    assert (first["function"], first["line"]) == (function, target.planted_line()), tables["lines"][:3]
    assert tables["functions"][0]["function"] == function
    assert waits in (first["waits"] or "")
    text = marey.run("report", recording).stdout
    rows = [line for line in text.splitlines() if re.search(rf"{name}\.py:\d+", line)]
    assert rows, text
    assert f"{name}.py:{target.planted_line()}" in rows[0] or function in rows[0], text
    assert any(f"{name}.py:{target.planted_line()}" in row for row in rows), text
