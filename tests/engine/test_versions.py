"""Version of an aggregate that runs: the table of section 4 of the semantics, cell by cell.

The base version returns 100 more than the sum, the window version 1000 more: so a result shows the version,
and for panes also the version that combined them.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from millstream.plan.explain.plan_report import explained
from millstream.plan.nodes import OverAggregate
from millstream.plan.uda_versions import UdaStrategy, over_version
from oracle import Arrivals, Heartbeat, Row, run
from tests.engine import simulated
from tests.physical.planning import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

BASE = """
CREATE AGGREGATE total(x INT) : INT{algebraic} {{
    TABLE state(s INT);
    INITIALIZE : {{ INSERT INTO state VALUES (x); }}
    ITERATE    : {{ UPDATE state SET s = s + x WHERE s IS NOT NULL; }}
    TERMINATE  : {{ INSERT INTO RETURN SELECT s + 100 FROM state; }}
}};"""
WINDOW = """
CREATE WINDOW AGGREGATE total(x INT) : INT{algebraic} {{
    TABLE state(s INT);
    TABLE inwindow(w INT);
    INITIALIZE : {{ INSERT INTO state VALUES (x); INSERT INTO RETURN VALUES (x + 1000); }}
    ITERATE    : {{ UPDATE state SET s = s + x; INSERT INTO RETURN SELECT s + 1000 FROM state; }}
    EXPIRE     : {{ UPDATE state SET s = s - oldest().w;{speaks} }}
}};"""
SPEAKS = " INSERT INTO RETURN SELECT s - 1000 FROM state;"


def created(versions: str, *, algebraic: bool = False, speaks: bool = False) -> str:
    facts = {"algebraic": " ALGEBRAIC" if algebraic else "", "speaks": SPEAKS if speaks else ""}
    return "".join(
        text.format(**facts) for name, text in (("base", BASE), ("window", WINDOW)) if name in versions
    )


def script(over: str, created_: str, call: str = "total(x)") -> str:
    stream = "CREATE STREAM s (k INT, x INT, t TIMESTAMP, p BOOLEAN) ORDER BY t HEARTBEAT INTERVAL 1 SECOND;"
    return f"{stream}{created_}\nSELECT t, {call} OVER ({over}) AS r FROM s;"


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


STREAM = [Row({"k": 1, "x": x, "t": at(x), "p": False}) for x in range(1, 9)]
"""1 comes after one second, 2 after two, and so on to 8."""


def answers(text: str, stream: list[Row | Heartbeat] = STREAM) -> list[tuple[int, Any]]:
    """Second and result of each row, from the engine; the definition says the same."""
    plan = planned(text)
    given = Arrivals([stream])
    expected = [(row.time, row.values[-1]) for row in run(plan, {"s": given}).rows]
    found = [(row[0], plain(row[-1])) for row in simulated.run(plan, {"s": given}, random.Random(1))]
    assert sorted(found, key=str) == sorted(expected, key=str)
    return [((time - NOON) // timedelta(seconds=1), value) for time, value in expected]


def plain(value: Any) -> Any:
    """Return a result that is a row as a tuple."""
    return tuple(value.values()) if isinstance(value, dict) else value


def way(text: str) -> UdaStrategy:
    node = next(n for n in planned(text).walk() if isinstance(n, OverAggregate))
    return over_version(node.calls[0]).way


ALL, SLOTS = "ROWS UNBOUNDED PRECEDING", "RANGE INTERVAL 1 SECOND PRECEDING SLIDE INTERVAL 3 SECONDS"
ROWS, TUMBLE, PANES = "ROWS 3 PRECEDING", "ROWS 1 PRECEDING SLIDE 4", "ROWS 3 PRECEDING SLIDE 2"
MIXED = "RANGE INTERVAL 3 SECONDS PRECEDING SLIDE 2"
SUMS = [1, 3, 6, 10, 14, 18, 22, 26]
"""Of four each."""

CELLS: list[tuple[str, str, bool, UdaStrategy, list[int]]] = [
    # call, versions, ALGEBRAIC, the way, what it gives
    (ALL, "base window", False, UdaStrategy.RUNNING, [101, 103, 106, 110, 115, 121, 128, 136]),
    (ALL, "base", True, UdaStrategy.RUNNING, [101, 103, 106, 110, 115, 121, 128, 136]),
    (f"{ALL} SLIDE 4", "base window", True, UdaStrategy.RUNNING, [110, 136]),
    (ALL, "window", False, UdaStrategy.WINDOW, [1001, 1003, 1006, 1010, 1015, 1021, 1028, 1036]),
    (ROWS, "base window", False, UdaStrategy.WINDOW, [1000 + s for s in SUMS]),
    (ROWS, "base window", True, UdaStrategy.WINDOW, [1000 + s for s in SUMS]),
    (ROWS, "base", False, UdaStrategy.CONTENT, [100 + s for s in SUMS]),
    (
        "RANGE INTERVAL 3 SECONDS PRECEDING",
        "base window",
        False,
        UdaStrategy.WINDOW,
        [1000 + s for s in SUMS],
    ),
    ("RANGE INTERVAL 3 SECONDS PRECEDING", "base", True, UdaStrategy.CONTENT, [100 + s for s in SUMS]),
    (TUMBLE, "base window", False, UdaStrategy.TUMBLE, [107, 115]),
    (TUMBLE, "base", True, UdaStrategy.TUMBLE, [107, 115]),
    (TUMBLE, "window", False, UdaStrategy.TUMBLE, [1007, 1015]),
    ("ROWS 3 PRECEDING SLIDE 4", "base window", True, UdaStrategy.TUMBLE, [110, 126]),
    # In slots of time: 1 and 2, 3 to 5, 6 to 8.
    (SLOTS, "base window", True, UdaStrategy.CONTENT, [103, 109, 115]),
    # Panes of two: 103, 107, 111, 115.
    (PANES, "base window", True, UdaStrategy.PANES, [1103, 1210, 1218, 1226]),
    (PANES, "base", True, UdaStrategy.PANES, [203, 310, 318, 326]),
    (PANES, "window", True, UdaStrategy.PANES, [2003, 3010, 3018, 3026]),
    ("ROWS 3 PRECEDING SLIDE 3", "base window", True, UdaStrategy.WINDOW, [1006, 1018]),
    (PANES, "base window", False, UdaStrategy.WINDOW, [1003, 1010, 1018, 1026]),
    (PANES, "base", False, UdaStrategy.CONTENT, [103, 110, 118, 126]),
    (MIXED, "base window", True, UdaStrategy.WINDOW, [1003, 1010, 1018, 1026]),
    (MIXED, "base", False, UdaStrategy.CONTENT, [103, 110, 118, 126]),
    (
        "ROWS 3 PRECEDING SLIDE INTERVAL 3 SECONDS",
        "base window",
        False,
        UdaStrategy.WINDOW,
        [1003, 1014, 1026],
    ),
    ("ROWS 3 PRECEDING SLIDE INTERVAL 3 SECONDS", "base", False, UdaStrategy.CONTENT, [103, 114, 126]),
    (
        "ROWS 5 PRECEDING SLIDE 4 EMIT EVERY 2",
        "base window",
        True,
        UdaStrategy.PANES,
        [1103, 1210, 1321, 1333],
    ),
]


@pytest.mark.parametrize(
    ("over", "versions", "algebraic", "expected_way", "expected"),
    [pytest.param(*cell, id=f"{cell[0]}, {cell[1]}{', ALGEBRAIC' * cell[2]}") for cell in CELLS],
)
def test_a_cell(
    over: str, versions: str, algebraic: bool, expected_way: UdaStrategy, expected: list[int]
) -> None:
    text = script(over, created(versions, algebraic=algebraic))
    assert way(text) is expected_way
    assert [result for _, result in answers(text)] == expected


LEAVING = [Row({"k": 1, "x": x, "t": at(t), "p": False}) for t, x in ((0, 1), (1, 2), (4, 4))]
ACTIVE = "RANGE INTERVAL 2 SECONDS PRECEDING ACTIVE EXPIRATION"


def test_a_window_version_speaks_when_a_tuple_leaves_if_expire_does() -> None:
    text = script(ACTIVE, created("base window", speaks=True))
    assert answers(text, LEAVING) == [(0, 1001), (1, 1003), (2, -998), (3, -1000), (4, 1004), (6, -1000)]


def test_if_it_does_not_speak_the_base_version_says_what_is_left() -> None:
    text = script(ACTIVE, created("base window"))
    assert answers(text, LEAVING) == [(0, 1001), (1, 1003), (2, 102), (4, 1004)]


def test_without_a_window_version_the_base_version_says_what_is_there() -> None:
    text = script(ACTIVE, created("base"))
    assert answers(text, LEAVING) == [(0, 101), (1, 103), (2, 102), (4, 104)]


def test_a_built_in_aggregate_says_what_is_left_even_if_it_is_nothing() -> None:
    assert answers(script(ACTIVE, "", "count(*)"), LEAVING) == [
        (0, 1),
        (1, 2),
        (2, 1),
        (3, 0),
        (4, 1),
        (6, 0),
    ]
    assert answers(script(ACTIVE, "", "sum(x)"), LEAVING) == [
        (0, 1), (1, 3), (2, 2), (3, None), (4, 4), (6, None),
    ]  # fmt: skip


def test_a_tuple_leaves_after_those_of_the_same_instant() -> None:
    stream = [Row({"k": 1, "x": x, "t": at(t), "p": False}) for t, x in ((0, 1), (2, 2), (2, 4))]
    assert answers(script(ACTIVE, "", "sum(x)"), stream)[:4] == [(0, 1), (2, 3), (2, 7), (2, 6)]


@pytest.mark.parametrize("call", ["count(*)", "total(x)"])
def test_heartbeats_make_tuples_leave_when_none_comes(call: str) -> None:
    plan = planned(script(ACTIVE, created("base"), call))
    silent = Arrivals([[*LEAVING[:1], Heartbeat(at(5))]])
    rows = run(plan, {"s": silent}, ended=False).rows
    assert [row.time for row in rows] == [at(0), at(2)][: len(rows)]
    found = simulated.run(plan, {"s": silent}, random.Random(1), ended=False)
    assert [row[0] for row in found] == [row.time for row in rows]


def test_a_mean_in_panes_is_the_affair_of_two_others() -> None:
    text = """
CREATE AGGREGATE part(x INT) : (s INT, n INT) {
    TABLE state(s INT, n INT);
    INITIALIZE : { INSERT INTO state VALUES (x, 1); }
    ITERATE    : { UPDATE state SET s = s + x, n = n + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT s, n FROM state; }
};
CREATE AGGREGATE whole(s INT, n INT) : DOUBLE {
    TABLE state(a INT, b INT);
    INITIALIZE : { INSERT INTO state VALUES (s, n); }
    ITERATE    : { UPDATE state SET a = a + s, b = b + n; }
    TERMINATE  : { INSERT INTO RETURN SELECT a / b FROM state; }
};
CREATE AGGREGATE mean(x INT) : DOUBLE ALGEBRAIC USING (part, whole) {
    TABLE state(a INT, b INT);
    INITIALIZE : { INSERT INTO state VALUES (x, 1); }
    ITERATE    : { UPDATE state SET a = a + x, b = b + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT a / b FROM state; }
};"""
    asked = script("ROWS 5 PRECEDING SLIDE 4", text, "mean(x)")
    assert way(asked) is UdaStrategy.PANES
    assert answers(asked) == [(4, 2.5), (8, 5.5)]
    assert "panes of 2 tuples, window version (derived: EXPIRE undoes UPDATE" in explained(planned(asked))


def test_panes_may_be_the_affair_of_built_in_aggregates() -> None:
    counted = """
CREATE AGGREGATE many(x INT) : BIGINT ALGEBRAIC USING (count, sum) {
    TABLE state(n BIGINT);
    INITIALIZE : { INSERT INTO state VALUES (1); }
    ITERATE    : { UPDATE state SET n = n + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT n FROM state; }
};"""
    asked = script("ROWS 5 PRECEDING SLIDE 4", counted, "many(x)")
    assert way(asked) is UdaStrategy.PANES
    assert answers(asked) == [(4, 4), (8, 6)]


def explanation(created_: str, over: str = ROWS) -> str:
    text = explained(planned(script(over, created_, "state_of(x)")))
    return text.splitlines()[2].split(": ", 1)[1]


def of_one_row(first: str, update: str) -> str:
    """An aggregate whose state is a row of two columns."""
    return f"""
CREATE AGGREGATE state_of(x INT) : (a INT, b INT) {{
    TABLE state(a INT, b INT);
    INITIALIZE : {{ INSERT INTO state VALUES ({first}); }}
    ITERATE    : {{ {update}; }}
    TERMINATE  : {{ INSERT INTO RETURN SELECT a, b FROM state; }}
}};"""


@pytest.mark.parametrize(
    ("first", "update"),
    [
        ("x, 1", "UPDATE state SET a = a + x, b = b + 1"),
        ("x, x * 2", "UPDATE state SET a = x, b = x * 2 + b"),
        ("x, x", "UPDATE state SET a = greatest(a, x)"),
        ("x, 7", "UPDATE state SET a = x WHERE x < a"),
    ],
)
def test_a_window_version_is_derived(first: str, update: str) -> None:
    body = of_one_row(first, update)
    assert explanation(body).startswith("window version (derived")
    stream = [
        Row({"k": 1, "x": x, "t": at(i), "p": False}) for i, x in enumerate((3, 1, None, 4, 1, 5, 9, 2))
    ]
    assert len(answers(script(ROWS, body, "state_of(x)"), stream)) == 8


@pytest.mark.parametrize(
    ("first", "update", "why"),
    [
        ("x, 0", "UPDATE state SET a = a + x, b = b + 1", "the first tuple counts for nothing"),
        ("x, 1", "UPDATE state SET a = a + x * b, b = b + 1", "what is added depends on the state"),
        ("x, 1", "UPDATE state SET a = 2 * a + x, b = b + 1", "it is not only added"),
        ("x, 1", "UPDATE state SET a = a + x, b = b + sqlcode", "it depends on more than the tuple"),
        ("x, 1", "UPDATE state SET a = a + x WHERE b = 1", "not every tuple adds"),
        ("x, 1", "UPDATE state SET a = a + x; DELETE FROM state WHERE a > 3", "the row does not stay"),
        ("x, 1", "UPDATE state SET a = a + x; INSERT INTO state VALUES (1, 1)", "it does not stay one row"),
        ("x, 10 / x", "UPDATE state SET a = a + x", "what the first tuple sets may fail"),
    ],
)  # fmt: skip
def test_without_a_proof_none_is_derived(first: str, update: str, why: str) -> None:
    assert explanation(of_one_row(first, update)) == "base version, recomputed from the content, O(w)", why


def test_doubles_are_not_subtracted() -> None:
    body = """
CREATE AGGREGATE state_of(x INT) : DOUBLE {
    TABLE state(a DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE    : { UPDATE state SET a = a + x; }
    TERMINATE  : { INSERT INTO RETURN SELECT a FROM state; }
};"""
    assert explanation(body) == "base version, recomputed from the content, O(w)"
