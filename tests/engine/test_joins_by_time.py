"""Joins of streams that are bounded by their timestamps: the rows of the same SQL over whole tables.

The timestamp of a pair is that of its later tuple; that of a row that meets nothing is the end of its time.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import run as interpreted
from tests.engine import plain_sql, simulated
from tests.engine.little import check, stream
from tests.engine.test_maintained_queries import planned

LATER = "greatest(x.t, y.t)"


@dataclass(frozen=True)
class Bounds:
    """``low <= y.t - x.t <= high``."""

    low: int
    high: int

    def written(self, chance: random.Random) -> str:
        low, high = self.low, self.high
        return chance.choice(
            [
                f"y.t BETWEEN x.t + {low} AND x.t + {high}",
                f"x.t BETWEEN y.t - {high} AND y.t - {low}",
                f"y.t >= x.t + {low} AND x.t >= y.t - {high}",
                f"y.t > x.t + ({low} - 1) AND y.t - x.t < {high} + 1",
                f"y.t - x.t >= {low} AND y.t <= ({high} + x.t)",
            ]
        )

    def instant(self, kind: str) -> str:
        """Return the timestamp of a row in SQL."""
        alone = [f"x.t + {max(self.high, 0)}", f"y.t + {max(-self.low, 0)}"]
        if kind == "SEMI JOIN":
            return f"(SELECT min({LATER}) FROM {{b}} y WHERE {{on}})"
        if kind == "ANTI JOIN":
            return alone[0]
        return f"CASE WHEN y.n IS NULL THEN {alone[0]} WHEN x.n IS NULL THEN {alone[1]} ELSE {LATER} END"


KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
MORE = ("", " AND x.v < y.v", " AND x.v > 0", " AND y.v > 0", " AND x.k IS NOT NULL")


def tuples(chance: random.Random, least: int) -> plain_sql.Tuples:
    while len(drawn := plain_sql.tuples(chance)) < least:
        pass
    return drawn


def compare(query: str, sql: str, chance: random.Random, least: int = 0) -> int:
    """Compare an ESL query, and the oracle's result for it, with DuckDB; return the number of rows.

    Each stream has at ``least`` so many tuples.
    """
    plan = planned(plain_sql.declared() + query)
    assert why_not(plan) is None, why_not(plan)
    given = {name: tuples(chance, least) for name in plain_sql.STREAMS}
    inputs = {name: plain_sql.arrivals(rows) for name, rows in given.items()}
    database = plain_sql.Database(given)
    expected = Counter(database.rows(sql))
    database.close()
    answer = interpreted(plan, inputs)
    assert Counter((row.time, *row.values) for row in answer.rows) == expected, query
    found = simulated.run(optimize(plan) if chance.random() < 0.6 else plan, inputs, chance)
    assert Counter(found) == expected, f"{query}\n{given}"
    return len(found)


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_bounds(kind: str) -> None:
    count = 0
    for seed in range(12):
        chance = random.Random(seed)
        low, high = sorted((chance.randint(-5, 4), chance.randint(-4, 5)))
        bounds = Bounds(low, high)
        keys = chance.choice(["x.k = y.k", "x.k = y.k", "true"]) + chance.choice(MORE)
        on = f"{keys} AND {bounds.written(chance)}"
        where = chance.choice(["", "", " WHERE x.v IS NULL OR x.v <> 2"])
        outputs = "x.n, x.v" if kind in ("SEMI JOIN", "ANTI JOIN") else "x.n AS p, y.n AS q, y.v + 1 AS r"
        text = f"FROM a x {kind} b y ON {on}{where}"
        instant = bounds.instant(kind).replace("{b}", "b").replace("{on}", on)
        count += compare(f"SELECT {outputs} {text}", f"SELECT {instant}, {outputs} {text}", chance)
    assert count > 8


@pytest.mark.parametrize("seed", range(4))
def test_bounds_that_follow_from_others(seed: int) -> None:
    chance = random.Random(seed)
    text = (
        "FROM a x JOIN b y ON x.k = y.k AND y.t BETWEEN x.t AND x.t + 3"
        " JOIN c z ON z.t BETWEEN y.t - 2 AND y.t + 1 AND z.k = y.k"
    )
    esl, sql = "SELECT x.n, y.n, z.n", "SELECT greatest(x.t, y.t, z.t), x.n, y.n, z.n"
    compare(f"{esl} {text}", f"{sql} {text}", chance)
    text = "FROM a x, b y, c z WHERE x.t = y.t AND y.k = z.k AND x.t - 2 < z.t AND z.t < y.t + 2"
    compare(f"{esl} {text}", f"{sql} {text}", chance)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_timestamps(kind: str) -> None:
    chance = random.Random(3)
    outputs = "x.n, x.t" if kind in ("SEMI JOIN", "ANTI JOIN") else "x.n AS p, y.n AS q"
    instant = "x.t" if kind in ("SEMI JOIN", "ANTI JOIN") else "coalesce(x.t, y.t)"
    for on in ("x.t = y.t", "x.k = y.k AND y.t = x.t AND x.v < 3"):
        text = f"FROM a x {kind} b y ON {on}"
        compare(f"SELECT {outputs} {text}", f"SELECT {instant}, {outputs} {text}", chance)


def test_times_dates_and_tables() -> None:
    script = (
        "CREATE STREAM a (n INT, at TIMESTAMP) ORDER BY at;"
        "CREATE STREAM b (m INT, at TIMESTAMP) ORDER BY at;"
        "CREATE TABLE c (n INT, name STRING) USING csv OPTIONS (path 'c.csv');"
        "SELECT a.n, b.m, c.name FROM a LEFT JOIN b ON b.at BETWEEN a.at - INTERVAL 1 MINUTE AND a.at"
        " JOIN c ON a.n = c.n"
    )
    ones = [(1, "2026-01-01 00:01:00"), (2, "2026-01-01 00:02:00"), (3, "2026-01-01 00:04:00.5")]
    others = [(7, "2026-01-01 00:01:00"), (8, "2026-01-01 00:03:00"), (9, "2026-01-01 00:05:00")]
    given = {"a": stream("n at", _times(ones)), "b": stream("m at", _times(others))}
    names = [{"n": n, "name": f"n{n}"} for n in (1, 2, 3)]
    check(script, {**given, "c": names}, [(1, 7, "n1"), (2, 7, "n2"), (3, None, "n3")])
    script = (
        "CREATE STREAM a (n INT, d DATE) ORDER BY d; CREATE STREAM b (m INT, d DATE) ORDER BY d;"
        "SELECT a.n, b.m FROM a FULL JOIN b ON a.d >= b.d - INTERVAL 1 DAY AND a.d <= b.d + INTERVAL 2 DAYS"
    )
    ones, others = [(1, "2026-01-01"), (2, "2026-01-04")], [(7, "2026-01-02"), (8, "2026-01-09")]
    given = {"a": stream("n d", _days(ones)), "b": stream("m d", _days(others))}
    check(script, given, [(1, 7), (2, 7), (None, 8)])


def _times(rows: list[tuple[int, str]]) -> list[tuple[int, datetime]]:
    return [(n, datetime.fromisoformat(text).replace(tzinfo=UTC)) for n, text in rows]


def _days(rows: list[tuple[int, str]]) -> list[tuple[int, date]]:
    return [(n, date.fromisoformat(text)) for n, text in rows]
