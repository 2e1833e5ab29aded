"""Rules for the bodies of aggregates, each with its message."""

from __future__ import annotations

import re

import pytest

from millstream.errors import AnalysisError
from millstream.syntax import parse_script
from tests.analysis.defining import (
    DECAY,
    FIND_PATTERN,
    MYAVG,
    MYMAX,
    define,
)

# ---------------------------------------------------------------- what bodies may say


def base(statement: str, block: str = "ITERATE") -> str:
    blocks = {"INITIALIZE": "", "ITERATE": "", block: statement}
    text = " ".join(f"{name} : {{ {inside} }}" for name, inside in blocks.items())
    tables = "TABLE t(a INT, b STRING); TABLE u(a INT, c DOUBLE);"
    return f"AGGREGATE f(x INT, y STRING) : DOUBLE {{ {tables} {text} }}"


def window(statement: str, block: str = "ITERATE", inwindow: str = "wx INT, wy STRING") -> str:
    return (
        base(statement, block)
        .replace("AGGREGATE", "WINDOW AGGREGATE", 1)
        .replace("TABLE t(", f"TABLE inwindow({inwindow}); TABLE t(")
    )


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t (b) VALUES ('only b')",
        "INSERT INTO t SELECT a, b FROM t WHERE a > x ORDER BY b DESC LIMIT 3",
        "INSERT INTO t SELECT * FROM t",
        "INSERT INTO t SELECT t.* FROM t JOIN u ON t.a = u.a",
        "INSERT INTO RETURN SELECT c FROM t JOIN u USING (a) WHERE a = x",
        "INSERT INTO RETURN SELECT most FROM limits WHERE item = x",
        "INSERT INTO RETURN SELECT price FROM opaque WHERE item = x",
        "INSERT INTO RETURN SELECT max(c) FROM u",
        "INSERT INTO RETURN SELECT sum(c) AS s FROM u GROUP BY a HAVING count(*) > 1 ORDER BY s",
        "INSERT INTO RETURN SELECT n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS counts WHERE n > 1",
        "INSERT INTO RETURN SELECT c FROM u UNION ALL SELECT a FROM t",
        "INSERT INTO RETURN SELECT twice(c) FROM u",
        "INSERT INTO RETURN VALUES (x) WHERE EXISTS (SELECT 1 FROM t WHERE t.a = x)",
        "INSERT INTO RETURN VALUES (sqlcode)",
        "UPDATE t AS q SET a = (SELECT max(u.a) FROM u WHERE u.a < q.a) WHERE q.b = y",
        "DELETE FROM t WHERE a NOT IN (SELECT a FROM u) OR (a, b) IN (SELECT a, 'z' FROM u)",
        "DELETE FROM t",
    ],
)
def test_statements_that_are_right(statement: str) -> None:
    define(base(statement))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM inwindow WHERE wx < 3",
        "INSERT INTO RETURN SELECT count(*) FROM inwindow WHERE wy = 'a'",
        "INSERT INTO RETURN SELECT oldest(2).wx",
        "INSERT INTO t VALUES (oldest().wx, oldest().wy)",
    ],
)
@pytest.mark.parametrize("block", ["ITERATE", "EXPIRE"])
def test_statements_of_window_aggregates_that_are_right(statement: str, block: str) -> None:
    define(window(statement, block))


def test_a_column_hides_the_parameter_of_its_name() -> None:
    text = """AGGREGATE f(v STRING) : INT { TABLE t(v INT);
        INITIALIZE : { } ITERATE : { INSERT INTO RETURN SELECT v FROM t; INSERT INTO t VALUES (%s); } }"""
    define(text % "1")
    with pytest.raises(AnalysisError, match="'v' is int and cannot take string"):
        define(text % "v")


def test_an_aggregate_that_returns_a_row_expands_into_its_columns() -> None:
    define(FIND_PATTERN + "; " + base("INSERT INTO t SELECT find_pattern(a, b, 'x') FROM t"))


def test_beside_a_non_blocking_aggregate_stand_columns_of_the_current_tuple() -> None:
    define(DECAY + base("INSERT INTO u SELECT a, decay_online_avg(a) FROM t"))


# ---------------------------------------------------------------- rules


def refused(text: str, message: str, hint: str = "") -> None:
    with pytest.raises(AnalysisError, match=re.escape(message)) as caught:
        define(text)
    assert caught.value.span is not None
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "AGGREGATE f(x INT, X INT) : INT { INITIALIZE : {} ITERATE : {} }",
            "parameter 'X' is declared twice",
        ),
        ("AGGREGATE f() : (a INT, a INT) { INITIALIZE : {} ITERATE : {} }", "result 'a' is declared twice"),
        ("AGGREGATE f() : INT { ITERATE : {} }", "aggregate 'f' has no INITIALIZE"),
        ("AGGREGATE f() : INT { INITIALIZE : {} }", "aggregate 'f' has no ITERATE"),
        ("AGGREGATE f() : INT { INITIALIZE : {} ITERATE : {} ITERATE : {} }", "ITERATE is given twice"),
        (
            "AGGREGATE f() : INT { INITIALIZE : {} ITERATE : {} EXPIRE : {} }",
            "EXPIRE is for window aggregates",
        ),
        ("WINDOW AGGREGATE f() : INT { INITIALIZE : {} ITERATE : {} TERMINATE : {} }", "has no TERMINATE"),
        (
            "AGGREGATE f() : INT { TABLE t(a INT); TABLE T(b INT); INITIALIZE : {} ITERATE : {} }",
            "table 'T' is declared twice",
        ),
        (
            "AGGREGATE f() : INT { TABLE t(a INT, A INT); INITIALIZE : {} ITERATE : {} }",
            "column 'A' is declared twice",
        ),
        (
            "AGGREGATE f() : INT { TABLE return(a INT); INITIALIZE : {} ITERATE : {} }",
            "RETURN is no table of your own",
        ),
        (
            "AGGREGATE f(x INT) : INT { TABLE inwindow(w INT); INITIALIZE : {} ITERATE : {} }",
            "inwindow is for window aggregates",
        ),
        (
            "AGGREGATE f(x INT) : INT LANGUAGE PYTHON AS 'no colon'",
            "'no colon' does not name something in Python",
        ),
        (
            "AGGREGATE f(x INT) : (a, b) LANGUAGE PYTHON AS 'm:f'",
            "result 'a' of an aggregate in Python needs a type",
        ),
        (
            "AGGREGATE f(x INT) : INT ALGEBRAIC USING (nothing, sum) LANGUAGE PYTHON AS 'm:f'",
            "unknown aggregate 'nothing'",
        ),
        (
            "AGGREGATE f(x INT) : INT ALGEBRAIC USING (sum, upper) LANGUAGE PYTHON AS 'm:f'",
            "unknown aggregate 'upper'",
        ),
        (
            "AGGREGATE f(x INT) : (a INT, b INT) ALGEBRAIC LANGUAGE PYTHON AS 'm:f'",
            "'f' cannot take its own results",
        ),
        (
            f"{MYAVG} AGGREGATE f(x INT, y INT) : INT ALGEBRAIC USING (myavg, sum) LANGUAGE PYTHON AS 'm:f'",
            "'myavg' does not take the arguments of 'f'",
        ),
        (
            (
                f"{FIND_PATTERN}; {MYAVG} AGGREGATE f(a INT, b STRING, c STRING) : INT"
                " ALGEBRAIC USING (find_pattern, myavg) LANGUAGE PYTHON AS 'm:f'"
            ),
            "'myavg' does not take what 'find_pattern' returns",
        ),
        (
            f"{MYAVG} WINDOW AGGREGATE myavg(x INT, y INT) : INT {{ INITIALIZE : {{}} ITERATE : {{}} }}",
            "aggregate 'myavg' has other parameters or results",
        ),
    ],
)
def test_declarations_that_are_refused(text: str, message: str) -> None:
    refused(text, message)


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("INSERT INTO s VALUES (1)", "unknown local table 's'", "TABLE s(...)"),
        ("INSERT INTO limits VALUES (1, 2.0)", "an aggregate changes only its own tables", ""),
        ("INSERT INTO t VALUES (1)", "'t' takes 2 values, not 1", ""),
        ("INSERT INTO t SELECT a FROM t", "'t' takes 2 values, not 1", ""),
        ("INSERT INTO RETURN VALUES (1, 2)", "RETURN takes 1 value, not 2", ""),
        ("INSERT INTO RETURN SELECT b FROM t", "'f' is double and cannot take string", "CAST"),
        ("INSERT INTO t VALUES ('one', 'two')", "'a' is int and cannot take string", "CAST"),
        ("INSERT INTO t (a, z) VALUES (1, 2)", "unknown column 'z' in 't'", ""),
        ("INSERT INTO t (a, a) VALUES (1, 2)", "column 'a' is given twice", ""),
        ("INSERT INTO t VALUES (1, 'z') WHERE 1", "WHERE must be a condition", ""),
        ("INSERT INTO RETURN VALUES (max(x))", "aggregate 'max' cannot be used in VALUES", "SELECT max"),
        ("INSERT INTO RETURN VALUES (xx)", "unknown column or parameter 'xx'", "did you mean 'x'?"),
        ("INSERT INTO RETURN VALUES (a)", "unknown column or parameter 'a'", ""),
        ("UPDATE limits SET most = 1", "an aggregate changes only its own tables", ""),
        ("UPDATE RETURN SET a = 1", "RETURN only takes INSERT", ""),
        ("UPDATE t SET x = 1", "'x' is a parameter and cannot be set", "constants"),
        ("UPDATE t SET z = 1", "unknown column 'z' in 't'", ""),
        ("UPDATE t SET a = 1, a = 2", "column 'a' is set twice", ""),
        ("UPDATE t SET a = y", "'a' is int and cannot take string", "CAST"),
        ("UPDATE t SET a = max(a)", "aggregate 'max' cannot be used in SET", "SELECT max"),
        ("UPDATE t SET a = 1 WHERE b", "WHERE must be a condition", ""),
        ("DELETE FROM limits", "an aggregate changes only its own tables", ""),
        ("DELETE FROM t WHERE a = (SELECT a, c FROM u)", "this query must have 1 column, not 2", ""),
        ("DELETE FROM t WHERE (a, b) IN (SELECT a FROM u)", "this query must have 2 columns, not 1", ""),
        ("DELETE FROM t WHERE EXISTS (SELECT z FROM u)", "unknown column or parameter 'z'", ""),
        ("DELETE FROM t WHERE a > ALL (SELECT a FROM u)", "ALL takes no query", "SELECT max"),
        ("INSERT INTO RETURN SELECT price FROM bid", "'bid' is a stream", "parameters"),
        ("INSERT INTO RETURN SELECT a FROM tt", "unknown table 'tt'", "did you mean 't'?"),
        ("INSERT INTO RETURN SELECT a FROM return", "RETURN cannot be read", ""),
        ("INSERT INTO RETURN SELECT t.z FROM t", "unknown column 'z' in 't'", ""),
        ("INSERT INTO RETURN SELECT a FROM t, u", "'a' is ambiguous", "t.a, u.a"),
        ("INSERT INTO RETURN SELECT a FROM t, t", "'t' is named twice", ""),
        ("INSERT INTO RETURN SELECT c FROM t JOIN u USING (c)", "USING column 'c' is not on both sides", ""),
        ("INSERT INTO RETURN SELECT a FROM t NATURAL JOIN u", "NATURAL JOIN cannot be used", "USING"),
        (
            "INSERT INTO RETURN SELECT a FROM t WHERE count(*) > 1",
            "aggregate 'count' cannot be used in WHERE",
            "",
        ),
        (
            "INSERT INTO RETURN SELECT a + count(*) FROM t",
            "column 'a' is neither grouped nor aggregated",
            "GROUP BY",
        ),
        (
            "INSERT INTO t SELECT *, count(*) FROM u",
            "column '*' is neither grouped nor aggregated",
            "GROUP BY",
        ),
        ("INSERT INTO RETURN SELECT max(min(a)) FROM t", "aggregate 'min' inside 'max'", ""),
        (
            "INSERT INTO RETURN SELECT sum(a) OVER (ROWS 3 PRECEDING) FROM t",
            "OVER cannot be used",
            "inwindow",
        ),
        ("INSERT INTO RETURN SELECT a FROM t GROUP BY 2", "there is no column 2 in SELECT", ""),
        ("INSERT INTO RETURN SELECT a FROM t LIMIT 'b'", "LIMIT must be a whole number", ""),
        ("INSERT INTO RETURN SELECT a FROM t [ROWS 3]", "an aggregate reads plain tables only", ""),
        ("INSERT INTO RETURN WITH q AS (SELECT 1 AS a) SELECT a FROM q", "WITH cannot be used", ""),
        ("INSERT INTO RETURN SELECT a FROM t UNION SELECT a, c FROM u", "UNION of 1 columns with 2", ""),
        ("INSERT INTO RETURN SELECT f(a, b) FROM t", "aggregate 'f' calls itself", ""),
        ("INSERT INTO RETURN SELECT twice(a, a) FROM t", "'twice' takes 1 argument, not 2", ""),
        ("INSERT INTO RETURN SELECT nothing(a) FROM t", "unknown function 'nothing'", ""),
        ("INSERT INTO RETURN VALUES (oldest())", "oldest() is for window aggregates", ""),
    ],
)
def test_statements_that_are_refused(statement: str, message: str, hint: str) -> None:
    refused(base(statement), message, hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (window("INSERT INTO inwindow VALUES (1, 'a')"), "nothing can be inserted into inwindow"),
        (window("UPDATE inwindow SET wx = 1"), "inwindow cannot be updated"),
        (window("UPDATE t SET a = x", "EXPIRE"), "parameter 'x' is unknown in EXPIRE"),
        (window("INSERT INTO RETURN VALUES (oldest())"), "oldest() is a row of several columns"),
        (window("INSERT INTO RETURN VALUES (oldest().wz)"), "unknown field 'wz'"),
        (window("INSERT INTO RETURN VALUES (oldest('a').wx)"), "oldest() takes at most a position"),
        (window("INSERT INTO RETURN VALUES (oldest(0).wx)"), "oldest() takes at most a position"),
        (window("INSERT INTO RETURN VALUES (oldest(-1).wx)"), "oldest() takes at most a position"),
        (window("", inwindow="wx INT"), "inwindow has 1 column for 2 parameters"),
        (window("", inwindow="wx INT, wy INT"), "'wy' is int, but parameter 'y' is string"),
        (window("INSERT INTO RETURN SELECT f(a, b) FROM t"), "'f' has only a window version"),
        (f"{MYMAX} {base('INSERT INTO RETURN SELECT mymax(c) FROM u')}", "'mymax' has only a window version"),
        (
            "WINDOW AGGREGATE f() : INT { INITIALIZE : {} ITERATE : { INSERT INTO RETURN SELECT oldest() } }",
            "oldest() needs the table inwindow",
        ),
    ],
)
def test_window_aggregates_that_are_refused(text: str, message: str) -> None:
    refused(text, message)


def test_oldest_alone_is_a_value_when_inwindow_has_one_column() -> None:
    text = """WINDOW AGGREGATE f(x INT) : STRING { TABLE inwindow(w INT); TABLE t(s STRING);
        INITIALIZE : {} ITERATE : { %s } }"""
    define(text % "INSERT INTO RETURN SELECT oldest(); INSERT INTO RETURN SELECT oldest().w;")
    refused(
        text % "DELETE FROM t WHERE oldest() = TIMESTAMP '2026-01-01 00:00:00';",
        "cannot compare int with timestamp",
    )


def test_an_error_is_underlined_where_it_is() -> None:
    text = base("UPDATE t SET a = y")
    (statement,) = parse_script(text)
    with pytest.raises(AnalysisError) as caught:
        define(text)
    span = caught.value.span
    assert span is not None
    assert statement.source.text[span[0] : span[1] + 1] == "y"
