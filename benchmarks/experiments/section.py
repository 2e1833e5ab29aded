"""Section of an experiment: claims, measurements, tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Size:
    """Size of an experiment: rows of the stream, and repetitions of each case, in turn.

    ``directories`` have data that is not made here, as far as there is any.
    """

    rows: int
    repeats: int
    directories: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, or a goal, and the measurement; None if it holds in part."""

    text: str
    measured: str
    holds: bool | None = None


@dataclass(frozen=True)
class Figures:
    """A table; the first row is its heading."""

    title: str
    rows: list[list[str]]


@dataclass(frozen=True)
class Section:
    """One experiment of the report. Files are named as they lie beside the record of the experiment."""

    title: str
    about: str
    claims: list[Claim]
    tables: list[Figures]
    pictures: list[str] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Section:
        claims = [Claim(**claim) for claim in data["claims"]]
        tables = [Figures(**table) for table in data["tables"]]
        return cls(data["title"], data["about"], claims, tables, data["pictures"])


def verdict(claim: Claim) -> str:
    return {True: "yes", False: "no", None: "in part"}[claim.holds]
