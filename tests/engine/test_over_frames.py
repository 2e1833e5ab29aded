"""OVER along a stream: ranks, frames that end before or after the current tuple, first rows of partitions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millstream.kernels.core import state_chunks
from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.little import check, stream
from tests.engine.test_maintained_queries import planned

TIMES = {"BIGINT": int, "DOUBLE": lambda time: time / 2}
AGGREGATES = (
    "count(*)",
    "count(v)",
    "sum(v)",
    "sum(x)",
    "min(v)",
    "max(w)",
    "first_value(v)",
    "last_value(w)",
    "first_value(w) IGNORE NULLS",
    "last_value(v) IGNORE NULLS",
    "avg(x)",
    "median(v)",
    "count(DISTINCT v)",
    "count(*) FILTER (WHERE v > 1)",
    "max_by(w, v)",
    "bool_or(v > 2)",
)
LISTS = ("collect_list(v)", "listagg(w, ',')", "sum(DISTINCT v)", "total(v)")
RANKS = (
    "row_number()",
    "rank()",
    "dense_rank()",
    "lag(v)",
    "lag(w, 2)",
    "lag(v, 1, k)",
    "lag(v, 3, -1)",
    "lag(v) IGNORE NULLS",
    "lag(v, 1, -9) IGNORE NULLS",
    "lead(v)",
    "lead(w, 2, 'none')",
    "lead(v, 1, k)",
    "lag(v, 0)",
    "nth_value(v, 2)",
    "nth_value(w, 3) IGNORE NULLS",
)
TOTAL = """CREATE AGGREGATE total(x INT) : INT {
    TABLE st(s INT);
    INITIALIZE : { INSERT INTO st VALUES (x); }
    ITERATE : { UPDATE st SET s = coalesce(s, 0) + coalesce(x, 0); }
    TERMINATE : { INSERT INTO RETURN SELECT s FROM st; }
};"""
PARTITIONS = ("", "PARTITION BY k ", "PARTITION BY k, w ", "PARTITION BY v % 2 ")


def declared(time: str = "BIGINT", clause: str = "SLACK 4") -> str:
    return f"CREATE STREAM s (k INT, v INT, w STRING, x DOUBLE, t {time}) ORDER BY t {clause}; {TOTAL}"


def drawn(chance: random.Random, time_type: str = "BIGINT", rows: int = 30) -> Arrivals:
    """Tuples of two source partitions, out of order within SLACK, with ties and NULLs."""
    partitions: list[list[Row]] = [[], []]
    time = 0
    for _ in range(rows):
        time += chance.choice((0, 0, 0, 1, 2, 5))
        row = {
            "k": chance.choice((None, 1, 2, 3)),
            "v": chance.choice((None, *range(5))),
            "w": chance.choice((None, "a", "b")),
            "x": chance.choice((None, 0.5, 1.25, -3.0)),
            "t": TIMES[time_type](max(time - chance.randrange(4), 0)),
        }
        partitions[chance.randrange(2)].append(Row(row))
    return Arrivals(partitions)


def bound(chance: random.Random, rows: bool, sides: str = "PFC") -> tuple[int, str]:
    """A bound of a frame: its place after the current row, and its text."""
    side, amount = chance.choice(sides), chance.randint(1, 4) if rows else chance.choice((1, 2, 5, 9))
    if side == "C":
        return 0, "CURRENT ROW"
    return (-amount, f"{amount} PRECEDING") if side == "P" else (amount, f"{amount} FOLLOWING")


def frame(chance: random.Random, *, follows: bool = True, unbounded: bool = True) -> str:
    rows = chance.random() < 0.5
    sides = "PCF" if follows else "PPC"
    if unbounded and chance.random() < 0.25:
        return (
            f"{'ROWS' if rows else 'RANGE'} BETWEEN UNBOUNDED PRECEDING AND {bound(chance, rows, sides)[1]}"
        )
    one, other = sorted((bound(chance, rows, sides), bound(chance, rows, sides)), key=lambda b: b[0])
    return f"{'ROWS' if rows else 'RANGE'} BETWEEN {one[1]} AND {other[1]}"


def over(chance: random.Random, *, follows: bool = True) -> str:
    partition, order = chance.choice(PARTITIONS), chance.choice(("", "ORDER BY t "))
    if chance.random() < 0.4:
        call = chance.choice([r for r in RANKS if follows or not r.startswith("lead")])
        some = chance.choice(("ROWS 2 PRECEDING", "RANGE UNBOUNDED PRECEDING", ""))
        if call == "nth_value(v, 2)" and follows:
            some = chance.choice(("ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", frame(chance), ""))
            some = "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING" if some.startswith("RANGE BETWEEN ") else some
        return f"{call} OVER ({partition}{order}{some if call == 'nth_value(v, 2)' else ''})"
    if chance.random() < 0.2:
        some = frame(chance, follows=follows, unbounded=False)
        return f"{chance.choice(LISTS)} OVER ({partition}{order}{some})"
    return f"{chance.choice(AGGREGATES)} OVER ({partition}{order}{frame(chance, follows=follows)})"


def agree(script: str, inputs: dict[str, Any], chance: random.Random, *, ended: bool) -> None:
    plan = planned(script)
    assert why_not(plan) is None, why_not(plan)
    expected = interpreted(plan, inputs, ended=ended)
    found = simulated.run(optimize(plan), inputs, chance, ended=ended)
    assert sorted(map(str, found)) == sorted(str((row.time, *row.values)) for row in expected.rows), script


@pytest.mark.parametrize("seed", range(40))
def test_engine_and_oracle_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 3 == 0:
        monkeypatch.setattr(state_chunks, "SPARE", 4)  # logs are rebuilt, and chunks rewritten, all the time
    chance = random.Random(seed)
    time = chance.choice(("BIGINT", "BIGINT", "DOUBLE"))
    calls = [over(chance) for _ in range(chance.randint(1, 3))]
    query = f"SELECT k, t, {', '.join(f'{call} AS r{i}' for i, call in enumerate(calls))} FROM s"
    if chance.random() < 0.3:
        query = f"SELECT window_end, count(*), max(r0) FROM ({query}) [RANGE 6 SLIDE 3]"
    elif chance.random() < 0.3:
        query = f"SELECT r0, lag(r0) OVER (PARTITION BY k), t FROM ({query})"
    several = sum("FOLLOWING" in call or "lead" in call for call in calls) > 1 or "lag(r0)" in query
    ended = several or chance.random() < 0.6
    agree(f"{declared(time)} {query};", {"s": drawn(chance, time)}, chance, ended=ended)


@pytest.mark.parametrize("seed", range(16))
def test_the_first_of_each_partition(seed: int) -> None:
    chance = random.Random(seed)
    rank = chance.choice(("row_number", "rank", "dense_rank"))
    number = f"{rank}() OVER ({chance.choice(PARTITIONS)}ORDER BY t)"
    other = chance.choice(("", f", {over(chance)} AS o"))
    condition = chance.choice(("n <= 2", "n = 1", "3 > n AND v > 0", "n BETWEEN 2 AND 3", "n < 2 AND k = 1"))
    query = f"SELECT * FROM (SELECT k, v, t, {number} AS n{other} FROM s) WHERE {condition}"
    if chance.random() < 0.4:
        query = f"SELECT k, v, t{other} FROM s QUALIFY {number} <= {chance.randint(1, 3)}"
    if chance.random() < 0.3:
        query = f"SELECT window_end, count(*) FROM ({query}) [RANGE 6 SLIDE 3]"
    agree(f"{declared()} {query};", {"s": drawn(chance)}, chance, ended="lead" in query or "FOLL" in query)


@pytest.mark.parametrize("seed", range(12))
def test_slides_over_frames_that_end_before(seed: int) -> None:
    chance = random.Random(seed)
    partition = chance.choice(PARTITIONS)
    slide = chance.choice(
        ("SLIDE 3", "SLIDE RANGE 4", "SLIDE RANGE 6 EMIT EVERY RANGE 2", "SLIDE 4 EMIT EVERY 2")
    )
    frames = [frame(chance, follows=False, unbounded=False) for _ in range(2)]
    calls = [f"{chance.choice(AGGREGATES + LISTS)} OVER ({partition}{some} {slide})" for some in frames]
    query = f"SELECT k, t, {', '.join(f'{call} AS r{i}' for i, call in enumerate(calls))} FROM s"
    agree(f"{declared()} {query};", {"s": drawn(chance)}, chance, ended=chance.random() < 0.6)


ROWS = [("x", 10, 1), ("y", 5, 3), ("x", 20, 11), ("y", 2, 12), ("x", 7, 25)]
A = "CREATE STREAM a (k STRING, v INT, t INT) ORDER BY t;"


def given(select: str, expected: list[tuple[Any, ...]]) -> None:
    check(f"{A} SELECT {select};", {"a": stream("k v t", ROWS)}, expected, seeds=2)


def test_windows_have_names() -> None:
    given(
        "sum(v) OVER w AS s, count(*) OVER (w ROWS 1 PRECEDING) AS n, max(v) OVER all_of AS m FROM a"
        " WINDOW w AS (PARTITION BY k ORDER BY t), all_of AS ()",
        [(10, 1, 10), (5, 1, 10), (30, 2, 20), (7, 2, 20), (37, 2, 20)],
    )


def test_numbers_and_values_of_rows_before() -> None:
    given(
        "v, row_number() OVER w, lag(v) OVER w, lag(v, 2, -v) OVER (), nth_value(v, 2) OVER (ORDER BY t)"
        " FROM a WINDOW w AS (PARTITION BY k)",
        [
            (10, 1, None, -10, None),
            (5, 1, None, -5, 5),
            (20, 2, 10, 10, 5),
            (2, 2, 5, 5, 5),
            (7, 3, 20, 20, 5),
        ],
    )


def test_rows_that_follow_are_waited_for() -> None:
    given(
        "v, lead(v) OVER (), lead(v, 1, 0) OVER (PARTITION BY k),"
        " sum(v) OVER (ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING),"
        " count(*) OVER (RANGE BETWEEN CURRENT ROW AND 10 FOLLOWING) FROM a",
        [(10, 5, 20, 15, 3), (5, 20, 2, 35, 3), (20, 2, 7, 27, 2), (2, 7, 0, 29, 1), (7, None, 0, 9, 1)],
    )


def test_a_tuple_comes_when_what_follows_is_known() -> None:
    query = (
        f"{A} SELECT v, sum(v) OVER (PARTITION BY k ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS s FROM a;"
    )
    inputs = {"a": stream("k v t", ROWS)}
    found = simulated.run(optimize(planned(query)), inputs, random.Random(0), ended=False)
    assert [row[1:] for row in found] == [(10, 30), (5, 7), (20, 27)]


def test_ties_are_ranked_by_the_timestamp() -> None:
    rows = [("x", 1, 5), ("x", 2, 5), ("x", 3, 6), ("x", 4, 6), ("x", 5, 9)]
    query = f"{A} SELECT v, rank() OVER (ORDER BY t), dense_rank() OVER (ORDER BY t) FROM a;"
    check(
        query, {"a": stream("k v t", rows)}, [(1, 1, 1), (2, 1, 1), (3, 3, 2), (4, 3, 2), (5, 5, 3)], seeds=2
    )


def test_without_an_order_the_tuples_of_an_instant_come_as_they_arrived() -> None:
    rows = [("x", 1, 5), ("x", 2, 5), ("x", 3, 6), ("y", 4, 6)]
    calls = "row_number() OVER w, lag(v) OVER w, last_value(v) OVER w"
    query = f"{A} SELECT v, {calls} FROM a WINDOW w AS (PARTITION BY t);"
    check(query, {"a": stream("k v t", rows)}, [(1, 1, None, 2), (2, 2, 1, 2), (3, 1, None, 4), (4, 2, 3, 4)])
