"""User-defined aggregates over one window share its tuples, and each agrees with its result alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millstream.codegen.udas.share_window import share_window
from millstream.codegen.udas.uda_compiler import ROWS as ROWS_MODE
from millstream.codegen.udas.uda_compiler import compile_uda
from millstream.ir.typed_nodes import Body
from millstream.plan.nodes import OverAggregate
from millstream.plan.uda_versions import over_version
from oracle import Arrivals, Row, run
from tests.engine import simulated
from tests.physical.planning import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

STREAM = "CREATE STREAM a (id INT, k STRING, v INT, t INT) ORDER BY t;"
ROWS = [(1, "x", 10, 1), (2, "y", 5, 3), (3, "x", 20, 11), (4, "y", 2, 12), (5, "x", 7, 25)]


def one_row(name: str, columns: str, first: str, update: str, result: str) -> str:
    """An aggregate whose state is one row."""
    return f"""CREATE AGGREGATE {name}(x INT) : INT {{
        TABLE st({columns});
        INITIALIZE : {{ INSERT INTO st VALUES ({first}); }}
        ITERATE : {{ UPDATE st SET {update}; }}
        TERMINATE : {{ INSERT INTO RETURN SELECT {result} FROM st; }} }};"""


AGGREGATES = "\n".join(
    [
        one_row("low", "m INT", "x", "m = least(m, x)", "m"),
        one_row("total", "m INT", "x", "m = m + x", "m"),
        one_row("span", "a INT, b INT", "x, x", "a = least(a, x), b = greatest(b, x)", "b - a"),
        one_row("newest", "a INT, b INT", "x, x", "a = x, b = greatest(b, x)", "100 * a + b"),
    ]
)
EXPECTED = {
    "low(v)": [10, 5, 5, 2, 2],
    "low(t)": [1, 1, 1, 3, 11],
    "total(v)": [10, 15, 35, 27, 29],
    "total(t)": [1, 4, 15, 26, 48],
    "span(v)": [0, 5, 15, 18, 18],
    "span(t)": [0, 2, 10, 9, 14],
    "newest(v)": [1010, 510, 2020, 220, 720],
}


def results(calls: tuple[str, ...]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Rows of the engine and of the definition for calls over the same window."""
    shown = ", ".join(f"{call} OVER (ROWS 2 PRECEDING) AS r{i}" for i, call in enumerate(calls))
    plan = planned(f"{STREAM} {AGGREGATES} SELECT {shown} FROM a;")
    given = Arrivals([[Row(dict(zip(("id", "k", "v", "t"), row, strict=True))) for row in ROWS]])
    found = simulated.run(plan, {"a": given}, random.Random(1))
    return [row[1:] for row in found], [row.values for row in run(plan, {"a": given}).rows]


@pytest.mark.parametrize(
    "calls",
    [
        ("total(t)", "low(v)"),
        ("low(v)", "total(t)"),
        ("low(v)", "low(t)"),
        ("span(v)", "total(v)"),
        ("total(v)", "span(v)"),
        ("span(t)", "span(v)", "low(t)"),
        ("total(t)", "newest(v)", "span(t)"),
    ],
    ids=" and ".join,
)
def test_each_gives_what_it_gives_alone(calls: tuple[str, ...]) -> None:
    expected = list(zip(*(EXPECTED[call] for call in calls), strict=True))
    assert results(calls) == (expected, expected)


def test_tables_of_the_catalog_are_read_by_all_of_them() -> None:
    plan = planned(f"""{STREAM}
        CREATE TABLE prices (item INT, price INT) USING csv OPTIONS (path 'nowhere');
        CREATE WINDOW AGGREGATE worth(x INT) : INT {{
            TABLE inwindow(w INT);
            INITIALIZE : {{ INSERT INTO RETURN SELECT price FROM prices WHERE item = x; }}
            ITERATE    : {{ INSERT INTO RETURN SELECT price FROM prices WHERE item = x; }}
            EXPIRE     : {{ }}
        }};
        SELECT worth(v) OVER (ROWS 2 PRECEDING) AS p, worth(t) OVER (ROWS 2 PRECEDING) AS q FROM a;""")
    calls = next(node for node in plan.walk() if isinstance(node, OverAggregate)).calls
    bodies = [body for call in calls if isinstance(body := over_version(call).body, Body)]
    whole = share_window(bodies, [[0], [1]], tuple(body.parameters[0] for body in bodies))
    assert [table.name for table in compile_uda(whole, ROWS_MODE).given] == ["prices"]
