"""Notes: what `check` says of scripts that are right, but probably not meant so."""

from __future__ import annotations

import pytest

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.analysis.notes import notes_of
from millstream.catalog import Catalog
from millstream.errors import NoteWarning
from millstream.runtime.connection import Mill
from millstream.runtime.script_run import RunOptions, ScriptRun
from millstream.syntax import parse_script

PRELUDE = """
CREATE STREAM Bid (itemID INT, price DOUBLE, bidderID STRING, bid_time TIMESTAMP)
    ORDER BY bid_time SOURCE 'port4001';
CREATE STREAM Closed (itemID INT, closed_at TIMESTAMP) ORDER BY closed_at USING csv OPTIONS (path 'c.csv');
CREATE STREAM Line (value STRING) USING text OPTIONS (path 'log');
CREATE STREAM Hit AS SELECT to_timestamp(value) AS at FROM Line;
CREATE STREAM Live (at TIMESTAMP, n INT) SOURCE 'port4002';
CREATE STREAM LiveHit AS SELECT at, n + 1 AS m FROM Live;
CREATE STREAM Pulse (n INT) SOURCE 'port4003';
CREATE TABLE items (id INT, name STRING) USING csv OPTIONS (path 'i.csv');
CREATE AGGREGATE total(x DOUBLE) : DOUBLE {
    TABLE state(s DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE : { UPDATE state SET s = s + x; }
    TERMINATE : { INSERT INTO RETURN SELECT s FROM state; }
};
"""

ARRIVAL = "has no timestamp, so the window is on arrival; if 'at' is its time,"
HIT = f"'Hit' {ARRIVAL} write WATTR at"
LIVE = f"'Live' {ARRIVAL} declare the stream with ORDER BY at"
MISSPELT = "Spark has no setting 'spark.sql.shufle.partitions'; did you mean 'spark.sql.shuffle.partitions'?"
ENDLESS = (
    "this window ends only with the input, which does not end: there will be no result; "
    "add SLIDE or EMIT EVERY to the window, or write SELECT CHANGES or CREATE VIEW"
)
CAST = "declare 'bidderID' as a number, or write try_cast(bidderID AS DOUBLE)"
COMPARED = (
    "'bidderID' is of type string and is compared with a number: a value that is no number stops the query; "
    "compare it with a text, or write try_cast(bidderID AS DOUBLE)"
)
WEEKS = (
    "'Y' is the year of a week and 'D' the day of a year, which timestampFormat cannot have; "
    "write yyyy/MM/dd HH:mm"
)
STOPS = "a value that is no number stops the query"


@pytest.fixture(scope="module")
def prelude() -> Catalog:
    catalog = Catalog()
    for statement in parse_script(PRELUDE):
        assert notes_of(analyse(statement, catalog)) == []
    return catalog


def noted(text: str, prelude: Catalog) -> list[str]:
    catalog = prelude.copy()
    return [str(note) for s in parse_script(text) for note in notes_of(analyse(s, catalog))]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("SELECT count(*) FROM Hit [TUMBLE 5 MINUTES]", HIT),
        ("SELECT count(*) FROM Hit [SESSION GAP 5 MINUTES]", HIT),
        (
            "CREATE STREAM c AS SELECT count(*) AS n FROM Hit [TUMBLE 5 MINUTES]",
            HIT,
        ),
        (
            "SELECT n FROM (SELECT count(*) AS n FROM Hit [TUMBLE 5 MINUTES])",
            HIT,
        ),
        (
            "SELECT count(*) OVER (RANGE INTERVAL 1 MINUTE PRECEDING) FROM Hit",
            f"'Hit' {ARRIVAL} write a window on it: [RANGE 1 MINUTE WATTR at]",
        ),
        (
            "SELECT count(*) FROM Live [TUMBLE 5 MINUTES]",
            LIVE,
        ),
        (
            "SELECT count(*) FROM LiveHit [TUMBLE 5 MINUTES]",
            f"'LiveHit' {ARRIVAL} the stream that it is read from has to be declared with ORDER BY",
        ),
        ("SELECT count(*) FROM Bid [UNBOUNDED]", ENDLESS),
        ("SELECT itemID, count(*) FROM Bid [UNBOUNDED] JOIN items ON itemID = id GROUP BY itemID", ENDLESS),
        ("SELECT count(*) FROM Bid [LANDMARK START AT '2026-01-01 00:00:00']", ENDLESS),
        (
            "SELECT sum(bidderID) FROM Bid [TUMBLE 1 MINUTE]",
            f"'sum' takes numbers, but 'bidderID' is of type string: {STOPS}; {CAST}",
        ),
        (
            "SELECT total(bidderID) FROM Bid [TUMBLE 1 MINUTE]",
            f"'total' takes numbers, but 'bidderID' is of type string: {STOPS}; {CAST}",
        ),
        (
            "SELECT price FROM Bid WHERE 10 < bidderID",
            COMPARED,
        ),
        (
            "SELECT price FROM Bid WHERE bidderID = itemID",
            COMPARED,
        ),
        (
            'SELECT "itemID" FROM Bid',
            "\"itemID\" is a text, not the column 'itemID'; write itemID, or `itemID` in backquotes",
        ),
        (
            "CREATE STREAM s (a INT) USING mqtt OPTIONS (topic 'x')",
            "format 'mqtt' is none of Spark's own, so its package has to be installed",
        ),
        (
            "CREATE SINK s USING `cvs` OPTIONS (path 'x')",
            "format 'cvs' is none of Spark's own, so its package has to be installed",
        ),
        (
            "SET spark.sql.shufle.partitions = 4",
            MISSPELT,
        ),
        (
            "CREATE STREAM c (a INT) USING csv OPTIONS (path 'c.csv', heder 'true')",
            "option 'heder' of format csv is unknown; did you mean 'header'?",
        ),
        (
            "CREATE TABLE c (t TIMESTAMP) USING json OPTIONS (path 'c.json', timestampFormt 'yyyy')",
            "option 'timestampFormt' of format json is unknown; did you mean 'timestampFormat'?",
        ),
        (
            "CREATE SINK c USING csv OPTIONS (path 'c', HEDER 'true')",
            "option 'HEDER' of format csv is unknown; did you mean 'header'?",
        ),
        (
            "CREATE STREAM c (t TIMESTAMP) USING csv OPTIONS (path 'c', timestampFormat 'YYYY/MM/DD HH:mm')",
            WEEKS,
        ),
        (
            "CREATE STREAM c (t TIMESTAMP) USING csv OPTIONS (path 'c', timestampFormat 'yyyy-MM-ddTHH:mm')",
            "'T' in timestampFormat stands for no part of a time; write yyyy-MM-dd'T'HH:mm",
        ),
        (
            "CREATE STREAM c (d DATE) USING csv OPTIONS (path 'c', dateFormat 'jj.MM.yyyy bb')",
            "'j' and 'b' in dateFormat stand for no part of a time; write it with yyyy, MM and dd",
        ),
        (
            "CREATE FUNCTION f(x INT) : INT LANGUAGE PYTHON AS 'no_module.part:f'",
            "there is no Python module 'no_module.part' here; put it beside the script, or on PYTHONPATH",
        ),
    ],
)
def test_what_is_noted(text: str, note: str, prelude: Catalog) -> None:
    assert noted(text, prelude) == [note]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM Hit [TUMBLE 5 MINUTES WATTR at]",
        "SELECT count(*) FROM Pulse [TUMBLE 5 MINUTES]",
        "SELECT count(*) FROM Hit [ROWS 10]",
        "SELECT count(*) OVER (ROWS 10 PRECEDING) FROM Hit",
        "SELECT count(*) FROM Closed [UNBOUNDED]",
        "SELECT count(*) FROM Bid [UNBOUNDED SLIDE 1 MINUTE]",
        "SELECT count(*) FROM Bid [UNBOUNDED EMIT EVERY 1 MINUTE]",
        "SELECT CHANGES count(*) FROM Bid [UNBOUNDED]",
        "CREATE VIEW v AS SELECT count(*) AS n FROM Bid [UNBOUNDED]",
        "SELECT a.price FROM Bid [NOW] a, Bid [UNBOUNDED] b WHERE a.itemID = b.itemID",
        "SELECT sum(price), max(bidderID), count(bidderID) FROM Bid [TUMBLE 1 MINUTE]",
        "SELECT price FROM Bid WHERE bidderID = '10' AND price > 10",
        "SELECT \"other\", 'itemID' FROM Bid",
        "CREATE STREAM s (a INT) USING com.company.Source OPTIONS (topic 'x')",
        "CREATE STREAM s (a INT) USING kafka OPTIONS (kafka.bootstrap.servers 'h:9092', partitions '4')",
        "CREATE STREAM s (a INT) USING csv OPTIONS (path 's', HEADER 'true', dateFormat 'yyyy-DDD')",
        "CREATE STREAM s (a INT) USING csv OPTIONS (path 's', colour 'blue')",
        "CREATE STREAM s (a INT) USING iceberg OPTIONS (heder 'true')",
        "SET spark.sql.shuffle.partitions = 4",
        "SET spark.sql.catalog.mine = 'org.company.Catalog'",
        "CREATE FUNCTION f(x INT) : INT LANGUAGE PYTHON AS 'json:f'",
    ],
)
def test_what_is_not_worth_a_note(text: str, prelude: Catalog) -> None:
    assert noted(text, prelude) == []


def test_notes_are_in_the_order_of_the_text(prelude: Catalog) -> None:
    text = 'SELECT "price", sum(bidderID) OVER (ROWS 2 PRECEDING) FROM Bid WHERE bidderID > 1'
    (statement,) = parse_script(text)
    columns = [note.place.column for note in notes_of(analyse(statement, prelude.copy()))]
    assert columns == [8, 21, 70]


def test_a_note_on_an_option_is_at_the_option(prelude: Catalog) -> None:
    text = "CREATE STREAM heder (a INT) USING csv OPTIONS (path 'heder', heder 'true')"
    (statement,) = parse_script(text)
    (note,) = notes_of(analyse(statement, prelude.copy()))
    assert note.place.column == text.rindex("heder") + 1


def test_settings_from_outside_of_a_script_are_noted() -> None:
    said: list[str] = []
    given = {"spark.sql.shufle.partitions": "3"}
    ScriptRun(RunOptions(settings=given), say=said.append).run("SHOW STREAMS;", "s.esl")
    assert said[0] == f"warning: {MISSPELT}"
    with pytest.warns(NoteWarning, match="Spark has no setting 'spark.sql.shufle.partitions'"):
        Mill(settings=given)
