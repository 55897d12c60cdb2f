from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Optional, TypedDict, Union, final

_Cell = Union[str, int, float, bool, None]

class _ExportFormat(TypedDict):
    name: str
    extensions: str
    brief: str
    details: Optional[str]
    next: str
    missing: Optional[str]
    leftovers: Optional[str]
    content: str
    takes: list[str]

class _ImportFormat(TypedDict):
    name: str
    brief: str
    extensions: str

export_formats: list[_ExportFormat]
import_formats: list[_ImportFormat]

@final
class Table:
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> tuple[tuple[str, str, str], ...]: ...
    def __len__(self) -> int: ...
    def column(self, number: int, /) -> list[_Cell]: ...
    def write(self, format: str, width: int, tree: Optional[str], max_rows: int, /) -> str: ...

@final
class Report:
    def tables(self) -> list[tuple[str, Optional[str], Table]]: ...
    def notes(self) -> list[str]: ...
    def cost(self) -> dict[str, int]: ...
    def page(self, fd: int, title: Optional[str], /) -> None: ...
    def write(
        self, format: str, table: Optional[str], limit: int, width: int, short: bool, section: Optional[Report], /
    ) -> str: ...

class _Analysis(TypedDict):
    name: str
    help: str
    needs: str
    csv: Optional[str]
    command: Optional[str]
    settings: list[tuple[str, str, Optional[str], str, str]]
    tables: list[tuple[str, Optional[str], str, list[tuple[str, str]]]]

def analyses() -> list[_Analysis]: ...

class _Process(TypedDict):
    pid: int
    rank: int
    world_size: int
    host: str
    run_id: str
    first_ns: int
    last_ns: int
    mono_to_unix_ns: int
    has_events: bool
    has_streams: bool
    energy_domains: dict[str, str]

@final
class Recording:
    def __new__(
        cls,
        paths: tuple[str, ...],
        process: Optional[str],
        /,
    ) -> Recording: ...
    def warnings(self) -> list[str]: ...
    def processes(self) -> list[_Process]: ...
    def export(
        self,
        format: str,
        fd: int,
        filter: Optional[str],
        by: Optional[str],
        baseline: Optional[Recording],
        calls: bool,
        samples: Optional[tuple[str, ...]],
        /,
    ) -> None: ...
    def page(self, fd: int, title: Optional[str], max_ranges: int, settings: tuple[str, ...], /) -> None: ...
    def calls_page(
        self,
        fd: int,
        title: Optional[str],
        name: Optional[str],
        before: Optional[Recording],
        name_before: Optional[str],
        /,
    ) -> None: ...
    def analyze(self, analysis: str, settings: tuple[str, ...], /) -> Report: ...

@final
class DumpedTensor:
    """The numbers of a dumped value, as a buffer; integers of their width where Python has no such type."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def text(self, i: int, /) -> str: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class _Step(TypedDict):
    step: int
    rank: Optional[int]
    world: Optional[int]
    pid: int
    unix_ns: int
    host: Optional[str]
    run: Optional[str]
    mode: Optional[str]
    reason: Optional[str]
    path: str
    layout: str
    complete: bool
    single: bool

class _Value(TypedDict):
    tree: str
    path: tuple[Union[str, int], ...]
    name: str
    seq: int
    kind: str
    text: Optional[str]
    type: str
    dtype: Optional[str]
    shape: Optional[tuple[int, ...]]
    strides: Optional[tuple[int, ...]]
    bytes: int
    has_data: bool
    phase: Optional[str]
    source: Optional[str]
    digest: Optional[str]
    stats: Optional[dict[str, Any]]
    missing: Optional[str]
    files: list[str]

@final
class Dumps:
    def __new__(cls, path: Union[str, PathLike[str]], /) -> Dumps: ...
    def __len__(self) -> int: ...
    def step(self, i: int, /) -> _Step: ...
    def values(self, i: int, /) -> list[_Value]: ...
    def get(self, i: int, v: int, /) -> DumpedTensor: ...
    def release(self, i: int, /) -> bool: ...
    def notes(self) -> list[str]: ...

def compare_pairs(
    a: list[float], b: list[float], smallest_percent: float, /
) -> tuple[str, float, float, float, float, float, str]: ...
def report_files(
    analysis: str,
    paths: tuple[Union[str, bytes], ...],
    settings: tuple[Union[str, bytes], ...],
    groups: tuple[Optional[str], ...] = ...,
    names: tuple[Optional[str], ...] = ...,
    convert: Optional[Callable[[str, bytes, bytes], object]] = ...,
    /,
) -> Report: ...
def import_trace(paths: tuple[str, ...], into: str, format: Optional[str], /) -> tuple[int, int, int, str]: ...
def doctor(path: str, measure: bool, wait_ms: int, /) -> tuple[Table, str, bool]: ...
def stopwatch_table(name: str, /) -> Table: ...
def stopwatch_pack(rank: int, /) -> bytes: ...
def stopwatch_merge(packed: Sequence[bytes], /) -> object: ...
def stopwatch_merged_table(merged: object, name: str, /) -> Table: ...
def make_table(
    name: str,
    columns: tuple[tuple[str, ...], ...],
    rows: list[tuple[_Cell, ...]],
    /,
) -> Table: ...
def append_csv(
    path: Union[str, PathLike[str]],
    columns: tuple[tuple[str, str], ...],
    rows: list[tuple[_Cell, ...]],
    /,
) -> None: ...
def json_tables(tables: Sequence[Table], /) -> str: ...
def diff_pending(
    dir: str,
    step: int,
    tree: int,
    eps: float,
    n_errors: int,
    allow_missing: bool,
    allow_extra: bool,
    allow_dtype: bool,
    rank: int,
    /,
) -> Optional[str]: ...
