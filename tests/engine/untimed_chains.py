"""Chains of operators over streams whose tuples are stamped on arrival: latent ones, and rejected tuples.

The clock of a simulated run stands still, so that the tuples of such a stream are a microsecond apart. The
oracle is told these stamps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.catalog import Catalog as Declared
from millstream.catalog.entries import Stream
from millstream.syntax import parse_script
from oracle import Arrivals, Input, Row
from oracle.scans import scan
from tests.engine.chains import AGGREGATES, Catalog
from tests.engine.relational import NOON, Drawing

_KINDS = ("latent", "late", "bad", "ordered")
_REJECTED = {
    "late": "SELECT k, n FROM {0}_raw_late",
    "bad": "SELECT reason AS k, CAST(length(reason) AS BIGINT) AS n FROM {0}_raw_bad",
}


@dataclass
class Microseconds(Drawing):
    """Draws lengths and instants in the unit in which tuples are stamped."""

    def instant(self, tick: int) -> datetime:
        return NOON + timedelta(microseconds=tick)

    def amount(self, ticks: int) -> str:
        return f"{ticks} MICROSECONDS"

    def bound(self, tick: int) -> str:
        return f"TIMESTAMP '{self.instant(tick):%Y-%m-%d %H:%M:%S.%f}'"


class Untimed(Catalog):
    """Base streams a, b and c: latent, the late tuples or bad records of another, or ordered by time."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.time = "TIMESTAMP"
        self.draw = Microseconds(chance, self.time, "STRING", "BIGINT")
        self.kinds = {name: chance.choice(_KINDS) for name in "abc"}
        self.clauses = {name: self._clause(name) for name in "abc"}

    @property
    def script(self) -> str:
        tables = "CREATE TABLE names (k STRING, name STRING);\n"
        return f"{AGGREGATES}{''.join(map(self._stream, self.kinds))}{tables}"

    def _stream(self, name: str) -> str:
        kind, timed = self.kinds[name], f"(k STRING, n BIGINT, p BOOLEAN, t {self.time}) ORDER BY t"
        if kind == "latent":
            return f"CREATE STREAM {name} (k STRING, n BIGINT);\n"
        if kind == "ordered":
            return f"CREATE STREAM {name} {timed} {self.clauses[name]};\n"
        clause, raw = self.clauses[name].split("LATE INTO")[0], f"{name}_raw"
        return (
            f"CREATE STREAM {raw} {timed} {clause} LATE INTO {raw}_late BAD INTO {raw}_bad;\n"
            f"CREATE STREAM {name} AS {_REJECTED[kind].format(name)};\n"
        )

    def inputs(self) -> dict[str, Input]:
        found = super().inputs()
        for name, kind in self.kinds.items():
            if kind == "ordered":
                continue
            rows = self._partition()
            del found[name]
            if kind == "latent":
                columns = [{column: row.values[column] for column in "kn"} for row in rows]
                stamped = [Row(values, self.draw.instant(i)) for i, values in enumerate(columns)]
                found[name] = Arrivals([stamped])
            else:
                found[f"{name}_raw"] = Arrivals([self._rejecting(f"{name}_raw", rows, kind)])
        return found

    def _rejecting(self, name: str, rows: Sequence[Row], kind: str) -> list[Row]:
        """Rows with the stamps that those of them get that are rejected."""
        entry = declared(self.script).relation(name)
        assert isinstance(entry, Stream)
        scanned = scan(entry, Arrivals([rows]), 0, name)
        rejected = scanned.late if kind == "late" else [record for record, _ in scanned.bad]
        stamps = {record.order[-1]: self.draw.instant(i) for i, record in enumerate(rejected)}
        return [replace(row, stamp=stamps.get(i)) for i, row in enumerate(rows)]


def declared(script: str) -> Declared:
    """The catalog that a script makes."""
    catalog = Declared()
    for statement in parse_script(script):
        analyse(statement, catalog)
    return catalog
