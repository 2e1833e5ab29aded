"""ASOF joins of streams, and joins by the names of columns: the rows of the same SQL over whole tables."""

from __future__ import annotations

import random

import pytest

from tests.engine.test_joins_by_time import compare

LATEST = (
    "SELECT x.t, x.n, y.n, y.v {more} FROM a x {kind} JOIN LATERAL"
    " (SELECT * FROM b WHERE {on} AND t <= x.t ORDER BY t DESC, n DESC LIMIT 1) y ON true {where}"
)


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
@pytest.mark.parametrize(
    ("on", "inner"),
    [
        ("ON x.k = y.k AND x.t >= y.t", "b.k = x.k"),
        ("MATCH_CONDITION (y.t <= x.t) ON y.k = x.k AND x.v = y.v", "b.k = x.k AND b.v = x.v"),
        ("MATCH_CONDITION (x.t >= y.t) USING (k)", "b.k = x.k"),
        ("ON y.t <= x.t", "true"),
    ],
)
def test_the_latest_of_each_key(kind: str, on: str, inner: str) -> None:
    count = 0
    for seed in range(2):
        where = "WHERE x.v IS NULL OR y.v > 0" if seed else ""
        esl = f"SELECT x.n, y.n AS o, y.v FROM a x ASOF {kind.replace('INNER', '')} JOIN b y {on} {where}"
        sql = LATEST.format(more="", kind=kind, on=inner, where=where)
        count += compare(esl, sql, random.Random(seed), least=6)
    assert count


def test_beside_other_joins() -> None:
    esl = (
        "SELECT x.n, y.n AS o, y.v, z.n AS p FROM a x ASOF LEFT JOIN b y ON x.k = y.k AND x.t >= y.t"
        " ASOF JOIN c z ON z.t <= x.t"
    )
    latest = "(SELECT * FROM c WHERE t <= x.t ORDER BY t DESC, n DESC LIMIT 1)"
    sql = LATEST.format(more=", z.n", kind="LEFT", on="b.k = x.k", where="").replace(
        "ON true", f"ON true JOIN LATERAL {latest} z ON true"
    )
    compare(esl, sql, random.Random(2), least=6)


@pytest.mark.parametrize("kind", ["", "LEFT ", "RIGHT ", "FULL "])
def test_joins_by_the_names_of_columns(kind: str) -> None:
    for seed, join in enumerate((f"NATURAL {kind}JOIN {{b}} y", f"{kind}JOIN {{b}} y USING (k, t)")):
        esl = f"SELECT k, t, x.v, w FROM {{a}} x {join}"
        sides = {"a": "(SELECT k, v, t FROM a)", "b": "(SELECT k, v AS w, t FROM b)"}
        query = esl.format(**sides)
        compare(query, query.replace("SELECT k, t", "SELECT t, k, t", 1), random.Random(seed), least=6)
