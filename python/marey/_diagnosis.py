"""The types of what Recording.diagnosis() returns, for type checkers; docs/formats/diagnosis.md describes the keys."""

from __future__ import annotations

from typing import Any, Literal, Optional, TypedDict


class Steps(TypedDict):
    """Training steps, without those of warm-up."""

    n: int
    warmup: int
    median_ns: int
    mean_ns: int
    samples_per_s: Optional[float]
    detected_by: Literal["api", "callback", "optimizer", "batches"]


class Startup(TypedDict):
    """A part of the time before steps count."""

    what: str
    ns: int
    share: float


class Device(TypedDict):
    """What GPUs do in the steps that were traced; the first four add up to 1."""

    compute: float
    communication: float
    copy: float
    idle: float
    mfu: Optional[float]


class Cost(TypedDict):
    """What recording cost, as a share of the program's time."""

    share: float
    low: Optional[float]
    high: Optional[float]
    measured: bool


class Place(TypedDict):
    """A function, and the line in it that runs most."""

    function: str
    file: str
    line: int
    process: Optional[int]
    rank: Optional[int]


class Gain(TypedDict):
    """Factors of speed that a fix can reach."""

    at_most: float
    low: float
    high: float


class Finding(TypedDict):
    """What slows the program down; `marey explain ID` has more."""

    id: str
    kind: Literal["time", "risk"]
    severity: Literal["high", "medium", "low"]
    experimental: bool
    claim: str
    where: list[Place]
    phase: Optional[str]
    ranks: Optional[list[int]]
    share: Optional[float]
    gain: Optional[Gain]
    because: list[Any]
    action: str
    verify: Optional[str]
    confidence: float
    evidence: list[dict[str, Any]]


class Diagnosis(TypedDict):
    """The whole; `schema` is 1."""

    schema: int
    verdict: str
    missing: Optional[str]
    steps: Optional[Steps]
    startup_ns: Optional[int]
    startup: list[Startup]
    device: Optional[Device]
    cost: Cost
    findings: list[Finding]
