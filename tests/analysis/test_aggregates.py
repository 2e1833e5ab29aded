"""CREATE [WINDOW] AGGREGATE: the papers' listings pass, and entries say what goes in and out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millstream.analysis.definitions.create_aggregate import AggregateBody, analyse_aggregate
from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.analysis.udas.body_statements import inserted_rows
from millstream.catalog import Catalog
from millstream.catalog.entries import Aggregate
from millstream.errors import AnalysisError
from millstream.syntax import nodes, parse_script
from millstream.types import BIGINT, UNKNOWN, Field
from tests import python_aggregates
from tests.analysis.defining import (
    BIDDER_WCOUNT,
    DECAY,
    FIND_PATTERN,
    MYAVG,
    MYMAX,
    NAIVE_MYAVG,
    THEFT,
    TUMBLE_AVG,
    WINDOW_MYAVG,
    a_catalog,
    define,
)

LISTINGS = Path(__file__).parents[1] / "syntax" / "listings"


def types_of(fields: tuple[Field, ...]) -> dict[str, str]:
    return {field.name: str(field.type) for field in fields}


def table_types(entry: Aggregate) -> dict[str, dict[str, str]]:
    assert isinstance(entry.definition, AggregateBody)
    return {table.name: types_of(table.fields) for table in entry.definition.tables}


# ---------------------------------------------------------------- listings


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
    return define(f"{kind} f(x BIGINT) : BIGINT LANGUAGE PYTHON AS 'tests.python_aggregates:{name}'")


def test_an_aggregate_in_python_is_blocking_but_not_its_window_version() -> None:
    entry = in_python("MySum")
    assert entry.python == "tests.python_aggregates:MySum"
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
