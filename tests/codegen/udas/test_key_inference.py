"""Rows that tables can have once only, and rows that have been found."""

from __future__ import annotations

import pytest

from millstream.codegen.udas.key_inference import key_of
from tests.codegen.udas.test_bodies import Row, body_of, by_definition, by_program

NEW = "INSERT INTO t VALUES (x, z, 0) WHERE x NOT IN (SELECT a FROM t)"
NEXT = "INSERT INTO t VALUES (x + 1, z, 5) WHERE x + 1 NOT IN (SELECT a FROM t)"
BOTH = "INSERT INTO t VALUES (x, z, 0) WHERE x > 0 AND NOT EXISTS (SELECT n FROM t WHERE a = x AND z = s)"
COUNTED = "UPDATE t SET n = n + 1 WHERE a = x"
ALL = "INSERT INTO RETURN SELECT n FROM t WHERE a = x"

JOINED = "INSERT INTO RETURN SELECT coalesce(t.n, -c) FROM u LEFT JOIN t ON t.a = u.c"


def aggregate(first: str, further: str) -> str:
    return f"""CREATE AGGREGATE agg(x INT, y DOUBLE, z STRING) : INT {{
        TABLE t(a INT, s STRING, n INT);
        TABLE u(c INT, m INT);
        INITIALIZE : {{ INSERT INTO u VALUES (x, 1); {first} }}
        ITERATE    : {{ INSERT INTO u VALUES (x, 0); {further} }}
    }}"""


@pytest.mark.parametrize(
    ("first", "further", "key"),
    [
        ("", NEW, "a"),
        ("INSERT INTO t VALUES (x, z, 1)", NEW, "a"),
        (NEW, NEW, "a"),
        ("", BOTH, "as"),
        ("", f"{BOTH}; {NEW}", "as"),
        ("", f"{NEW}; {COUNTED}; DELETE FROM t WHERE a = x", "a"),
        ("INSERT INTO t VALUES (1, z, 1); INSERT INTO t VALUES (2, z, 1)", NEW, "a"),
        ("INSERT INTO t VALUES (1, z, 1); INSERT INTO t VALUES (x, z, 1)", NEW, ""),
        ("INSERT INTO t VALUES (1, z, 1), (1, z, 2)", NEW, ""),
        ("INSERT INTO t VALUES (x, z, 1)", COUNTED, ""),
        ("", f"{NEW}; INSERT INTO t VALUES (x, z, 1)", ""),
        ("", f"{NEW}; INSERT INTO t SELECT c, z, 0 FROM u", ""),
        ("", f"{NEW}; UPDATE t SET a = a + 1 WHERE n > 0", ""),
        ("", "INSERT INTO t VALUES (x, z, 0) WHERE x + 1 NOT IN (SELECT a FROM t)", ""),
        ("", "INSERT INTO t VALUES (x, z, 0) WHERE x NOT IN (SELECT a FROM t) OR x > 1", ""),
        ("", "INSERT INTO t VALUES (x, z, 0) WHERE x NOT IN (SELECT a FROM t WHERE n > 0)", ""),
        ("", "INSERT INTO t VALUES (x, z, 0) WHERE x NOT IN (SELECT n FROM t)", ""),
        ("", "INSERT INTO t VALUES (x, z, 0), (x, z, 1) WHERE x NOT IN (SELECT a FROM t)", ""),
        ("", "INSERT INTO t VALUES (x, z, 0) WHERE NOT EXISTS (SELECT n FROM t WHERE a = x AND n > 0)", ""),
        ("", "INSERT INTO t VALUES (x, z, 0) WHERE NOT EXISTS (SELECT n FROM t WHERE a = x LIMIT 0)", ""),
        ("", "INSERT INTO t VALUES (x, z, 0) WHERE NOT EXISTS (SELECT c FROM u WHERE c = x)", ""),
    ],
)
def test_a_key_is_what_every_insert_makes_sure_to_be_new(first: str, further: str, key: str) -> None:
    found = key_of("t", body_of(aggregate(first and f"{first};", f"{further};")))
    assert "".join(sorted("asn"[column] for column in found or ())) == key


@pytest.mark.parametrize(
    "further",
    [
        f"{NEW}; {COUNTED}; {ALL}",
        f"{NEW}; {COUNTED}; DELETE FROM t WHERE a = x; {ALL}; {NEW}; {COUNTED}; {ALL}",
        f"{NEW}; {NEXT}; INSERT INTO RETURN SELECT n FROM t WHERE a = x + 1",
        # Another name for the same value: what was not there has come.
        f"{ALL}; INSERT INTO t VALUES (2, z, 7) WHERE 2 NOT IN (SELECT a FROM t); {ALL}",
        # No key is known here, and a row is changed in the column by which it was looked up.
        f"INSERT INTO t VALUES (x, z, 0); {ALL}; UPDATE t SET a = a + 1 WHERE a = x; {ALL}",
        # A row that was not there becomes what was looked for.
        f"INSERT INTO t VALUES (x + 1, z, 9); {ALL}; UPDATE t SET a = a - 1 WHERE a = x + 1; {ALL}",
        f"{ALL}; INSERT INTO t VALUES (x, z, 0); INSERT INTO t VALUES (x, z, 1); {COUNTED}; {ALL}",
        f"{ALL}; INSERT INTO t VALUES (1, z, 3); INSERT INTO t VALUES (2, z, 4); {ALL}",
        # A partner that does not meet what else is asked is none.
        f"{NEW}; {COUNTED}; {JOINED} AND t.n > 1",
        f"{NEW}; {COUNTED}; {JOINED}",
        f"{NEW}; {COUNTED}; INSERT INTO RETURN VALUES ((SELECT n FROM t WHERE a = x))",
        "INSERT INTO RETURN SELECT c FROM u ORDER BY m DESC, c LIMIT 1",
    ],
)
def test_a_row_is_found_as_it_is_by_then(further: str) -> None:
    body = body_of(aggregate("", f"{further};"))
    tuples: list[Row] = [(x, 0.0, "p") for x in (1, 1, 2, None, 2, 1, 3, 2, 1)]
    whose = [0, 0, 1, 0, 0, 1, 1, 0, 0]
    assert by_program(body, tuples, whose, is_compiled=False) == by_definition(body, tuples, whose)
