"""Aggregates that a body calls: the row of TERMINATE, or else of the last tuple, and never several."""

from __future__ import annotations

import pytest

from tests.codegen.udas.test_bodies import Row, body_of, by_definition, by_program

CALLEES = {
    "largest so far": """INITIALIZE : { INSERT INTO t VALUES (v); INSERT INTO RETURN VALUES (v); }
        ITERATE : { UPDATE t SET a = greatest(a, v); INSERT INTO RETURN SELECT a FROM t; }""",
    "largest at the end": """INITIALIZE : { INSERT INTO t VALUES (v); }
        ITERATE : { UPDATE t SET a = greatest(a, v); }
        TERMINATE : { INSERT INTO RETURN SELECT a FROM t; }""",
    "positive ones": """INITIALIZE : { INSERT INTO RETURN VALUES (v) WHERE v > 0; }
        ITERATE : { INSERT INTO RETURN VALUES (v) WHERE v > 0; }""",
    "equal ones": """INITIALIZE : { INSERT INTO t VALUES (v); }
        ITERATE : { INSERT INTO t VALUES (v); INSERT INTO RETURN SELECT a FROM t WHERE a = v; }""",
    "equal ones and a sum": """INITIALIZE : { INSERT INTO t VALUES (v); }
        ITERATE : { INSERT INTO t VALUES (v); INSERT INTO RETURN SELECT a FROM t WHERE a = v; }
        TERMINATE : { INSERT INTO RETURN SELECT CAST(sum(a) AS INT) FROM t; }""",
}


def calling(callee: str) -> str:
    """An aggregate that calls another one over all arguments so far."""
    return f"""
    CREATE AGGREGATE callee(v INT) : INT {{ TABLE t(a INT); {CALLEES[callee]} }};
    CREATE AGGREGATE agg(x INT, y DOUBLE, z STRING) : INT {{
        TABLE seen(m INT);
        INITIALIZE : {{ INSERT INTO seen VALUES (x); INSERT INTO RETURN SELECT callee(m) FROM seen; }}
        ITERATE    : {{ INSERT INTO seen VALUES (x); INSERT INTO RETURN SELECT callee(m) FROM seen; }}
    }};"""


@pytest.mark.parametrize(
    ("callee", "given", "expected"),
    [
        ("largest so far", [3, 1, 5], [3, 3, 5]),
        ("largest at the end", [3, 1, 5], [3, 3, 5]),
        ("positive ones", [3, -1, 5], [3, None, 5]),
        ("equal ones", [3, 1, 5], [1, 1, 5]),
        ("equal ones", [3, 1, 3], [1, 1, 3, 3]),
        ("equal ones and a sum", [3, 1, 3], [3, 1, 4, 1, 3, 3, 7]),
    ],
)
def test_the_row_of_a_call(callee: str, given: list[int], expected: list[int | None]) -> None:
    body = body_of(calling(callee))
    tuples: list[Row] = [(x, 0.0, "") for x in given]
    rows = [(value,) for value in expected]
    assert by_definition(body, tuples) == rows
    assert by_program(body, tuples, is_compiled=False) == rows
