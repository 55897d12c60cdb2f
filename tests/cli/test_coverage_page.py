"""docs/internals/coverage.md: each test that it names exists, and each row has one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = (ROOT / "docs" / "internals" / "coverage.md").read_text(encoding="utf-8")
# In a row's last column: `python/test_a.py::x`, then `::y` of the same file; `unit/test_a.c: x`, then `: y`.
NAMED = re.compile(r"`(?P<path>(?:[\w.-]+/)+[\w.*-]+)?(?:(?:::|: )(?P<name>\w+)(?:\[.*?\])?)?`")


@cache
def functions_of(path: Path) -> frozenset[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return frozenset(re.findall(r"^(?:static )?void (\w+)\(", text, re.MULTILINE))
    return frozenset(node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def rows() -> list[tuple[str, str, str]]:
    """Features, their implementation and their tests."""
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in PAGE.splitlines()]
    return [(row[0], row[1], row[-1]) for row in cells if len(row) >= 3 and row[-1] != "test" and row[0].strip("-")]


def mistakes(cell: str) -> list[str]:
    wrong, path = [], None
    for match in NAMED.finditer(cell):
        if match["path"] is not None and not match["path"].startswith("build/"):  # what a test makes
            path = next((p for top in (TESTS, ROOT) for p in top.glob(match["path"])), None)
            if path is None:
                wrong.append(f"there is no {match['path']}")
        if match["name"] is not None and path is not None and match["name"] not in functions_of(path):
            wrong.append(f"{path.relative_to(ROOT)} has no {match['name']}")
    return wrong


def test_each_test_that_is_named_exists():
    found = rows()
    assert len(found) > 200
    assert {what: wrong for what, _, cell in found if (wrong := mistakes(cell))} == {}


def test_each_row_has_a_test():
    assert {what for what, _, cell in rows() if "/" not in cell and "ctest" not in cell} == set()


@pytest.mark.parametrize("page", ["README.md", "docs"])
def test_nothing_is_promised(page):
    """Pages describe existing features only."""
    pages = sorted((ROOT / page).rglob("*.md")) if (ROOT / page).is_dir() else [ROOT / page]
    assert [str(file) for file in pages if re.search(r"\bplanned\b", file.read_text(encoding="utf-8"), re.I)] == []


def test_the_guide_names_every_command(marey):
    guide = (ROOT / "docs" / "guide" / "which-instrument.md").read_text(encoding="utf-8")
    names = set(marey("help", "--names").stdout.split()) - {"dump", "completion"}  # they look, and measure nothing
    said = {name for name in names if re.search(rf"\b{name}\b", guide)}
    assert names - said == set()
    assert "which-instrument.md" in marey("--help").stdout
    assert "which-instrument.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    """A page without its blocks of code and what is in backquotes."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Headings as links name them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings)


def test_links_of_all_pages_lead_somewhere():
    wrong, n_links = [], 0
    for page in [*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
            if link.startswith("http"):
                continue
            n_links += 1
            path, _, anchor = link.partition("#")
            to = page.parent / path if path else page
            if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors_of(to)):
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert wrong == []
    assert n_links > 300


def test_a_test_that_is_gone_is_found():
    assert mistakes("`cli/test_coverage_page.py::test_each_test_that_is_named_exists`, `::rows`") == []
    assert mistakes("`cli/test_coverage_page.py::rows`, `::columns`") == [
        "tests/cli/test_coverage_page.py has no columns"
    ]
    assert mistakes("`unit/test_lane.c: a_busy_lane_loses_and_counts`, `: nothing`") == [
        "tests/unit/test_lane.c has no nothing"
    ]
    assert mistakes("`cli/test_none.py`") == ["there is no cli/test_none.py"]
