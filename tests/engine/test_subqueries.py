"""Queries in expressions over windows: the rows of the same SQL over their tuples at each instant."""

from __future__ import annotations

import random

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from tests.engine import plain_sql, simulated
from tests.engine.test_against_duckdb import rounded
from tests.engine.test_joins_by_time import compare, tuples
from tests.engine.test_maintained_queries import planned

CONDITIONS = (
    "x.k IN (SELECT k FROM {b})",
    "x.v + 0 IN (SELECT y.v FROM {b} y WHERE y.k = x.k)",
    "x.k NOT IN (SELECT k FROM {b} WHERE v > 0)",
    "x.k NOT IN (SELECT y.k FROM {b} y WHERE y.k IS NOT NULL)",
    "x.v NOT IN (SELECT y.v FROM {b} y WHERE y.k = x.k) AND x.k > 0",
    "EXISTS (SELECT 1 FROM {b} y WHERE y.k = x.k AND y.v < x.v)",
    "NOT EXISTS (SELECT * FROM {b} y WHERE y.k = x.k)",
    "NOT (NOT EXISTS (SELECT * FROM {b} AS y WHERE y.v = 1)) AND NOT x.k IN (SELECT v FROM {c} z)",
    "x.k IN (SELECT DISTINCT y.k FROM {b} y)",
    "x.k IN (SELECT y.k FROM {d} y GROUP BY y.k HAVING count(*) > 1)",
    "x.v > (SELECT min(v) FROM {d})",
    "x.v >= (SELECT avg(y.v) - 1 FROM {d} y WHERE y.k = x.k)",
    "(SELECT count(*) FROM {d} y WHERE x.k = y.k AND y.v > 0) < 2",
    "x.v < (SELECT max(v) FROM {d}) OR x.k = (SELECT count(v) FROM {d} y WHERE y.v = x.v)",
)


PAIRS = "(x.k, x.v) IN (SELECT k, v FROM {b})"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_bare_stream_asks_at_its_instants(condition: str) -> None:
    count = 0
    for seed in range(3):
        chance = random.Random(seed)
        count += _compare(f"SELECT x.n, x.v FROM {{x}} WHERE {condition}", chance)
    assert count


def test_values_in_select() -> None:
    values = "(SELECT sum(v) FROM {d} y WHERE y.k = x.k) AS s, 1 + (SELECT max(v) FROM {d}) AS m"
    assert _compare(f"SELECT x.n, {values} FROM {{x}}", random.Random(1)) > 3


def _compare(form: str, chance: random.Random) -> int:
    sizes = {name: chance.randint(5, 12) for name in "bcd"}
    streams = {"b": "b", "c": "c", "d": "b"}
    esl = {name: f"{streams[name]} [RANGE {size}]" for name, size in sizes.items()}
    sql = {
        name: f"(SELECT * FROM {streams[name]} WHERE t > x.t - {size} AND t <= x.t)"
        for name, size in sizes.items()
    }
    query = form.format(x="a x", **esl)
    return compare(query, form.format(x="a x", **sql).replace("SELECT ", "SELECT x.t, ", 1), chance, least=6)


@pytest.mark.parametrize("condition", [*CONDITIONS, PAIRS])
def test_windows_ask_at_every_instant(condition: str) -> None:
    for seed in range(2):
        chance = random.Random(seed)
        windows = {name: plain_sql.moving(chance, name) for name in plain_sql.STREAMS}
        windows["d"] = plain_sql.recent("b", chance.randint(1, 6))
        form = f"SELECT x.n FROM {{a}} x WHERE {condition}"
        names = {"a": "a", "b": "b", "c": "c", "d": "b"}
        esl = form.format(**{name: f"{names[name]} [{window.esl}]" for name, window in windows.items()})
        sql = form.format(**{name: f"({window.content})" for name, window in windows.items()})
        plan = planned(plain_sql.declared() + esl.replace("SELECT", "SELECT CHANGES", 1))
        assert why_not(plan) is None, why_not(plan)
        given = {name: tuples(chance, 6) for name in plain_sql.STREAMS}
        inputs = {name: plain_sql.arrivals(rows) for name, rows in given.items()}
        found = simulated.run(optimize(plan), inputs, chance)
        database = plain_sql.Database(given)
        for mine, expected in zip(plain_sql.folded(found), database.contents(sql), strict=True):
            assert rounded(mine.elements()) == rounded(expected.elements()), f"{esl}\n{given}"
        database.close()
