"""Mistakes of whole scripts: all are told, once, and none that only follows from another."""

from __future__ import annotations

import pytest

from millstream.analysis.definitions.script_analyzer import analyse_script
from millstream.analysis.definitions.statement_analyzer import AnalysedStatement
from millstream.catalog import Catalog
from millstream.errors import MillstreamError, NotExecutableError

PRELUDE = """
CREATE STREAM Bid (itemID INT, price DOUBLE, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'bids.csv');
CREATE TABLE items (id INT, name STRING) USING csv OPTIONS (path 'items.csv');
"""
BROKEN = """
CREATE STREAM Ask (itemID INTT, price DOUBLE, t TIMESTAMP) ORDER BY t LATE INTO late BAD INTO bad
    USING csv OPTIONS (path 'asks.csv');
CREATE TABLE sellers (id INT) USING cvs OPTIONS (path 'sellers.csv');
CREATE SINK out USING cvs OPTIONS (path 'out');
CREATE FUNCTION half(x DOUBLE) : DOUBLE AS y / 2;
CREATE AGGREGATE total(x DOUBLE) : DOUBLE {
    TABLE state(s DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (y); }
    ITERATE : { UPDATE state SET s = s + x; }
    TERMINATE : { INSERT INTO RETURN SELECT s FROM state; }
};
"""
MISTAKES = [
    "'INTT' is not a type",
    "unknown format 'cvs'",
    "unknown format 'cvs'",
    "unknown column 'y'",
    "unknown column or parameter 'y'",
]


def told(text: str) -> list[str]:
    """Messages of all mistakes of a script."""
    try:
        analyse_script(text, "<script>", Catalog())
    except MillstreamError as error:
        return [one.message for one in error.all]
    return []


def test_the_definitions_have_these_mistakes() -> None:
    assert told(PRELUDE) == []
    assert told(PRELUDE + BROKEN) == MISTAKES


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FROM Ask",
        "SELECT count(*), b.x FROM Ask [TUMBLE 5 MINUTES] b GROUP BY b.itemID",
        "SELECT * FROM late; SELECT * FROM bad",
        "SELECT b.price FROM Bid [RANGE 1 HOUR] b JOIN Ask [RANGE 1 HOUR] a ON a.itemID = b.itemID",
        "SELECT a.price FROM Ask [RANGE 1 HOUR] a JOIN Bid [RANGE 1 HOUR] b ON a.itemID = b.itemID",
        "SELECT price FROM Bid UNION ALL SELECT price, x FROM Ask",
        "SELECT price FROM Bid WHERE itemID IN (SELECT id FROM sellers)",
        "SELECT price + (SELECT max(id) FROM sellers) AS p FROM Bid WHERE itemID > (SELECT id FROM sellers)",
        "WITH q AS (SELECT * FROM Ask) SELECT x FROM q [TUMBLE 1 MINUTE]",
        "CREATE STREAM cheap AS SELECT x FROM Ask; SELECT z FROM cheap; EXPLAIN SELECT z FROM cheap",
        "CREATE VIEW v AS SELECT count(*) AS n FROM Ask [RANGE 1 MINUTE]; SELECT m FROM v",
        "SPLIT STREAM Ask INTO p AS (SELECT x FROM Ask), q AS (SELECT y FROM Ask); SELECT z FROM p, q",
        "DESCRIBE Ask; DROP STREAM Ask",
        "INSERT INTO out SELECT price FROM Bid",
        "SELECT half(price) FROM Bid",
        "SELECT id FROM items WHERE half(id) > 1 ORDER BY half(id)",
        "CREATE FUNCTION fourth(x DOUBLE) : DOUBLE AS half(half(x)); SELECT fourth(price) FROM Bid",
        "SELECT total(price) FROM Bid",
        "SELECT itemID, total(price) AS s FROM Bid [TUMBLE 1 MINUTE] GROUP BY itemID HAVING total(price) > 2",
        "SELECT total(price) OVER (ROWS 5 PRECEDING) FROM Bid",
        "SELECT name, total(id) FROM items GROUP BY name",
        "SELECT X.price, total(*Y.price) AS s FROM Bid AS (X, *Y) WHERE Y.price > X.price",
        """CREATE AGGREGATE more(x DOUBLE) : DOUBLE ALGEBRAIC USING (total, sum) {
               TABLE state(s DOUBLE);
               INITIALIZE : { INSERT INTO state SELECT id FROM sellers; }
               ITERATE : { UPDATE state SET s = half(s) + (SELECT total(id) FROM items); }
               TERMINATE : { INSERT INTO RETURN SELECT s FROM state; }
           };
           SELECT more(price) FROM Bid""",
    ],
)
def test_nothing_is_told_that_only_follows_from_a_mistake(text: str) -> None:
    assert told(PRELUDE + BROKEN + text + ";") == MISTAKES


def test_other_mistakes_beside_a_name_that_is_unclear_are_told() -> None:
    text = "SELECT half(price), itmID FROM Bid; SELECT a.x FROM Ask a, Zebras z;"
    expected = ["unknown column 'itmID'", "unknown stream or table 'Zebras'"]
    assert told(PRELUDE + BROKEN + text) == [*MISTAKES, *expected]


def test_a_replaced_definition_is_gone_also_if_the_new_one_has_a_mistake() -> None:
    text = "CREATE OR REPLACE STREAM Bid AS SELECT id AS b FROM items; SELECT b FROM Bid;"
    assert told(PRELUDE + text) == ["'Bid' would not be a stream, because its query reads none"]


def test_an_aggregate_with_a_mistake_hides_the_one_of_the_library() -> None:
    text = """
        CREATE AGGREGATE top_k(x DOUBLE) : DOUBLE {
            TABLE state(s DOUBLE);
            INITIALIZE : { INSERT INTO state VALUES (y); }
            ITERATE : { }
        };
        SELECT top_k(price) FROM Bid;
    """
    assert told(PRELUDE + text) == ["unknown column or parameter 'y'"]


def test_a_function_with_a_mistake_hides_the_built_in_one() -> None:
    functions = "CREATE FUNCTION quarter(x DOUBLE) : DOUBLE AS x / 4; SELECT quarter(price) FROM Bid;"
    assert told(PRELUDE + functions) == ["'quarter' is a built-in function"]
    aggregates = """
        CREATE AGGREGATE avg(x DOUBLE) : DOUBLE {
            TABLE state(s DOUBLE);
            INITIALIZE : { INSERT INTO state VALUES (y); }
            ITERATE : { }
        };
        SELECT itemID, avg(price) FROM Bid;
    """
    assert told(PRELUDE + aggregates) == ["unknown column or parameter 'y'"]


def test_a_second_definition_makes_a_name_clear_again() -> None:
    text = "CREATE STREAM b AS SELECT x FROM Bid; CREATE STREAM b AS SELECT price FROM Bid; SELECT z FROM b;"
    assert told(PRELUDE + text) == ["unknown column 'x'", "unknown column 'z'"]


def test_what_cannot_be_run_is_told_among_the_mistakes() -> None:
    def refuse(statement: AnalysedStatement) -> None:
        raise NotExecutableError("cannot be run", span=statement.span).locate(statement.source)

    text = "SELECT a FROM b; SHOW STREAMS; SELECT c FROM d;"
    with pytest.raises(MillstreamError) as caught:
        analyse_script(text, "<script>", Catalog(), refuse)
    assert [(one.message, one.place and one.place.column) for one in caught.value.all] == [
        ("unknown stream or table 'b'", 15),
        ("cannot be run", 18),
        ("unknown stream or table 'd'", 46),
    ]


# ---------------------------------------------------------------- where parsing goes on


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("SELECT a b c FROM s; SELECT FROM; SHOW STREAMS", 2),
        # Missing semicolons: the second definition is lost, and what it defines unclear.
        (
            "CREATE STREAM s (a INT) SOURCE 'port1' CREATE TABLE t (a INT); SELECT x FROM s; SELECT x FROM t",
            1,
        ),
        ("CREATE TABLE t (a INT) SPLIT STREAM s INTO a AS (SELECT 1); SELECT x FROM a; SELECT x FROM t", 1),
        ("CREATE sold USING csv; INSERT INTO sold SELECT 1", 1),
        # The ';' of bodies end no statement.
        ("CREATE AGGREGATE f(x INT) : INT { TABLE t(a INT); INITIALIZE : { INSERT t; } }; SELECT f(", 2),
        # No more can be said behind a brace that is not closed, or is not opened.
        ("CREATE AGGREGATE f(x INT) : INT { INITIALIZE : { INSERT t; } ; SELECT f(; SELECT g(;", 1),
        ("CREATE AGGREGATE f(x INT) : INT TABLE t(a INT); INITIALIZE : { }; SELECT f(;", 1),
        # A character that begins no token, and a quote that may have begun anywhere before.
        ("SELECT a b c FROM s; SELECT (; SELECT \u00a7; SELECT (;", 3),
        ("SELECT a b c FROM s; SELECT (; SELECT 'a; SELECT (;", 2),
        ("CREATE AGGREGATE f(x INT) : INT { TABLE t(a INT); INITIALIZE : { \u00a7 } };", 1),
    ],
)
def test_parsing_goes_on_where_it_is_sure_that_a_statement_begins(text: str, messages: int) -> None:
    assert len(told(text)) == messages
