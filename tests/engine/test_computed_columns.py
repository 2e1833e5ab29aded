"""Streams with computed columns: engine and oracle agree on tuples, windows, late tuples and bad records."""

from __future__ import annotations

import random

import pytest

from millstream.plan.optimize import optimize
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.chains import course
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned
from tests.engine.untimed_chains import declared

pytestmark = pytest.mark.usefixtures("uncompiled")

CLAUSES = (
    "",
    "SLACK 3",
    "SLACK 2 ROWS GENEROUS",
    "ORDERED PER (k)",
    "ORDERED PER (even)",
    "PUNCTUATED BY (far > 2000000012) PER (k)",
    "SLACK 4 SLACK 2 ON far",
)
QUERIES = (
    "SELECT k, t, far, even FROM s",
    "SELECT even, window_end, count(*), max(far) FROM s [RANGE 6 SLIDE 3] GROUP BY even",
    "SELECT k, sum(t) OVER (PARTITION BY even ROWS 2 PRECEDING) FROM s WHERE far < 2000000010",
    "SELECT word, t FROM l",
    "SELECT record, reason FROM b",
    "SELECT s.k, n.twice FROM s JOIN n ON s.t = n.t",
)
ORDERED_CLAUSES = (
    "",
    "SLACK 3",
    "SLACK 2 ROWS GENEROUS",
    "ORDERED PER (k)",
    "PUNCTUATED BY (odd > 16) PER (k)",
)
ORDERED_QUERIES = (
    "SELECT k, at, odd FROM o",
    "SELECT k, window_end, count(*), max(odd) FROM o [RANGE 6 SLIDE 3] GROUP BY k",
    "SELECT k, word FROM l",
    "SELECT record, reason FROM b",
    "SELECT o.k, n.twice FROM o JOIN n ON o.at = n.t WHERE o.at > 3",
    "SELECT k FROM o UNION ALL SELECT k FROM other",
)
WORDS = (*map(str, range(20)), "x", "", "147483640", None)
"""Numbers as texts, texts that are none, and one so large that the column after it cannot be computed."""


def script(clause: str, query: str) -> str:
    return f"""
        CREATE STREAM s (
            k INT, word STRING, t INT AS (CAST(word AS INT)), far INT AS (t + 2000000000), even AS (t % 2 = 0)
        ) ORDER BY t {clause} LATE INTO l BAD INTO b;
        CREATE TABLE n (word STRING, t INT AS (CAST(word AS INT)), twice INT AS (t * 20))
          USING csv OPTIONS (path 'n.csv');
        {query};
    """


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_computed_columns(seed: int, query: str) -> None:
    chance = random.Random(f"{seed} {query}")
    agree(script(chance.choice(CLAUSES), query), chance)


def agree(text: str, chance: random.Random) -> None:
    """Compare engine and oracle on streams that are drawn."""
    partitions = [
        [Row({"k": chance.randrange(2), "word": chance.choice(WORDS)}) for _ in range(chance.randrange(25))]
        for _ in range(chance.randrange(1, 3))
    ]
    inputs = {"s": Arrivals(partitions), "n": [{"word": word} for word in (*WORDS[:4], "y", None, "7")]}
    plan, catalog = planned(text), declared(text)
    expected = [(row.time, *row.values) for row in interpreted(plan, inputs, catalog=catalog).rows]
    found = simulated.run(optimize(plan), inputs, chance, course(chance), catalog)
    if any(row[0] is None for row in expected):
        found, expected = ([(None, *row[1:]) for row in rows] for rows in (found, expected))
    same(found, expected)


def ordered(clause: str, query: str) -> str:
    return f"""
        CREATE STREAM s (k INT, word STRING, t INT AS (CAST(word AS INT)));
        CREATE STREAM most AS SELECT word || '1' AS long, word, k, t + 2000000000 AS far
            FROM s x WHERE word <> '3';
        CREATE STREAM o ORDER BY at {clause} LATE INTO l BAD INTO b AS
            SELECT k, CAST(word AS INT) AS at, CAST(long AS INT) AS odd, word FROM most
            WHERE CAST(word AS INT) + 2147483630 < 2147483647 AND far < 2000000019;
        CREATE STREAM other ORDER BY at AS SELECT k, t AS at FROM s WHERE k > 0;
        CREATE TABLE n (word STRING, t INT AS (CAST(word AS INT)), twice INT AS (t * 20))
          USING csv OPTIONS (path 'n.csv');
        {query};
    """


@pytest.mark.parametrize("query", ORDERED_QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_an_order_behind_a_query(seed: int, query: str) -> None:
    chance = random.Random(f"{seed} {query}")
    agree(ordered(chance.choice(ORDERED_CLAUSES), query), chance)


def test_bad_records_have_their_reasons() -> None:
    rows = [Row({"k": 0, "word": word}) for word in ("x", None, "147483648", "1")]
    text = script("", "SELECT record, reason FROM b")
    plan, catalog = planned(text), declared(text)
    found = simulated.run(plan, {"s": Arrivals([rows])}, random.Random(0), catalog=catalog)
    assert [row[1:] for row in found] == [
        ('{"k":0,"word":"x"}', "column 't' cannot be computed"),
        ('{"k":0}', "the timestamp is NULL"),
        ('{"k":0,"word":"147483648"}', "column 'far' cannot be computed"),
    ]
