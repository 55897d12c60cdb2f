"""A pytest plug-in: the fixture `golden_dump` compares tensors with those of an earlier run.

    def test_layer(golden_dump):
        golden_dump({"out": layer(x)}, atol=1e-6)

`pytest --golden-update` writes the golden dumps into golden/ next to the test; commit them. Without it, the values are
compared as in marey.diff(), and the failure shows the first difference.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --golden-update."""
    group = parser.getgroup("marey")
    group.addoption("--golden-update", action="store_true", help="rewrite the golden dumps of `golden_dump`")
    parser.addini(
        "golden_dir", "directory of golden dumps, relative to the test's directory (default: golden)", default="golden"
    )


class GoldenDump:
    """The fixture `golden_dump`: call it with data, or use running() around code that uses marey.TensorDumper."""

    def __init__(self, directory: Path, scratch: Path, update: bool) -> None:
        """The golden dumps of a test are in `directory`; new ones are first written to `scratch`."""
        self.directory = directory
        self.update = update
        self._scratch = scratch

    def __call__(self, data: Any, name: str = "dump", **tolerances: Any) -> None:
        """Compare `data`, possibly nested tensors, with the golden dump `name`.

        Tolerances are those of marey.diff(): atol, rtol, ulp, bitwise, equal_nan, tolerances and so on.
        """
        from marey._diff import add

        with self.running(name, **tolerances) as dumper:
            add(dumper, "data", data)

    @contextmanager
    def running(self, name: str = "dump", **tolerances: Any) -> Iterator[Any]:
        """Enable marey.TensorDumper for the block, and compare all values added to it, step by step."""
        from marey._diff import recording_to

        fresh = self._scratch / name
        with recording_to(fresh) as dumper:
            yield dumper
        self._judge(name, fresh, tolerances)

    def _judge(self, name: str, fresh: Path, tolerances: dict[str, Any]) -> None:
        from marey._diff import diff

        golden = self.directory / name
        if self.update:
            shutil.rmtree(golden, ignore_errors=True)
            golden.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(fresh, golden)
            return
        if not golden.exists():
            pytest.fail(f"there is no golden dump {golden}; 'pytest --golden-update' writes it", pytrace=False)
        found = diff(fresh, golden, **tolerances)
        if not found.same or found.partial:
            pytest.fail(f"not as in the golden dump {golden}:\n{found!r}", pytrace=False)


@pytest.fixture
def golden_dump(request: pytest.FixtureRequest, tmp_path: Path) -> GoldenDump:
    """Compare tensors with the golden dumps of this test; --golden-update writes them."""
    folder = os.path.join(request.config.getini("golden_dir"), request.path.stem, _as_file(request.node.name))
    return GoldenDump(request.path.parent / folder, tmp_path / "golden", request.config.getoption("--golden-update"))


def _as_file(name: str) -> str:
    """Return a file name for a test; its parameters may be any string."""
    return re.sub(r"[^A-Za-z0-9_.=,+-]", "_", name).lstrip(".")
