"""Sequence patterns: which condition belongs to which variable, and each rule with its message."""

from __future__ import annotations

import re

import pytest

from millstream.analysis.definitions.create_aggregate import analyse_aggregate
from millstream.analysis.queries.query_analyzer import analyse_query
from millstream.analysis.queries.resolved_query import PatternClause, Select
from millstream.catalog import Catalog
from millstream.catalog.entries import Registered, Stream, Table, Timestamp, TimestampKind
from millstream.errors import AnalysisError
from millstream.syntax import nodes, parse_script
from millstream.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Field,
    Type,
    array,
    map_of,
    struct,
)

AGGREGATES = """
AGGREGATE drift(v DOUBLE) : DOUBLE { TABLE t(v DOUBLE);
    INITIALIZE : { INSERT INTO RETURN VALUES (v); } ITERATE : { INSERT INTO RETURN VALUES (v); } };
AGGREGATE spread(v DOUBLE) : DOUBLE { TABLE t(v DOUBLE);
    INITIALIZE : { } ITERATE : { } TERMINATE : { INSERT INTO RETURN SELECT v FROM t; } };
AGGREGATE latest(v) : (w) { TABLE t(u);
    INITIALIZE : { INSERT INTO t VALUES (v); } ITERATE : { UPDATE t SET u = v; }
    TERMINATE : { INSERT INTO RETURN SELECT u FROM t; } };
WINDOW AGGREGATE moving(v DOUBLE) : DOUBLE { INITIALIZE : { } ITERATE : { } };
"""


def fields(**types: Type) -> tuple[Field, ...]:
    return tuple(Field(name, type_) for name, type_ in types.items())


def a_stream(name: str, order: str | None = None, /, **types: Type) -> Stream:
    timestamp = (
        Timestamp(TimestampKind.EXTERNAL, order, types[order]) if order else Timestamp(TimestampKind.LATENT)
    )
    return Stream(name, fields(**types), Registered(), timestamp)


def a_catalog() -> Catalog:
    catalog = Catalog()
    sessions = {"SessNo": INT, "ClickTime": TIMESTAMP, "PageNo": INT, "PageType": STRING}
    catalog.add(a_stream("Sessions", "ClickTime", **sessions))
    catalog.add(a_stream("speed", "speedTime", stationId=INT, speed=DOUBLE, speedTime=TIMESTAMP))
    catalog.add(a_stream("diff", "speedTime", stationId=INT, speed_diff=DOUBLE, speedTime=TIMESTAMP))
    catalog.add(a_stream("events", time=TIMESTAMP, name=STRING, type=STRING, magnitude=DOUBLE))
    catalog.add(a_stream("nested", "t", t=INT, pos=struct(Field("x", DOUBLE)), tags=array(STRING)))
    catalog.add(Table("stations", fields(stationId=INT, location=STRING, most=BIGINT), Registered()))
    quote = fields(name=STRING, price=DOUBLE, time=TIMESTAMP, date=DATE, facts=map_of(STRING, INT))
    catalog.add(Table("quote", quote, Registered()))
    for statement in parse_script(AGGREGATES):
        assert isinstance(statement.tree, nodes.CreateAggregate)
        catalog.add(analyse_aggregate(statement.tree, catalog, statement.source))
    return catalog


def analyse(text: str) -> Select:
    (statement,) = parse_script(text)
    query = analyse_query(statement.tree, a_catalog(), statement.source)
    assert isinstance(query, Select)
    return query


def pattern_of(text: str) -> PatternClause:
    pattern = analyse(text).pattern
    assert pattern is not None
    return pattern


def drawn(pattern: PatternClause) -> dict[str, tuple[list[str], list[str]]]:
    """Each variable with its conditions per tuple and its final ones."""
    return {
        ("*" if element.star else "") + element.name: (
            [str(condition) for condition in element.per_tuple],
            [str(condition) for condition in element.final],
        )
        for element in pattern.elements
    }


# ---------------------------------------------------------------- listings

PURCHASE = """
SELECT Y.PageNo, Z.ClickTime
FROM Sessions PARTITION BY SessNo AS (X, Y, Z)
WHERE X.PageType = 'a' AND Y.PageType = 'd' AND Z.PageType = 'p'"""

VISITED = """
SELECT SessNo, count(*A) FROM Sessions PARTITION BY SessNo AS (*A, B)
WHERE A.PageType <> 'd' AND B.PageType = 'd' AND count(*A) < 20"""

JAMS = """
SELECT A.location, LAST(Y).speedTime
FROM stations AS A, speed PARTITION BY stationId AS (X, *Y)
WHERE X.speed > 50 AND Y.speed < Y.previous.speed AND LAST(*Y).speed < 0.3 * X.speed
  AND ccount(Y) <= 6 AND X.stationId = A.stationId"""

ACCIDENTS = """
SELECT X.stationId, FIRST(Y).speedTime, LAST(Z).speedTime, LAST(Z).speed_diff
FROM diff PARTITION BY stationId AS (X, *Y, *Z)
WHERE X.speed_diff <= 15 AND Y.speed_diff > Y.previous.speed_diff AND LAST(*Y).speed_diff > 2 * X.speed_diff
  AND ccount(Y) <= 6 AND Z.speed_diff > 1.1 * X.speed_diff AND ccount(Z) <= 60"""

ERUPTIONS = """
SELECT V.name, LAST(E).name FROM events AS (*E, V)
WHERE E.type = 'Earthquake' AND V.type = 'Volcano' AND LAST(E).magnitude >= 7.0"""

DOUBLE_BOTTOM = """
SELECT W.name, FIRST(W).time, FIRST(W).price, LAST(Z).time, LAST(Z).price
FROM quote PARTITION BY name SEQUENCE BY date AS (*W, *X, *Y, *Z)
WHERE W.price <= W.previous.price AND count(*W) >= 5 AND X.price >= X.previous.price AND count(*X) >= 5
  AND Y.price <= Y.previous.price AND count(*Y) >= 5 AND Z.price >= Z.previous.price AND count(*Z) >= 5"""


def test_conditions_on_plain_elements_are_tested_with_their_tuple() -> None:
    assert drawn(pattern_of(PURCHASE)) == {
        "X": (["X.PageType = 'a'"], []),
        "Y": (["Y.PageType = 'd'"], []),
        "Z": (["Z.PageType = 'p'"], []),
    }


def test_an_aggregate_with_a_star_is_final() -> None:
    assert drawn(pattern_of(VISITED)) == {
        "*A": (["A.PageType <> 'd'"], ["count(*A) < 20"]),
        "B": (["B.PageType = 'd'"], []),
    }


def test_running_aggregates_are_per_tuple_and_joins_come_after_the_match() -> None:
    pattern = pattern_of(JAMS)
    assert drawn(pattern) == {
        "X": (["X.speed > 50"], []),
        "*Y": (["Y.speed < Y.previous.speed", "ccount(Y) <= 6"], ["LAST(Y).speed < 0.3 * X.speed"]),
    }
    assert [str(condition) for condition in pattern.after_match] == ["X.stationId = A.stationId"]
    assert (pattern.alias, pattern.partition_by, pattern.sequence_by) == ("speed", ("stationId",), ())


def test_accidents() -> None:
    assert drawn(pattern_of(ACCIDENTS))["*Z"] == (
        ["Z.speed_diff > 1.1 * X.speed_diff", "ccount(Z) <= 60"],
        [],
    )


def test_last_is_final_without_a_star_too() -> None:
    assert drawn(pattern_of(ERUPTIONS))["*E"] == (["E.type = 'Earthquake'"], ["LAST(E).magnitude >= 7.0"])


def test_a_table_is_searched_in_the_order_that_is_named() -> None:
    query = analyse(DOUBLE_BOTTOM)
    assert query.pattern is not None
    assert query.pattern.sequence_by == ("date",)
    assert query.facts is None
    assert drawn(query.pattern)["*X"] == (["X.price >= X.previous.price"], ["count(*X) >= 5"])


# ---------------------------------------------------------------- conditions


def conditions(where: str) -> PatternClause:
    return pattern_of(
        f"SELECT X.speed FROM speed PARTITION BY stationId AS (X, *Y, Z), stations AS S WHERE {where}"
    )


def test_the_rightmost_variable_owns_a_condition() -> None:
    pattern = conditions("Z.speed > X.speed AND Y.speed < X.speed")
    assert drawn(pattern) == {
        "X": ([], []),
        "*Y": (["Y.speed < X.speed"], []),
        "Z": (["Z.speed > X.speed"], []),
    }


def test_a_final_aggregate_of_an_earlier_star_does_not_make_a_condition_final() -> None:
    assert drawn(conditions("Z.speed > avg(*Y.speed)"))["Z"] == (["Z.speed > avg(*Y.speed)"], [])


def test_a_condition_that_also_names_the_tuple_is_per_tuple() -> None:
    assert drawn(conditions("FIRST(Y).speed > Y.speed"))["*Y"] == (["FIRST(Y).speed > Y.speed"], [])


def test_conjuncts_in_parentheses_are_divided_and_disjunctions_are_not() -> None:
    pattern = conditions("(X.speed > 1 AND (Y.speed > 2)) AND (X.speed > 3 OR Y.speed > 4)")
    assert drawn(pattern)["X"] == (["X.speed > 1"], [])
    assert drawn(pattern)["*Y"] == (["(Y.speed > 2)", "(X.speed > 3 OR Y.speed > 4)"], [])


@pytest.mark.parametrize(
    "where", ["S.location = 'here'", "stationId = 5", "ccount(Y) < 3 AND count(*Y) < S.most", "1 = 1"]
)
def test_conditions_without_a_variable_or_with_a_table_come_after_the_match(where: str) -> None:
    (condition,) = conditions(where).after_match
    assert where.endswith(re.sub(r"speed\.stationId", "stationId", str(condition)))


@pytest.mark.parametrize(
    ("condition", "running"),
    [
        ("csum(Y.speed) < 9", True),
        ("cavg(Y.speed) < 9", True),
        ("cmin(Y.speed) < 9", True),
        ("cmax(Y.speed) < 9", True),
        ("drift(Y.speed) < 9", True),
        ("avg(Y.speed) OVER (ROWS 4 PRECEDING) < 9", True),
        ("spread(Y.speed) OVER (ROWS 4 PRECEDING) < 9", True),
        ("drift(*Y.speed) < 9", False),
        ("spread(*Y.speed) < 9", False),
        ("percentile(*Y.speed, 0.5) < 9", False),
        ("last(*Y.speed) < 9", False),
        ("last(Y.speed) < 9", False),
        ("ccount(*Y) < 9", False),
    ],
)
def test_which_aggregates_are_running_and_which_are_final(condition: str, running: bool) -> None:
    per_tuple, final = drawn(conditions(condition))["*Y"]
    assert (len(per_tuple), len(final)) == ((1, 0) if running else (0, 1))


def test_previous_may_be_repeated() -> None:
    for times in range(1, 7):
        where = f"Y{'.previous' * times}.speed < Y.speed"
        assert drawn(conditions(where))["*Y"] == ([where], [])


def test_a_condition_keeps_its_tree_and_its_place() -> None:
    text = "SELECT X.speed FROM speed AS (X) WHERE (X.speed + 1) * 2 > 3 AND X.stationId IS NOT NULL"
    first, second = pattern_of(text).elements[0].per_tuple
    assert (first.type, second.type) == (BOOLEAN, BOOLEAN)
    assert (str(first), str(second)) == ("(X.speed + 1) * 2 > 3", "NOT X.stationId IS NULL")
    assert first.tree is not None
    assert first.span is not None
    assert [str(column) for column in first.columns()] == ["X.speed"]


# ---------------------------------------------------------------- results


def test_outputs_have_names_and_types() -> None:
    query = analyse(
        "SELECT stationId, Y.speed, LAST(Y).speed AS last_speed, count(*Y), S.*, csum(*Y.speed) / 2 AS half "
        "FROM speed PARTITION BY stationId AS (X, *Y), stations AS S"
    )
    assert [(field.name, str(field.type)) for field in query.fields] == [
        ("stationId", "int"),
        ("speed", "double"),
        ("last_speed", "double"),
        ("count(*Y)", "bigint"),
        ("stationId", "int"),
        ("location", "string"),
        ("most", "bigint"),
        ("half", "double"),
    ]
    assert not query.where


def test_a_variable_with_a_star_stands_for_all_its_columns() -> None:
    assert [o.name for o in analyse("SELECT X.* FROM speed AS (X)").outputs] == [
        "stationId",
        "speed",
        "speedTime",
    ]


def test_parts_of_structs_are_known() -> None:
    query = analyse("SELECT X.pos.x, X.previous.pos.x AS y, LAST(Y).pos.x AS z FROM nested AS (X, *Y)")
    assert [str(field.type) for field in query.fields] == ["double", "double", "double"]


@pytest.mark.parametrize(
    ("select", "column"),
    [
        ("Y.speedTime", "speedTime"),
        ("LAST(Y).speedTime AS t", "t"),
        ("X.speedTime", None),
        ("FIRST(Y).speedTime", None),
        ("Y.speed", None),
        ("FIRST(Y).speedTime, LAST(Y).speedTime", None),
    ],
)
def test_a_match_has_the_timestamp_of_its_last_tuple(select: str, column: str | None) -> None:
    facts = analyse(f"SELECT {select} FROM speed AS (X, *Y)").facts
    assert facts is not None
    assert facts.timestamp == Timestamp(TimestampKind.EXTERNAL, column, TIMESTAMP)


def test_matches_of_a_latent_stream_are_latent() -> None:
    facts = analyse(ERUPTIONS).facts
    assert facts is not None
    assert facts.timestamp.kind is TimestampKind.LATENT


def test_order_by_the_timestamp_changes_nothing() -> None:
    analyse("SELECT LAST(Y).speedTime AS t FROM speed SEQUENCE BY speedTime AS (X, *Y) ORDER BY t")
    analyse("SELECT X.speed FROM speed AS (X, *Y) ORDER BY LAST(Y).speedTime")


# ---------------------------------------------------------------- rules


def refused(text: str, message: str, hint: str = "") -> None:
    with pytest.raises(AnalysisError, match=re.escape(message)) as caught:
        analyse(text)
    assert caught.value.span is not None
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "SELECT X.speed FROM speed PARTITION BY station AS (X)",
            "unknown partitioning column 'station' in 'speed'",
            "did you mean 'stationId'?",
        ),
        (
            "SELECT X.speed FROM speed SEQUENCE BY speedtim AS (X)",
            "unknown sequencing column 'speedtim'",
            "speedTime",
        ),
        (
            "SELECT X.speed FROM speed SEQUENCE BY stationId AS (X)",
            "a stream is searched in the order of its timestamp",
            "SEQUENCE BY speedTime",
        ),
        (
            "SELECT X.name FROM events SEQUENCE BY time AS (X)",
            "a stream is searched in the order of its timestamp",
            "leave it out",
        ),
        ("SELECT X.price FROM quote PARTITION BY name AS (X)", "SEQUENCE BY is missing", "SEQUENCE BY t"),
        ("SELECT X.price FROM quote SEQUENCE BY facts AS (X)", "map<string,int> has no order", ""),
        ("SELECT X.speed FROM speed AS (X, *x)", "pattern variable 'x' is named twice", ""),
        (
            "SELECT X.speed FROM speed AS (X, S), stations AS S",
            "'S' is the name of a table or stream",
            "another name",
        ),
        (
            "SELECT X.speed FROM speed AS (speed, X)",
            "'speed' is the name of a table or stream",
            "another name",
        ),
        ("SELECT X.speed FROM speed [ROWS 5] AS (X)", "a pattern is searched in a bare stream", ""),
        (
            "SELECT X.speed FROM speed AS (X), quote SEQUENCE BY date AS (Y)",
            "one pattern is enough",
            "CREATE STREAM",
        ),
        (
            "SELECT X.price FROM quote SEQUENCE BY date AS (X), speed AS s",
            "cannot be joined with a stream",
            "",
        ),
        (
            "SELECT X.speed FROM speed AS (X) JOIN stations USING (stationId)",
            "a pattern is joined with tables in WHERE",
            "WHERE X.k = t.k",
        ),
        (
            "SELECT X.speed, count(*X) FROM speed AS (*X) GROUP BY X.speed",
            "GROUP BY cannot be used",
            "CREATE STREAM",
        ),
        ("SELECT X.speed FROM speed AS (*X) HAVING count(*X) > 1", "HAVING cannot be used", "CREATE STREAM"),
        ("SELECT DISTINCT X.speed FROM speed AS (X)", "DISTINCT cannot be used", "CREATE STREAM"),
        ("SELECT X.speed FROM speed AS (X) LIMIT 5", "LIMIT cannot be used", "CREATE STREAM"),
        ("SELECT ISTREAM X.speed FROM speed AS (X)", "ISTREAM cannot be used", "CREATE STREAM"),
        (
            "SELECT X.speed FROM speed AS (X) ORDER BY X.speed",
            "only be ordered by their timestamp",
            "leave ORDER BY out",
        ),
        (
            "SELECT X.speedTime FROM speed AS (X) ORDER BY X.speedTime DESC",
            "only be ordered by their timestamp",
            "",
        ),
        ("SELECT X.price FROM quote SEQUENCE BY date AS (X) ORDER BY X.date", "only be ordered by", ""),
        (
            "SELECT X.name FROM quote SEQUENCE BY date AS (X) WHERE X.price",
            "WHERE must be a condition",
            "",
        ),
    ],
)
def test_queries_that_are_refused(text: str, message: str, hint: str) -> None:
    refused(text, message, hint)


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        ("Q.speed > 1", "unknown pattern variable or table 'Q'", "there are X, Y, Z, S"),
        ("Y.sped > 1", "unknown column 'sped' in 'speed'", "did you mean 'speed'?"),
        ("Y.previous.sped > 1", "unknown column 'sped' in 'speed'", "did you mean 'speed'?"),
        ("FIRST(Y).sped > 1", "unknown field 'sped'", "did you mean 'speed'?"),
        ("FIRST(Q).speed > 1", "unknown pattern variable 'Q'", "there are X, Y, Z"),
        ("S.loc = 'a'", "unknown column 'loc' in 'S'", ""),
        ("speed > 1", "'speed' does not say of which tuple", "write X.speed or Y.speed"),
        ("location = 'a'", "'location' needs its table", "write S.location"),
        ("nothing = 'a'", "unknown column 'nothing'", ""),
        ("speed.speed > 1", "'speed' is searched for a pattern", "write X.speed"),
        ("X.speed + 1", "WHERE must be a condition, but this is of type double", ""),
        ("X.speed > X.speedTime", "cannot compare double with timestamp", ""),
        ("X = Z", "'X' is a whole tuple", "X.stationId"),
        ("Y.previous = 1", "'Y.previous' is a whole tuple", "Y.previous.stationId"),
        ("LAST(Y) > 1", "'LAST(Y)' is a whole tuple", "LAST(Y).stationId"),
        ("count(*X) > 1", "'X' is one tuple, and aggregates are for stars", "*X"),
        ("ccount(X) > 1", "'X' is one tuple, and aggregates are for stars", "*X"),
        ("avg(X.speed) OVER (ROWS 4 PRECEDING) > 1", "'X' is one tuple, and aggregates are for stars", "*X"),
        ("LAST(X).speed > 1", "'X' is one tuple, and LAST is for stars", "write X"),
        ("count(Y) > 1", "'count' has no value before 'Y' is complete", "write count(*Y), or ccount(Y)"),
        (
            "avg(Y.speed) > 1",
            "'avg' has no value before 'Y' is complete",
            "write avg(*Y.speed), or cavg(Y.speed)",
        ),
        ("spread(Y.speed) > 1", "'spread' has no value before 'Y' is complete", "write spread(*Y.speed)"),
        ("moving(*Y.speed) > 1", "'moving' has only a window version", "CREATE AGGREGATE moving"),
        ("count(*) > 1", "'count' is not about a variable of the pattern", "count(*Y)"),
        ("sum(speed) > 1", "'sum' is not about a variable of the pattern", "sum(*Y.speed)"),
        ("corr(*Y.speed, Z.speed) > 1", "'corr' is about more than one variable", ""),
        ("corr(*Y.speed, Y.speed) > 1", "'Y' has a star in one argument and none in another", ""),
        ("max(count(*Y)) > 1", "aggregate 'count' inside 'max'", ""),
        ("count(*Y) FILTER (WHERE Z.speed > 1) > 1", "'count' is about more than one variable", ""),
        ("count(*Y) FILTER (WHERE Y.speed) > 1", "FILTER needs a condition, but this is double", ""),
        ("count(*Y) FILTER (WHERE count(*Y) > 1) > 1", "aggregate 'count' inside 'count'", ""),
        ("count(Y) FILTER (WHERE Y.speed > 1) > 1", "'count' has no value before 'Y' is complete", ""),
        (
            "LAST(Y) FILTER (WHERE Y.speed > 1) IS NULL",
            "LAST(Y) is about all tuples of the star",
            "LAST(*Y.c) FILTER (WHERE ...)",
        ),
        ("sum(*Y.speed) WITHIN GROUP (ORDER BY *Y.speed) > 1", "'sum' takes no WITHIN GROUP", "mode"),
        (
            "percentile_cont(0.5) WITHIN GROUP (ORDER BY Y.speed) > 1",
            "'percentile_cont' has no value before 'Y' is complete",
            "ORDER BY *Y.speed",
        ),
        ("avg(*Y.speed) OVER (ROWS 4 PRECEDING) > 1", "a moving window is about a star that grows", ""),
        ("avg(Y.speed) OVER (RANGE INTERVAL 5 SECONDS PRECEDING) > 1", "counts tuples", "ROWS n PRECEDING"),
        ("avg(Y.speed) OVER (ROWS 4 PRECEDING SLIDE 2) > 1", "counts tuples", "ROWS n PRECEDING"),
        ("ccount(Y) < S.most", "a condition with a table is tested on matches", "count(*Y)"),
        ("csum(Y.speed, 1) > 1", "'sum' takes 1 argument", ""),
        ("X.speed IN (SELECT nothing FROM stations)", "unknown column 'nothing'", ""),
        ("EXISTS (SELECT nothing FROM stations)", "unknown column 'nothing'", ""),
    ],
)
def test_conditions_that_are_refused(condition: str, message: str, hint: str) -> None:
    refused(
        f"SELECT X.speed FROM speed PARTITION BY stationId AS (X, *Y, Z), stations AS S WHERE {condition}",
        message,
        hint,
    )


@pytest.mark.parametrize(
    ("select", "message", "hint"),
    [
        ("ccount(Y)", "in SELECT a star is complete", "count(*Y)"),
        ("avg(Y.speed) OVER (ROWS 4 PRECEDING)", "in SELECT a star is complete", "count(*Y)"),
        ("count(Y)", "'count' has no value before 'Y' is complete", "count(*Y)"),
        ("speed", "'speed' does not say of which tuple", "X.speed"),
        ("*", "name the columns of a match", "X.*"),
        ("Q.*", "name the columns of a match", "X.*"),
        ("Y", "'Y' is a whole tuple", "Y.stationId"),
    ],
)
def test_columns_that_are_refused(select: str, message: str, hint: str) -> None:
    refused(f"SELECT {select} FROM speed PARTITION BY stationId AS (X, *Y)", message, hint)
