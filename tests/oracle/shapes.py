"""Parts of random queries: sources, amounts along an attribute, conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

Draw = st.DrawFn

UNITS = {"TIMESTAMP": "SECONDS", "DATE": "DAYS"}


@dataclass(frozen=True)
class Source:
    """A source: its columns with their types, and the type of its timestamp.

    ``attributes`` are the columns that something is promised about, so that windows may be defined on them;
    ``extreme`` says whether values are as large as they can be; ``arrives`` whether tuples come as they were
    read, from one source partition.
    """

    name: str
    columns: Mapping[str, str]
    time_type: str
    attributes: frozenset[str] = frozenset()
    extreme: bool = False
    arrives: bool = False

    def of(self, *families: str) -> list[str]:
        """Columns whose types belong to these families."""
        return [name for name, type_ in self.columns.items() if family(type_) in families]


@dataclass(frozen=True)
class Amounts:
    """Amounts along a timestamp, counted in the ticks in which times are generated."""

    type: str

    def interval(self, ticks: int) -> str:
        return f"INTERVAL {self.length(ticks)}" if self.type in UNITS else self.number(ticks)

    def length(self, ticks: int) -> str:
        return f"{ticks} {UNITS[self.type]}" if self.type in UNITS else self.number(ticks)

    def number(self, ticks: int) -> str:
        return str(ticks) if family(self.type) == "integer" else f"{ticks / 4:.2f}"

    def origin(self, ticks: int) -> str:
        if self.type == "DATE":
            return f"'2026-01-{ticks + 1:02}'"
        return f"'2026-01-01 12:00:{ticks:02}'" if self.type == "TIMESTAMP" else self.number(ticks)


def family(type_: str) -> str:
    """integer, double, decimal, string, time or date."""
    if type_ in ("INT", "BIGINT"):
        return "integer"
    return "time" if type_ == "TIMESTAMP" else type_.partition("(")[0].lower()


def united(left: str, right: str) -> str:
    """A type of the family that a UNION of two columns has."""
    wider = ["INT", "BIGINT", "DECIMAL(10, 2)", "DOUBLE"]
    return left if left == right else max(left, right, key=wider.index)


@st.composite
def condition(draw: Draw, source: Source) -> str:
    column = draw(st.sampled_from(sorted(source.columns)))
    n = draw(st.integers(-3, 3))
    special = {
        "integer": [f"{column} > {n}", f"{column} % 2 = 0", f"{column} IN (1, {n})"],
        "double": [f"{column} <= {n}", f"{column} BETWEEN -1 AND {n}"],
        "decimal": [f"{column} <> {n}", f"{column} < {n}.5"],
        "string": [f"{column} >= 'b'", f"length({column}) = 1"],
        "time": [f"{column} > TIMESTAMP '2026-01-01 12:00:10'"],
        "date": [f"{column} > DATE '2026-01-10'"],
    }[family(source.columns[column])]
    return draw(st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL", *special]))
