"""The possible stacks of a target, from its source: which function calls which on which line.

A stack is impossible when a frame's line is none of its function's, when the line of a frame calls no such function as
the frame above it, or when a recursion goes deeper than the target's DEPTH. Calls that the source does not name, such
as next() of a generator, are marked where they stand: `# -> outer_a`. Functions that others than the target's own code
call (threads, tasks) are marked `# entry`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Optional


class Frame(NamedTuple):
    function: str
    file: str
    line: int


Stack = tuple[Frame, ...]  # outermost first
TRUNCATED = Frame("(truncated)", "", 0)  # outer frames are missing, and the tool says so


class Grammar:
    """The call grammar of the source at `path`."""

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.file = path.name
        self.lines: dict[str, set[int]] = {}
        self.calls: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.calls_others: set[tuple[str, int]] = set()
        self.entries: set[str] = set()
        self.depth: Optional[int] = None
        tree, marks = ast.parse(text), text.splitlines()
        functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        self.names = {function.name for function in functions}
        self._take("<module>", tree, range(1, len(marks) + 1), marks)
        for function in functions:
            self._take(function.name, function, range(function.lineno, (function.end_lineno or 0) + 1), marks)
            if marks[function.lineno - 1].endswith("# entry"):
                self.entries.add(function.name)
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DEPTH":
                self.depth = ast.literal_eval(node.value)

    def _take(self, name: str, node: ast.AST, lines: Iterable[int], marks: list[str]) -> None:
        self.lines[name] = set(lines)
        for call in ast.walk(node):
            if isinstance(call, (ast.Import, ast.ImportFrom)):
                self.calls_others.add((name, call.lineno))
            if not isinstance(call, ast.Call):
                continue
            if isinstance(call.func, ast.Name) and call.func.id in self.names:
                self.calls[name, call.lineno].add(call.func.id)
            else:
                self.calls_others.add((name, call.lineno))
        for line in self.lines[name]:
            mark = re.search(r"# -> (.*)$", marks[line - 1])
            if mark:
                self.calls[name, line].update(mark.group(1).split())

    def fault(self, stack: Stack) -> str:
        """Return why `stack` is impossible, or an empty string."""
        if not stack:
            return "no frames"
        frames = [frame._replace(function=frame.function.rpartition(".")[2]) for frame in stack if frame != TRUNCATED]
        is_own = [Path(frame.file).name == self.file for frame in frames]
        for i, frame in enumerate(frames):
            if is_own[i] and frame.line not in self.lines.get(frame.function, ()):
                return f"{frame.function} has no line {frame.line}"
            fault = self._edge_fault(frames[i - 1], is_own[i - 1], frame, is_own[i]) if i else ""
            if fault:
                return fault
        if stack[0] != TRUNCATED and is_own[0] and frames[0].function != "<module>":
            return f"begins with {frames[0].function}"
        deepest = Counter(frame.function for i, frame in enumerate(frames) if is_own[i])
        if self.depth is not None and max(deepest.values(), default=0) > self.depth:
            return f"a recursion of more than {self.depth}"
        return ""

    def _edge_fault(self, caller: Frame, is_own: bool, callee: Frame, is_callee_own: bool) -> str:
        where = (caller.function, caller.line)
        if is_own and is_callee_own:
            possible = callee.function in self.calls.get(where, ())
        elif is_own:
            possible = where in self.calls_others
        else:
            possible = not is_callee_own or callee.function in self.entries or callee.function == "<module>"
        return "" if possible else f"{caller.function}:{caller.line} does not call {callee.function}"

    def judge(self, stacks: Counter[Stack]) -> tuple[int, int, Counter[str]]:
        """Return the number of samples, of impossible ones, and the counts by reason."""
        reasons: Counter[str] = Counter()
        for stack, n in stacks.items():
            fault = self.fault(stack)
            if fault:
                reasons[fault] += n
        return sum(stacks.values()), sum(reasons.values()), reasons
