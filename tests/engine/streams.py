"""Streams at random: declarations with every disorder clause, and arrivals that break them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from millstream.progress.disorder_clauses import (
    Clause,
    Heartbeats,
    InOrder,
    OrderedPer,
    Promises,
    Punctuated,
    RowSlack,
)
from millstream.stage.pipeline import KEEP, PROMISE, SUBSTREAM, TIME
from oracle import Arrivals, Row
from tests.engine.simulation import Arrival

BIG = 2**63 - 1

CLAUSES: list[tuple[str, tuple[Clause, ...], bool]] = [
    ("", (InOrder(),), False),
    ("SLACK 3", (InOrder(3),), False),
    ("SLACK 3 GENEROUS", (InOrder(3),), True),
    ("SLACK 2 ROWS", (RowSlack(2),), False),
    ("SLACK 1 ROWS GENEROUS", (RowSlack(1),), True),
    ("ORDERED PER (k)", (OrderedPer(),), False),
    ("PUNCTUATED BY (p)", (Punctuated(),), False),
    ("PUNCTUATED BY (p) PER (k)", (Punctuated(per=True),), False),
]

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "INT": (pa.int32(), st.integers(-3, 3)),
    "BIGINT": (pa.int64(), st.one_of(st.integers(-3, 3), st.sampled_from([BIG // 40, -BIG // 40]))),
    "DOUBLE": (
        pa.float64(),
        st.sampled_from(
            [0.0, -0.0, 1.5, -2.25, 1e300, -1e300, 1e-300, float("nan"), float("inf"), -float("inf")]
        ),
    ),
    "STRING": (pa.string(), st.sampled_from(["", "a", "b", "ab", "é", "z"])),
    "DECIMAL(12, 2)": (
        pa.decimal128(12, 2),
        st.integers(-(10**6), 10**6).map(lambda i: Decimal(i).scaleb(-2)),
    ),
    "DECIMAL(38, 3)": (
        pa.decimal128(38, 3),
        st.sampled_from(
            [Decimal("1.125"), Decimal("-7.5"), Decimal("12345678901234567890.125"), Decimal("0.000")]
        ),
    ),
}


@dataclass(frozen=True)
class Source:
    """A stream (k INT, v <type>, t BIGINT, p BOOLEAN) with some arrivals."""

    clause: str
    promises: Promises
    value_type: str
    arrivals: list[tuple[int, dict[str, Any]]]

    def declared(self, name: str) -> str:
        columns = f"k INT, v {self.value_type}, t BIGINT, p BOOLEAN"
        return f"CREATE STREAM {name} ({columns}) ORDER BY t {self.clause};"

    @property
    def partitions(self) -> int:
        return 1 + max((partition for partition, _ in self.arrivals), default=0)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the packed rows."""
        fields = [
            ("k", pa.int32()),
            ("v", VALUES[self.value_type][0]),
            ("t", pa.int64()),
            ("__ms_key", pa.int64()),
        ]
        fields += [(TIME, pa.int64()), (KEEP, pa.bool_()), (SUBSTREAM, pa.string()), (PROMISE, pa.bool_())]
        return pa.schema(fields)

    def for_the_oracle(self) -> Arrivals:
        partitions: list[list[Row]] = [[] for _ in range(self.partitions)]
        for partition, row in self.arrivals:
            partitions[partition].append(Row(row))
        return Arrivals(partitions)

    def for_the_engine(self, number: int = 0) -> list[Arrival]:
        punctuated = "PUNCTUATED" in self.clause
        return [
            (
                number,
                partition,
                {
                    **row,
                    "__ms_key": row["k"],
                    TIME: row["t"],
                    KEEP: not (punctuated and row["p"]),
                    PROMISE: punctuated and row["p"],
                    SUBSTREAM: str(row["k"]),
                },
            )
            for partition, row in self.arrivals
        ]


@st.composite
def sources(draw: st.DrawFn, value_types: tuple[str, ...] = tuple(VALUES), generous: bool = True) -> Source:
    clauses = [c for c in CLAUSES if generous or not c[2]]
    clause, parts, is_generous = draw(st.sampled_from(clauses))
    value_type = draw(st.sampled_from(value_types))
    value = st.none() | VALUES[value_type][1]
    row = st.fixed_dictionaries(
        {
            "k": st.none() | st.integers(0, 3),
            "v": value,
            "t": st.integers(-6, 24),
            "p": st.booleans() if "PUNCTUATED" in clause else st.just(False),
        }
    )
    several = draw(st.integers(0, 1))
    arrivals = draw(st.lists(st.tuples(st.integers(0, several), row), max_size=25))
    if draw(st.booleans()):
        # Mostly in order, so that not nearly everything is late.
        arrivals = sorted(arrivals, key=lambda a: a[1]["t"] + 3 * (hash(str(a)) % 2))
    # The oracle numbers partitions without gaps.
    if {p for p, _ in arrivals} == {1}:
        arrivals = [(0, r) for _, r in arrivals]
    return Source(clause, Promises((*parts, Heartbeats()), is_generous), value_type, arrivals)
