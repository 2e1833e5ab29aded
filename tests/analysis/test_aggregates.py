"""CREATE [WINDOW] AGGREGATE: the papers' listings pass, and each rule has its message."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.uda import python_aggregates

from millstream.analysis.aggregates import AggregateBody, analyse_aggregate
from millstream.analysis.body_statements import inserted_rows
from millstream.analysis.statements import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.catalog.entries import Aggregate, Registered, ScalarFunction, Stream, Table
from millstream.errors import AnalysisError
from millstream.syntax import nodes, parse_script
from millstream.types import BIGINT, DOUBLE, INT, TIMESTAMP, UNKNOWN, Field

LISTINGS = Path(__file__).parents[1] / "syntax" / "listings"


def a_catalog() -> Catalog:
    catalog = Catalog()
    bid = (Field("auction_id", INT), Field("price", DOUBLE), Field("bid_time", TIMESTAMP))
    catalog.add(Stream("bid", bid, Registered()))
    catalog.add(Table("limits", (Field("item", INT), Field("most", DOUBLE)), Registered()))
    catalog.add(Table("opaque", None, Registered()))
    catalog.add(ScalarFunction("twice", (Field("x", DOUBLE),), DOUBLE, body="x + x"))
    return catalog


def define(text: str, catalog: Catalog | None = None) -> Aggregate:
    """Analyse all aggregates of a script; the last one is given back."""
    catalog = catalog or a_catalog()
    entry = None
    for statement in parse_script(text):
        if isinstance(statement.tree, nodes.CreateAggregate):
            entry = analyse_aggregate(statement.tree, catalog, statement.source)
            catalog.add(entry)
    assert entry is not None
    return entry


def types_of(fields: tuple[Field, ...]) -> dict[str, str]:
    return {field.name: str(field.type) for field in fields}


def table_types(entry: Aggregate) -> dict[str, dict[str, str]]:
    assert isinstance(entry.definition, AggregateBody)
    return {table.name: types_of(table.fields) for table in entry.definition.tables}


# ---------------------------------------------------------------- listings

MYAVG = """
CREATE AGGREGATE myavg(Next INT) : DOUBLE {
    TABLE state(tsum INT, cnt INT);
    INITIALIZE : { INSERT INTO state VALUES (Next, 1); }
    ITERATE    : { UPDATE state SET tsum = tsum + Next, cnt = cnt + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT tsum / cnt FROM state; }
};"""

DECAY = """
CREATE AGGREGATE decay_online_avg(Next DOUBLE) : DOUBLE {
    TABLE state(v DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (Next); INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { UPDATE state SET v = 0.9 * v + 0.1 * Next; INSERT INTO RETURN SELECT v FROM state; }
    TERMINATE  : { }
};"""

WINDOW_MYAVG = """
CREATE WINDOW AGGREGATE myavg(Next INT) : DOUBLE {
    TABLE state(tsum INT, cnt INT);
    TABLE inwindow(wnext INT);
    INITIALIZE : { INSERT INTO state VALUES (Next, 1); INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { UPDATE state SET tsum = tsum + Next, cnt = cnt + 1;
                   INSERT INTO RETURN SELECT tsum / cnt FROM state; }
    EXPIRE     : { UPDATE state SET tsum = tsum - oldest().wnext, cnt = cnt - 1; }
};"""

NAIVE_MYAVG = """
CREATE WINDOW AGGREGATE myavg(Next INT) : DOUBLE {
    TABLE inwindow(wnext INT);
    INITIALIZE : { INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { INSERT INTO RETURN SELECT myavg(wnext) FROM inwindow; }
};"""

MYMAX = """
CREATE WINDOW AGGREGATE mymax(Next DOUBLE) : DOUBLE ALGEBRAIC {
    TABLE inwindow(wnext DOUBLE);
    INITIALIZE : { INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { DELETE FROM inwindow WHERE wnext < Next;
                   INSERT INTO RETURN SELECT oldest().wnext; }
    EXPIRE     : { INSERT INTO RETURN SELECT oldest(2).wnext; }
};"""

TUMBLE_AVG = """
AGGREGATE tumble_avg(Next INT) : REAL {
    TABLE state(tsum INT, cnt INT);
    INITIALIZE : { INSERT INTO state VALUES (Next, 1); }
    ITERATE : {
        UPDATE state SET tsum = tsum + Next, cnt = cnt + 1;
        INSERT INTO RETURN SELECT tsum / cnt FROM state WHERE cnt % 200 = 0;
        UPDATE state SET tsum = 0, cnt = 0 WHERE cnt % 200 = 0
    }
    TERMINATE : { }
}"""

BIDDER_WCOUNT = """
AGGREGATE bidder_wcount(bidder_id, bid_time, num_min) : (bcount) {
    TABLE bidders(b_id, btime);
    INITIALIZE : { INSERT INTO bidders VALUES (bidder_id, bid_time); }
    ITERATE : {
        INSERT INTO bidders VALUES (bidder_id, bid_time) WHERE bidder_id NOT IN (SELECT b_id FROM bidders);
        UPDATE bidders SET btime = bid_time WHERE bidder_id = b_id;
        DELETE FROM bidders WHERE bid_time > (btime + num_min minutes);
        INSERT INTO RETURN SELECT count(b_id) FROM bidders
    }
    TERMINATE : { }
}"""

FIND_PATTERN = """
AGGREGATE find_pattern(PageNoIn INT, ClickTimeIn CHAR(16), PageTypeIn CHAR(1))
        : (PageNo INT, ClickTime CHAR(16)) {
    TABLE CurrentState(curState INT);
    TABLE Memo(PageNo INT, ClickTime CHAR(16), State INT);
    INITIALIZE : {
        INSERT INTO CurrentState VALUES (0);
        INSERT INTO Memo VALUES ((0, '', 1), (0, '', 2), (0, '', 3));
        UPDATE Memo SET PageNo = PageNoIn, ClickTime = ClickTimeIn WHERE PageTypeIn = 'a' AND State = 1;
        UPDATE CurrentState SET curState = 1 WHERE sqlcode = 0 }
    ITERATE : {
        UPDATE CurrentState SET curState = 0
         WHERE (curState = 0 AND PageTypeIn <> 'a') OR (curState = 1 AND PageTypeIn <> 'd');
        UPDATE CurrentState SET curState = curState + 1
         WHERE sqlcode > 0 AND ((curState = 0 AND PageTypeIn = 'a') OR (curState = 2 AND PageTypeIn = 'p'));
        UPDATE Memo SET PageNo = PageNoIn, ClickTime = ClickTimeIn
         WHERE Memo.State = (SELECT curState FROM CurrentState) AND sqlcode = 0;
        INSERT INTO RETURN SELECT Y.PageNo, Z.ClickTime
          FROM CurrentState AS C, Memo AS X, Memo AS Y, Memo AS Z
         WHERE C.curState = 3 AND Y.State = 2 AND Z.State = 3;
        UPDATE CurrentState SET curState = 0 WHERE sqlcode = 0 }
}"""

THEFT = """
CREATE WINDOW AGGREGATE theft(tag STRING, kind STRING) : STRING {
    TABLE inwindow(wtag STRING, wkind STRING);
    INITIALIZE : { }
    ITERATE : { DELETE FROM inwindow WHERE wkind = 'item' AND kind = 'ap'; }
    EXPIRE : { INSERT INTO RETURN SELECT oldest().wtag
                WHERE oldest().wkind = 'item' AND NOT EXISTS (SELECT * FROM inwindow WHERE wkind = 'ap'); }
}"""


@pytest.mark.parametrize(
    ("text", "blocking"),
    [
        pytest.param(MYAVG, True, id="myavg"),
        pytest.param(DECAY, False, id="decay_online_avg"),
        pytest.param(WINDOW_MYAVG, False, id="window myavg"),
        pytest.param(MYAVG + NAIVE_MYAVG, False, id="window myavg that calls the base myavg"),
        pytest.param(MYMAX, False, id="mymax"),
        pytest.param(TUMBLE_AVG, False, id="tumble_avg"),
        pytest.param(BIDDER_WCOUNT, False, id="bidder_wcount"),
        pytest.param(FIND_PATTERN, False, id="find_pattern"),
        pytest.param(THEFT, False, id="theft"),
    ],
)
def test_listings_are_analysed_and_known_as_blocking_or_not(text: str, blocking: bool) -> None:
    assert define(text).blocking is blocking


@pytest.mark.parametrize("path", sorted(LISTINGS.glob("*.esl")), ids=lambda path: path.stem)
def test_the_aggregates_of_all_listings_are_analysed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mypackage", "mypackage.aggs"):
        monkeypatch.setitem(sys.modules, name, python_aggregates)
    catalog = a_catalog()
    for statement in parse_script(path.read_text(encoding="utf-8"), path.name):
        if isinstance(statement.tree, nodes.CreateAggregate):
            catalog.add(analyse_aggregate(statement.tree, catalog, statement.source))


# ---------------------------------------------------------------- entries


def test_an_entry_says_what_goes_in_and_out() -> None:
    entry = define(MYAVG)
    assert (entry.name, entry.window, entry.returns_row) == ("myavg", False, False)
    assert types_of(entry.parameters) == {"Next": "int"}
    assert types_of(entry.returns) == {"myavg": "double"}


def test_several_result_columns_are_a_row() -> None:
    entry = define(FIND_PATTERN)
    assert entry.returns_row
    assert types_of(entry.returns) == {"PageNo": "int", "ClickTime": "string"}


def test_a_single_result_column_is_a_value_with_a_name() -> None:
    entry = define(BIDDER_WCOUNT)
    assert not entry.returns_row
    assert entry.returns[0].name == "bcount"


def test_the_body_keeps_tables_and_statements() -> None:
    entry = define(WINDOW_MYAVG)
    body = entry.definition
    assert isinstance(body, AggregateBody)
    blocks = (body.initialize, body.iterate, body.terminate, body.expire)
    assert [len(statements) for statements in blocks] == [2, 2, 0, 1]
    assert table_types(entry) == {"state": {"tsum": "int", "cnt": "int"}, "inwindow": {"wnext": "int"}}


def test_rows_of_values_may_stand_in_one_more_pair_of_parentheses() -> None:
    body = define(FIND_PATTERN).definition
    assert isinstance(body, AggregateBody)
    single, nested = body.initialize[:2]
    assert isinstance(single, nodes.InsertInto)
    assert isinstance(nested, nodes.InsertInto)
    assert [len(row) for row in inserted_rows(single)] == [1]
    assert [len(row) for row in inserted_rows(nested)] == [3, 3, 3]


def in_python(name: str, kind: str = "AGGREGATE") -> Aggregate:
    return define(f"{kind} f(x BIGINT) : BIGINT LANGUAGE PYTHON AS 'tests.uda.python_aggregates:{name}'")


def test_an_aggregate_in_python_is_blocking_but_not_its_window_version() -> None:
    entry = in_python("MySum")
    assert entry.python == "tests.uda.python_aggregates:MySum"
    assert entry.blocking
    assert not in_python("MySum", "WINDOW AGGREGATE").blocking
    assert in_python("middle").blocking


def test_four_states_in_python_are_blocking_if_there_is_a_terminate() -> None:
    assert in_python("Frequent").blocking
    assert not in_python("Running").blocking


def test_python_can_be_forbidden() -> None:
    catalog = Catalog(allow_python=False).copy()
    for text in (
        "CREATE AGGREGATE f(x DOUBLE) : DOUBLE LANGUAGE PYTHON AS 'os:system'",
        "CREATE FUNCTION f(x DOUBLE) : DOUBLE LANGUAGE PYTHON AS 'os:system'",
    ):
        (statement,) = parse_script(text)
        with pytest.raises(AnalysisError, match="LANGUAGE PYTHON is not allowed here"):
            analyse(statement, catalog)


def test_algebraic_may_name_other_aggregates() -> None:
    entry = define(
        """
        AGGREGATE sum_count(x DOUBLE) : (s DOUBLE, n BIGINT) LANGUAGE PYTHON AS 'statistics:median';
        AGGREGATE combine(s DOUBLE, n BIGINT) : DOUBLE LANGUAGE PYTHON AS 'statistics:correlation';
        AGGREGATE my(x DOUBLE) : DOUBLE ALGEBRAIC USING (sum_count, combine)
          LANGUAGE PYTHON AS 'statistics:median';
        """
    )
    assert (entry.algebraic, entry.partial, entry.final) == (True, "sum_count", "combine")


def test_a_window_aggregate_may_have_the_name_of_a_built_in_and_call_it() -> None:
    entry = define(
        """WINDOW AGGREGATE avg(x DOUBLE) : DOUBLE { TABLE inwindow(w DOUBLE);
            INITIALIZE : { INSERT INTO RETURN VALUES (x); }
            ITERATE : { INSERT INTO RETURN SELECT avg(w) FROM inwindow; } }"""
    )
    assert entry.name == "avg"


# ---------------------------------------------------------------- types that are left out


def test_an_untyped_result_takes_the_type_of_what_is_returned() -> None:
    assert define(BIDDER_WCOUNT).returns[0].type == BIGINT


def test_what_nothing_settles_is_left_to_the_call() -> None:
    entry = define(BIDDER_WCOUNT)
    assert [p.type for p in entry.parameters] == [UNKNOWN, UNKNOWN, UNKNOWN]
    assert table_types(entry) == {"bidders": {"b_id": "unknown", "btime": "unknown"}}


def test_types_travel_from_parameters_to_columns_and_back() -> None:
    entry = define(
        """AGGREGATE f(id, price DOUBLE) : (last_id, total) {
            TABLE seen(sid STRING); TABLE sums(s);
            INITIALIZE : { INSERT INTO sums VALUES (0); }
            ITERATE : { UPDATE sums SET s = s + price WHERE id IN (SELECT sid FROM seen);
                        INSERT INTO RETURN SELECT id, s FROM sums; UPDATE sums SET s = price; }
        }"""
    )
    assert types_of(entry.parameters) == {"id": "string", "price": "double"}
    assert table_types(entry)["sums"] == {"s": "double"}  # not int: a mere 0 is outweighed
    assert types_of(entry.returns) == {"last_id": "string", "total": "double"}


def test_a_literal_settles_what_nothing_else_does() -> None:
    entry = define(
        """AGGREGATE f(x INT) : INT { TABLE t(n, s);
            INITIALIZE : { INSERT INTO t VALUES (0, ''); }
            ITERATE : { INSERT INTO RETURN SELECT n FROM t; } }"""
    )
    assert table_types(entry) == {"t": {"n": "int", "s": "string"}}


def test_inwindow_without_types_has_those_of_the_parameters() -> None:
    entry = define(
        """WINDOW AGGREGATE f(x INT, y) : STRING { TABLE inwindow(wx, wy STRING);
            INITIALIZE : { } ITERATE : { INSERT INTO RETURN SELECT oldest().wy; } }"""
    )
    assert types_of(entry.parameters) == {"x": "int", "y": "string"}
    assert table_types(entry) == {"inwindow": {"wx": "int", "wy": "string"}}


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


def test_a_column_has_the_name_that_an_aggregate_gives_its_result() -> None:
    catalog = Catalog()
    script = """
        CREATE STREAM s (x INT, t INT) ORDER BY t;
        CREATE AGGREGATE named(x INT) : (found INT) {
            INITIALIZE : { INSERT INTO RETURN VALUES (x); } ITERATE : { INSERT INTO RETURN VALUES (x); } };
        CREATE AGGREGATE plain(x INT) : INT {
            INITIALIZE : { INSERT INTO RETURN VALUES (x); } ITERATE : { INSERT INTO RETURN VALUES (x); } };
        SELECT named(x) FROM s;
        SELECT plain(x) FROM s;
        SELECT named(x) + 1 FROM s;
        SELECT named(x) AS n FROM s;
    """
    meanings = [analyse(statement, catalog).meaning for statement in parse_script(script)]
    titles = [m.query.fields[0].name for m in meanings if isinstance(m, RunQuery) and m.query.fields]
    assert titles == ["found", "plain(x)", "named(x) + 1", "n"]
