"""ESL's own constructs, and their trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlglot import exp

from millstream.syntax import nodes, parse_script, to_sql

Check = Callable[[str], exp.Expr]


def texts(items: Any) -> list[str]:
    return [to_sql(item) for item in items]


def window_of(tree: exp.Expr) -> nodes.StreamWindow:
    window = tree.find(nodes.StreamWindow)
    assert window is not None
    return window


# ---------------------------------------------------------------- streams, tables, sinks


def test_a_stream_with_everything(again: Check) -> None:
    tree = again("""
        CREATE OR REPLACE STREAM IF NOT EXISTS s (a INT, b) ORDER BY a USING org.x.Source
        OPTIONS (path 'x.csv', 'header' = true, kafka.max.offsets 5, level -1)
        SLACK 100 ROWS GENEROUS ON b ORDERED PER (a, b) IDLE AFTER INTERVAL 5 SECONDS
        PUNCTUATED BY (a < 0) PER (b) HEARTBEAT 3 SECONDS LATE INTO late BAD INTO bad
    """)
    assert isinstance(tree, nodes.CreateStream)
    assert (tree.name, tree.args["replace"], tree.args["exists"]) == ("s", True, True)
    assert texts(tree.args["columns"]) == ["a INT", "b"]
    assert tree.args["order_by"].name == "a"
    assert tree.args["format"].name == "org.x.Source"
    assert {o.name: o.args["value"].name for o in tree.args["options"]} == {
        "path": "x.csv",
        "header": "true",
        "kafka.max.offsets": "5",
        "level": "-1",
    }
    slack, ordered, punctuated, heartbeat = tree.args["clauses"]
    assert (to_sql(slack.this), slack.args["mode"], slack.args["on"].name) == ("100 ROWS", "GENEROUS", "b")
    assert texts(ordered.expressions) == ["a", "b"]
    assert to_sql(ordered.args["idle"]) == "INTERVAL '5' SECONDS"
    assert to_sql(punctuated.this) == "a < 0"
    assert texts(punctuated.args["per"]) == ["b"]
    assert isinstance(heartbeat, nodes.Heartbeat)
    assert tree.args["late"].name == "late"
    assert tree.args["bad"].name == "bad"


def test_options_may_be_empty(again: Check) -> None:
    assert again("CREATE STREAM s (a INT) USING rate OPTIONS ()") == again(
        "CREATE STREAM s (a INT) USING rate"
    )


def test_late_tuples_may_be_dropped(again: Check) -> None:
    assert again("CREATE STREAM s (a INT) LATE DROP").args["late"].this is None


def test_a_port_of_the_papers(again: Check) -> None:
    assert again("CREATE STREAM s (a INT) SOURCE 'port4445'").args["source"].name == "port4445"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("STREAM s(a, b) ORDER BY b", "CREATE STREAM s (a, b) ORDER BY b"),
        ("TABLE t(a, b)", "CREATE TABLE t (a, b)"),
        ("AGGREGATE f(x) : (y) { TERMINATE : { } }", "CREATE AGGREGATE f(x) : (y) { TERMINATE : {} }"),
        ("WINDOW AGGREGATE f(x) : REAL { }", "CREATE WINDOW AGGREGATE f(x) : FLOAT {}"),
    ],
)
def test_create_may_be_left_out_and_so_may_types(old: str, new: str, again: Check) -> None:
    assert again(old) == again(new)


def test_derived_streams_tables_views(again: Check) -> None:
    for kind in (nodes.CreateStream, nodes.CreateTable, nodes.CreateView):
        tree = again(f"CREATE {kind.__name__.removeprefix('Create').upper()} x AS SELECT 1 AS a")
        assert isinstance(tree, kind)
        assert isinstance(tree.args["query"], exp.Select)


def test_a_table_that_is_read_again(again: Check) -> None:
    tree = again("CREATE TABLE t (a INT) REFRESH EVERY 10 SECONDS USING csv OPTIONS (path 'x')")
    assert isinstance(tree.args["refresh"], exp.Interval)
    assert again("CREATE TABLE t REFRESH EVERY INTERVAL 2 DAYS AS SELECT a FROM u").args["query"]


def test_a_sink(again: Check) -> None:
    tree = again("CREATE SINK out USING csv OPTIONS (path 'x')")
    assert (tree.name, tree.args["format"].name) == ("out", "csv")


def test_a_split(again: Check) -> None:
    tree = again("SPLIT STREAM g INTO p AS (SELECT * FROM g WHERE is_player(sid)), b AS (SELECT sid FROM g)")
    assert isinstance(tree, nodes.SplitStream)
    assert [branch.name for branch in tree.args["branches"]] == ["p", "b"]


@pytest.mark.parametrize(
    ("text", "node", "arguments"),
    [
        ("SHOW streams", nodes.ShowEntries, {"this": "STREAMS"}),
        ("DESC s", nodes.DescribeEntry, {"this": "s"}),
        ("DROP WINDOW AGGREGATE IF EXISTS f", nodes.DropEntry, {"kind": "WINDOW AGGREGATE", "exists": True}),
        ("DROP STREAM s", nodes.DropEntry, {"kind": "STREAM", "this": "s"}),
        ("SET a.b = 5", nodes.SetOption, {"this": "a.b", "value": "5"}),
        ("SET a = 'x'", nodes.SetOption, {"this": "a", "value": "x"}),
        ("SET `from`.`a b`.`1` = -5", nodes.SetOption, {"this": "from.a b.1", "value": "-5"}),
        ("EXPLAIN PATTERN SELECT 1", nodes.Explain, {"mode": "PATTERN"}),
        ("EXPLAIN PATTERN DOT SELECT 1", nodes.Explain, {"mode": "PATTERN DOT"}),
    ],
)
def test_housekeeping(text: str, node: type[exp.Expr], arguments: dict[str, Any], again: Check) -> None:
    tree = again(text)
    assert isinstance(tree, node)
    for name, value in arguments.items():
        argument = tree.args[name]
        assert (argument.name if isinstance(argument, exp.Expr) else argument) == value


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("brackets", "kind", "arguments"),
    [
        (
            "RANGE 5 MINUTES SLIDE 60 SECONDS WATTR ts",
            "RANGE",
            {"range": "INTERVAL '5' MINUTES", "wattr": "ts"},
        ),
        ("RANGE 10 RATTR a SLIDE 3 ROWS SATTR rank(a)", "RANGE", {"slide": "3 ROWS", "sattr": "rank(a)"}),
        ("ROWS 100", "ROWS", {"range": "100"}),
        ("RANGE 1 ROW WATTR row_num", "RANGE", {"range": "1 ROWS"}),
        ("RANGE 1 HOUR 30 MINUTES", "RANGE", {"range": "INTERVAL '1' HOUR + INTERVAL '30' MINUTES"}),
        (
            "RANGE INTERVAL '1' HOUR + INTERVAL 30 MINUTES",
            "RANGE",
            {"range": "INTERVAL '1' HOUR + INTERVAL '30' MINUTES"},
        ),
        ("RANGE 2.5", "RANGE", {"range": "2.5"}),
        ("TUMBLE INTERVAL '1' DAY", "TUMBLE", {"range": "INTERVAL '1' DAY"}),
        ("NOW", "NOW", {}),
        ("UNBOUNDED START AT 5", "UNBOUNDED", {"start_at": "5"}),
        ("LANDMARK START AT '07:00' END AT '08:00' SLIDE 5 MINUTES", "LANDMARK", {"end_at": "'08:00'"}),
        ("LANDMARK START AT -5", "LANDMARK", {"start_at": "-5"}),
        ("SESSION GAP 5 MINUTES", "SESSION", {"gap": "INTERVAL '5' MINUTES"}),
        ("START WHEN a > 1 END WHEN b", "PREDICATE", {"start_when": "a > 1", "end_when": "b"}),
        ("TUMBLE 5 ORIGIN 2 EMIT EVERY 1", "TUMBLE", {"origin": "2", "emit": "1"}),
    ],
)
def test_windows_in_brackets(brackets: str, kind: str, arguments: dict[str, str], again: Check) -> None:
    window = window_of(again(f"SELECT a FROM s [{brackets}]"))
    assert window.kind == kind
    assert {name: to_sql(window.args[name]) for name in arguments} == arguments


def test_partitions_of_a_window_have_two_spellings(again: Check) -> None:
    old, new = (
        again(f"SELECT a FROM s [{w}]") for w in ("ROWS 5 PATTR p, t.q", "PARTITION BY p, t.q ROWS 5")
    )
    assert old == new
    assert texts(window_of(new).args["pattr"]) == ["p", "t.q"]


def test_windows_are_found_wherever_a_query_reads(again: Check) -> None:
    tree = again("""
        WITH c AS (SELECT a FROM s [ROWS 1])
        SELECT a, (SELECT max(b) FROM t [ROWS 2]) FROM c, (SELECT b FROM u [ROWS 3]) AS q
        JOIN v [ROWS 4] AS w ON w.a = q.b WHERE a IN (SELECT x FROM y [ROWS 5])
        UNION ALL SELECT a, b FROM z [ROWS 6]
    """)
    assert sorted(to_sql(w.args["range"]) for w in tree.find_all(nodes.StreamWindow)) == list("123456")


def test_a_stream_may_have_a_schema(again: Check) -> None:
    table = again("SELECT a FROM c.d.s [NOW] AS t").args["from_"].this
    assert (table.catalog, table.db, table.name, table.alias) == ("c", "d", "s", "t")


def test_a_query_in_from_may_have_a_window(again: Check) -> None:
    tree = again("SELECT a FROM (SELECT b FROM s [NOW]) [TUMBLE 5 MINUTES] AS t")
    query = tree.args["from_"].this
    assert isinstance(query, nodes.StreamSubquery)
    assert (query.args["window"].kind, query.alias) == ("TUMBLE", "t")


@pytest.mark.parametrize(
    ("frame", "arguments"),
    [
        ("ROWS 9 PRECEDING", {"kind": "ROWS", "start": "9", "start_side": "PRECEDING", "end": "CURRENT ROW"}),
        ("rows between 9 preceding and current row", {"kind": "ROWS", "start": "9", "end": "CURRENT ROW"}),
        ("RANGE UNBOUNDED PRECEDING", {"kind": "RANGE", "start": "UNBOUNDED"}),
        ("RANGE 5 MINUTES PRECEDING", {"start": "INTERVAL '5' MINUTES"}),
        ("ROWS 9 PRECEDING SLIDE 28", {"slide": "28"}),
        ("RANGE INTERVAL 5 SECONDS PRECEDING ACTIVE EXPIRATION", {"active": True}),
        ("ROWS 9 PRECEDING SLIDE 4 EMIT EVERY 2", {"slide": "4", "emit": "2"}),
        ("ROWS n PRECEDING", {"start": "n"}),
        ("ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING", {"end": "2", "end_side": "FOLLOWING"}),
    ],
)
def test_frames_of_over(frame: str, arguments: dict[str, Any], again: Check) -> None:
    tree = again(f"SELECT sum(x) OVER (PARTITION BY p ORDER BY t {frame}) FROM s")
    spec = tree.find(nodes.OverSpec)
    assert spec is not None
    values = {name: spec.args[name] for name in arguments}
    assert {n: to_sql(v) if isinstance(v, exp.Expr) else v for n, v in values.items()} == arguments


# ---------------------------------------------------------------- patterns


def test_a_pattern(again: Check) -> None:
    tree = again("SELECT X.a FROM s PARTITION BY k, l SEQUENCE BY d AS (X, *Y, Z) WHERE count(*Y) > 3")
    pattern = tree.args["from_"].this.args["pattern"]
    assert texts(pattern.args["partition_by"]) == ["k", "l"]
    assert texts(pattern.args["sequence_by"]) == ["d"]
    assert [(e.name, e.args["star"]) for e in pattern.args["elements"]] == [
        ("X", False),
        ("Y", True),
        ("Z", False),
    ]
    starred = tree.find(nodes.Starred)
    assert starred is not None
    assert to_sql(starred.this) == "Y"


def test_parts_of_a_match(again: Check) -> None:
    tree = again("SELECT LAST(Y).t, Y.previous.v, avg(*Y.v), FIRST(*Y).v FROM s AS (*Y)")
    last, previous, average, first = tree.expressions
    assert isinstance(last, exp.Dot)
    assert [part.name for part in previous.parts] == ["Y", "previous", "v"]
    assert to_sql(average.expressions[0].this) == "Y.v"
    assert isinstance(first.this.expressions[0], nodes.Starred)


def test_an_alias_with_columns_is_no_pattern(again: Check) -> None:
    table = again("SELECT a FROM s AS t(a, b)").args["from_"].this
    assert (table.alias, [c.name for c in table.args["alias"].columns]) == ("t", ["a", "b"])


# ---------------------------------------------------------------- aggregates and functions


def test_an_aggregate(again: Check) -> None:
    tree = again("""
        CREATE WINDOW AGGREGATE f(x INT, y) : (a INT, b STRING) ALGEBRAIC USING (p, q) {
            TABLE t(c INT, d); TABLE inwindow(w INT);
            INITIALIZE : { INSERT INTO t VALUES (x, 'a;b}'); };
            ITERATE : { UPDATE t SET c = c + 1, d = y WHERE c > 0; DELETE FROM inwindow; }
            EXPIRE : { INSERT INTO RETURN SELECT c, d FROM t -- no semicolon
            } }
    """)
    assert isinstance(tree, nodes.CreateAggregate)
    assert tree.args["window"] is True
    assert texts(tree.args["parameters"]) == ["x INT", "y"]
    assert texts(tree.args["columns"]) == ["a INT", "b STRING"]
    assert to_sql(tree.args["algebraic"]) == "ALGEBRAIC USING (p, q)"
    assert [table.name for table in tree.args["tables"]] == ["t", "inwindow"]
    assert [block.this for block in tree.args["blocks"]] == ["INITIALIZE", "ITERATE", "EXPIRE"]
    kinds = [[type(s) for s in block.args["statements"]] for block in tree.args["blocks"]]
    assert kinds == [[nodes.InsertInto], [exp.Update, exp.Delete], [nodes.InsertInto]]


def test_an_insert_of_the_papers_has_a_condition(again: Check) -> None:
    tree = again(
        "AGGREGATE f(x) : INT { ITERATE : { INSERT INTO t VALUES (x), (2) "
        "WHERE x NOT IN (SELECT a FROM t) } }"
    )
    insert = tree.find(nodes.InsertInto)
    assert insert is not None
    assert texts(insert.args["values"]) == ["(x)", "(2)"]
    assert to_sql(insert.args["where"]) == "NOT x IN (SELECT a FROM t)"


def test_an_interval_of_the_papers(again: Check) -> None:
    body = "AGGREGATE f(n) : INT {{ ITERATE : {{ DELETE FROM t WHERE now > (a + {}) }} }}"
    old = again(body.format("n minutes"))
    interval = old.find(exp.Interval)
    assert interval is not None
    assert (interval.this.name, interval.args["unit"].name) == ("n", "MINUTES")
    assert old == again(body.format("INTERVAL n MINUTES"))
    assert again(body.format("5 minutes")) == again(body.format("INTERVAL '5' MINUTES"))


def test_outside_of_bodies_a_unit_is_a_name(again: Check) -> None:
    assert again("SELECT a + b minutes FROM s").expressions[0].alias == "minutes"


def test_python(again: Check) -> None:
    assert (
        again("CREATE AGGREGATE f(x DOUBLE) : DOUBLE LANGUAGE PYTHON AS 'm:C'").args["python"].name == "m:C"
    )
    assert again("CREATE FUNCTION f() : INT LANGUAGE PYTHON AS 'm:f'").args["parameters"] == []


def test_a_function(again: Check) -> None:
    tree = again("CREATE FUNCTION f(x DOUBLE) : DOUBLE AS CASE WHEN x > 0 THEN x END")
    assert isinstance(tree.args["body"], exp.Case)


def test_inserts(again: Check) -> None:
    assert texts(again("INSERT INTO out (a, b) SELECT 1, 2").args["columns"]) == ["a", "b"]
    assert isinstance(again("INSERT INTO out (SELECT 1)").args["query"], exp.Subquery)
    assert again("INSERT INTO TABLE out SELECT 1") == again("INSERT INTO out SELECT 1")


def test_local_tables_may_have_an_alias(again: Check) -> None:
    tree = again(
        "AGGREGATE f(x) : INT { ITERATE : { UPDATE t AS u SET u.a = 1; DELETE FROM t v WHERE v.a = 1 } }"
    )
    assert [table.alias for table in tree.find_all(exp.Table)] == ["u", "v"]


# ---------------------------------------------------------------- relation to stream


@pytest.mark.parametrize("modifier", ["ISTREAM", "DSTREAM", "RSTREAM", "CHANGES"])
def test_modifiers(modifier: str, again: Check) -> None:
    for items in ("a", "*", "* EXCEPT (a)", "(a + b)", "'x'", "NOT a", "DISTINCT a"):
        select = again(f"SELECT {modifier} {items} FROM s")
        assert [m.name for m in select.args["operation_modifiers"]] == [modifier], items


def test_distinct_may_stand_on_either_side(again: Check) -> None:
    assert again("SELECT ISTREAM DISTINCT a FROM s") == again("SELECT DISTINCT istream a FROM s")


@pytest.mark.parametrize(
    "items",
    [
        *(
            "istream",
            "istream, a",
            "istream AS a",
            "istream.a",
            "istream * 2",
            "istream - 1",
            "istream IS NULL",
        ),
        *(
            "istream IN (1)",
            "istream NOT IN (1)",
            "istream[0]",
            "istream = 1",
            "istream || 'x'",
            "istream::INT",
        ),
    ],
)
def test_a_column_may_be_called_like_a_modifier(items: str, again: Check) -> None:
    assert not again(f"SELECT {items} FROM s").args.get("operation_modifiers")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM IF NOT EXISTS s (a INT) USING kafka",
        "CREATE TABLE IF NOT EXISTS t AS SELECT a FROM u",
        "CREATE SINK IF NOT EXISTS k USING noop",
        "CREATE FUNCTION IF NOT EXISTS f(x INT) : INT AS x + 1",
        "CREATE AGGREGATE IF NOT EXISTS g(x INT) : INT LANGUAGE PYTHON AS 'm:G'",
        "CREATE WINDOW AGGREGATE IF NOT EXISTS g(x INT) : INT LANGUAGE PYTHON AS 'm:G'",
    ],
)
def test_if_not_exists_goes_with_everything_that_is_created(text: str) -> None:
    (statement,) = parse_script(text)
    assert statement.tree.args["exists"] is True
    assert to_sql(statement.tree) == text
