"""Queries over the contents of windows, drawn at random: every operator on every kind of window."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from oracle import Arrivals, Row
from tests.oracle.generate import Case, StreamDeclaration, TableDeclaration

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEYS = {
    "INT": [1, 1, 2, None],
    "BIGINT": [1, 1, 2, None],
    "STRING": ["a", "a", "", None],
    "DOUBLE": [0.0, -0.0, 1.0, None, float("nan")],
}
VALUES = {
    "INT": [*range(5), None],
    "DOUBLE": [0.0, -0.0, 0.25, 1.5, float("nan"), None],
    "DECIMAL(10, 2)": [Decimal("0.00"), Decimal("1.25"), Decimal("-3.50"), None],
    "STRING": ["", "a", "b", "ab", None],
}
TIMES = ("INT", "TINYINT", "BIGINT", "TIMESTAMP", "DATE", "DOUBLE", "DECIMAL(10, 2)")
_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
_SLACKS = ("", "SLACK {}", "SLACK {}", "SLACK 2 ROWS")
_STREAMS = ("", "", "ISTREAM", "DSTREAM", "RSTREAM", "CHANGES", "CHANGES")


@dataclass(frozen=True)
class Relation:
    """A relation in FROM: its text, and its columns, the key first."""

    text: str
    columns: tuple[str, ...]


@dataclass
class Drawing:
    """Draws one script; ``time`` and ``types`` are those of the timestamp, the key and the values."""

    chance: random.Random
    time: str
    key: str
    value: str
    _names: int = 0

    # ------------------------------------------------------------ streams

    def declarations(self) -> tuple[StreamDeclaration | TableDeclaration, ...]:
        slacks = [self.chance.choice(_SLACKS).format(self.amount(2)) for _ in "ab"]
        other = {"INT": "BIGINT"}.get(self.key, self.key)  # keys of different types are compared
        columns = (
            f"k {self.key}, v {self.value}, t {self.time}",
            f"k {other}, v {self.value}, w INT, t {self.time}",
        )
        if self.time in ("INT", "BIGINT", "TINYINT"):
            slacks[1] += f" SLACK {max(VALUES['INT'][:-1])} ON w"  # it is never broken
        parts = zip("ab", columns, slacks, strict=True)
        streams = (StreamDeclaration(name, typed, "ORDER BY t", slack) for name, typed, slack in parts)
        return (*streams, TableDeclaration("names", f"k {self.key}, name STRING"))

    def arrivals(self, names: Sequence[str]) -> Arrivals:
        """In little disorder, with ties; some tuples are late."""
        return Arrivals([self._partition(names) for _ in range(self.chance.choice([1, 1, 1, 2]))])

    def _partition(self, names: Sequence[str]) -> list[Row]:
        rows = []
        tick = 0
        for _ in range(self.chance.choice([0, 5, 8, 11, 14])):
            tick += self.chance.choice([0, 0, 1, 1, 2])
            values: dict[str, Any] = {"k": self.chance.choice(KEYS[self.key])}
            values["t"] = self.instant(max(0, tick - self.chance.choice([0, 0, 0, 1, 2, 3])))
            values["v"] = self.chance.choice(VALUES[self.value])
            values["w"] = self.chance.choice(VALUES["INT"])
            rows.append(Row({name: values[name] for name in names}))
        return rows

    def instant(self, tick: int) -> Any:
        match self.time:
            case "TIMESTAMP":
                return NOON + timedelta(seconds=tick)
            case "DATE":
                return date(2026, 1, 1) + timedelta(days=tick)
            case "TINYINT":
                return min(114 + tick, 127)  # windows end behind the largest
            case "DOUBLE":
                return float(tick)
            case "DECIMAL(10, 2)":
                return Decimal(tick).scaleb(-2)
        return tick

    def amount(self, ticks: int) -> str:
        match self.time:
            case "TIMESTAMP":
                return f"{ticks} SECONDS"
            case "DATE":
                return f"{ticks} DAYS"
            case "DECIMAL(10, 2)":
                return f"0.{ticks:02}"
        return str(ticks)

    def bound(self, tick: int) -> str:
        at = self.instant(tick)
        match self.time:
            case "TIMESTAMP":
                return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S}'"
            case "DATE":
                return f"DATE '{at}'"
        return str(at)

    # ------------------------------------------------------------ windows

    def window(self, stream: str) -> str:
        draw = self.chance.randint
        size, step = self.amount(draw(1, 5)), self.amount(draw(1, 3))
        start = f"START AT {self.bound(draw(0, 4))}"
        end = f" END AT {self.bound(draw(5, 12))}"
        if self.time == "TIMESTAMP" and self.chance.random() < 0.1:
            return f"LANDMARK START AT '12:00:0{draw(0, 4)}'{self.chance.choice(['', end])}"
        if self.time in ("INT", "BIGINT", "TINYINT") and stream == "b" and self.chance.random() < 0.1:
            return f"RANGE {draw(1, 3)}{self.chance.choice(['', ' SLIDE 2'])} WATTR w"
        return self.chance.choice(
            [
                f"RANGE {size}",
                f"RANGE {size}",
                f"RANGE {size}",
                f"RANGE {size} SLIDE {step}",
                f"RANGE {size} SLIDE {step}",
                f"TUMBLE {step}",
                f"ROWS {draw(1, 4)}",
                f"ROWS {draw(1, 4)}",
                f"ROWS {draw(1, 3)} PATTR k",
                f"ROWS {draw(1, 4)} SLIDE {draw(2, 3)}{self.chance.choice(['', '', ' PATTR k'])}",
                f"LANDMARK {start}",
                f"LANDMARK {start}{end}",
                f"LANDMARK {start}{self.chance.choice([end, ''])} SLIDE {step}",
                f"UNBOUNDED SLIDE {step}",
                "NOW",
                "UNBOUNDED",
            ]
        )

    def _windowed(self) -> Relation:
        stream = self.chance.choice("ab")
        alias = self._alias()
        columns = ("k", "v", "t") if stream == "a" else ("k", "v", "w", "t")
        text = f"{stream} [{self.window(stream)}] AS {alias}"
        return Relation(text, tuple(f"{alias}.{name}" for name in columns))

    def _alias(self) -> str:
        self._names += 1
        return f"x{self._names}"

    # ------------------------------------------------------------ queries

    def query(self) -> str:
        """Draw a whole query, and the conversion of its result."""
        text, _ = self._select(2, self.chance.choice(_STREAMS))
        return text

    def _select(self, depth: int, stream: str = "") -> tuple[str, int]:
        """A query, and how many columns it has."""
        if self.chance.random() < 0.2:
            return self._set_operation(depth, stream)
        source, columns, where = self._from(depth)
        kind = self.chance.random()
        if kind < 0.35:
            return self._grouped(stream, source, columns, where)
        distinct = "DISTINCT" if kind < 0.55 else ""
        some = self.chance.sample(columns, self.chance.randint(1, min(3, len(columns))))
        outputs = [f"{self._expression(column)} AS c{i}" for i, column in enumerate(some)]
        return _joined("SELECT", stream, distinct, ", ".join(outputs), source, where), len(outputs)

    def _expression(self, column: str) -> str:
        if column.endswith(".w") and self.chance.random() < 0.3:
            return self.chance.choice([f"{column} + 1", f"coalesce({column}, 7)", f"{column} > 2"])
        return column

    def _grouped(self, stream: str, source: str, columns: Sequence[str], where: str) -> tuple[str, int]:
        keys = self.chance.sample(columns, self.chance.choice([0, 1, 1, 2]) % (len(columns) + 1))
        calls = [self._call(columns) for _ in range(self.chance.randint(1, 3))]
        outputs = [f"{key} AS c{i}" for i, key in enumerate(keys)]
        outputs += [f"{call} AS c{i + len(keys)}" for i, call in enumerate(calls)]
        by = f"GROUP BY {', '.join(keys)}" if keys else ""
        having = f"HAVING count(*) > {self.chance.randint(1, 2)}" if self.chance.random() < 0.2 else ""
        return _joined("SELECT", stream, ", ".join(outputs), source, where, by, having), len(outputs)

    def _call(self, columns: Sequence[str]) -> str:
        column = self.chance.choice(columns)
        calls = ["count(*)", f"count({column})", f"count(DISTINCT {column})", f"min({column})"]
        calls += [f"max({column})", "count(*)", f"first({column})", f"collect_list({column})"]
        if self._is_number(column):
            calls += [f"sum({column})", f"avg({column})", f"sum({column})", f"stddev({column})"]
            calls += [f"sum({column}) FILTER (WHERE {column} > 1)"]
        return self.chance.choice(calls)

    def _is_number(self, column: str) -> bool:
        name = column.split(".")[1]
        return name == "w" or (name == "v" and self.value != "STRING")

    def _set_operation(self, depth: int, stream: str) -> tuple[str, int]:
        kind = self.chance.choice(["UNION", "INTERSECT", "EXCEPT"]) + self.chance.choice([" ALL", ""])
        names = self.chance.choice([["k"], ["k", "v"], ["v"], ["k", "t"]])
        counted = self.chance.random() < 0.25
        sides = []
        for number in (0, 1):
            source, columns, where = self._from(depth if self.chance.random() < 0.3 else 0)
            mine = [next((c for c in columns if c.endswith(f".{name}")), None) for name in names]
            while any(one is None for one in mine):
                source, columns, where = self._from(0)
                mine = [next((c for c in columns if c.endswith(f".{name}")), None) for name in names]
            outputs = [f"{column} AS c{i}" for i, column in enumerate(mine)]
            by = ""
            if counted:
                outputs.append(
                    f"{self.chance.choice(['count(*)', 'count(DISTINCT ' + columns[0] + ')'])} AS n"
                )
                by = f"GROUP BY {', '.join(map(str, mine))}"
            asked = stream if not number else ""
            sides.append(_joined("SELECT", asked, ", ".join(outputs), source, where, by))
        return f" {kind} ".join(sides), len(names) + counted

    # ------------------------------------------------------------ FROM and WHERE

    def _from(self, depth: int) -> tuple[str, list[str], str]:
        """FROM, the columns that are there, and WHERE."""
        first = self._relation(depth)
        text, columns = f"FROM {first.text}", list(first.columns)
        conditions = []
        for _ in range(self.chance.choice([0, 0, 1, 1, 1, 2]) if depth else self.chance.choice([0, 0, 1])):
            other = self._relation(depth - 1)
            on = self._conditions(columns, other.columns)
            if self.chance.random() < 0.2:
                text += f", {other.text}"
                conditions += on
                columns += other.columns
                continue
            kind = self.chance.choice(_JOINS)
            text += f" {kind} {other.text} ON {' AND '.join(on)}"
            columns += () if "SEMI" in kind or "ANTI" in kind else other.columns
        if self.chance.random() < 0.2 and any(c.endswith(".k") for c in columns):
            alias = self._alias()
            key = self.chance.choice([c for c in columns if c.endswith(".k")])
            text += f" {self.chance.choice(_JOINS)} names AS {alias} ON {key} = {alias}.k"
            columns += () if "SEMI" in text or "ANTI" in text else (f"{alias}.name",)
        if self.chance.random() < 0.3:
            conditions.append(self._condition(columns))
        return text, columns, f"WHERE {' AND '.join(conditions)}" if conditions else ""

    def _conditions(self, left: Sequence[str], right: Sequence[str]) -> list[str]:
        """Draw the conditions on pairs: mostly equal keys, sometimes more, sometimes others."""
        pairs = [(x, y) for x in left for y in right if x.split(".")[1] == y.split(".")[1]]
        keys = [pair for pair in pairs if pair[0].endswith(".k")]
        found = []
        if keys and self.chance.random() < 0.85:
            found.append(" = ".join(self.chance.choice(keys)))
        if pairs and (not found or self.chance.random() < 0.35):
            found.append(self.chance.choice([" < ", " <= ", " <> ", " = "]).join(self.chance.choice(pairs)))
        if self.chance.random() < 0.15 or not found:
            found.append(self._condition([*left, *right]))
        return found

    def _condition(self, columns: Sequence[str]) -> str:
        column = self.chance.choice(columns)
        if self._is_number(column):
            return f"{column} {self.chance.choice(['>', '<', '<>'])} {self.chance.randint(0, 3)}"
        return f"{column} IS {self.chance.choice(['', 'NOT ', 'NOT ', 'NOT '])}NULL"

    def _relation(self, depth: int) -> Relation:
        if depth <= 0 or self.chance.random() < 0.65:
            return self._windowed()
        return self._derived(depth - 1)

    def _derived(self, depth: int) -> Relation:
        """A query in FROM, whose columns are called as those of streams, so that they can be joined."""
        source, columns, where = self._from(depth)
        named: dict[str, str] = {}
        for column in self.chance.sample(columns, len(columns)):
            named.setdefault(column.split(".")[1], column)
        names = [name for name in named if name == "k" or self.chance.random() < 0.6] or list(named)
        alias = self._alias()
        # Over one window that ends, groups are reported when it does, and are a stream.
        varies = "JOIN" in source or ", " in source or ("[RANGE" in source and "SLIDE" not in source)
        if self.chance.random() < 0.3 and "k" in named and varies:
            calls = [f"{self._call(columns)} AS w"] if self.chance.random() < 0.8 else []
            if calls and self._is_number("x.w") and not calls[0].startswith("count"):
                calls = ["count(*) AS w"]
            text = _joined("SELECT", ", ".join([f"{named['k']} AS k", *calls]), source, where)
            return Relation(
                f"({text} GROUP BY {named['k']}) AS {alias}",
                (f"{alias}.k", *((f"{alias}.w",) if calls else ())),
            )
        distinct = "DISTINCT" if self.chance.random() < 0.4 else ""
        outputs = ", ".join(f"{named[name]} AS {name}" for name in names)
        text = _joined("SELECT", distinct, outputs, source, where)
        return Relation(f"({text}) AS {alias}", tuple(f"{alias}.{name}" for name in names))


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def drawn(chance: random.Random) -> Case:
    """A script with one query, and the arrivals of its streams."""
    one = Drawing(
        chance, chance.choice(TIMES), chance.choice([*KEYS, "INT", "INT"]), chance.choice([*VALUES, "INT"])
    )
    declarations = one.declarations()
    queries = (one.query(),)
    keys = [chance.choice(KEYS[one.key]) for _ in range(chance.randint(0, 3))]
    names = [{"k": key, "name": chance.choice("xy")} for key in keys]
    inputs = {"a": one.arrivals("kvt"), "b": one.arrivals("kvwt"), "names": names}
    return Case(declarations, (), queries, inputs)
