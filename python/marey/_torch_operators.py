"""The operator table of a torch.profiler trace, as in `marey artifacts`."""

from __future__ import annotations

import os

from marey._report import Report, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from typing import Optional, Union

    from marey._table import Table


def operators(
    path: Union[str, os.PathLike[str]], *, sort: Optional[str] = None, by_name: bool = False, stack_depth: int = 5
) -> Table:
    """Sum the calls in a torch.profiler trace by operator, input shapes and stack, like torch's key_averages().

    `by_name` merges all calls of the same name. `stack_depth` is the number of stack entries that distinguish calls.
    `sort` is a key of torch: "self_cpu_time_total", "cuda_time_total", "count" and so on; by default self time on the
    device, or on the CPU if there is no device. torch is not needed. Times are whole nanoseconds.
    """
    from marey import _tools

    settings = settings_of({"sort": sort, "by_name": by_name, "stack_depth": max(stack_depth, 0)})
    return Report("operators", _tools.report_files("operators", (os.fspath(path),), settings))["operators"]
