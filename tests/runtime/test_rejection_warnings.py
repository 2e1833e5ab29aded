"""Warnings about late and bad tuples."""

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.catalog import Catalog
from millstream.catalog.entries import NOT_IN_SCHEMA
from millstream.runtime.queries.query_progress import Progress
from millstream.runtime.queries.rejection_warnings import RejectionWarnings
from millstream.syntax import parse_script

SCRIPT = """
    CREATE STREAM plain (a INT, t INT) ORDER BY t USING csv OPTIONS (path 'a.csv');
    CREATE STREAM kept (a INT, t INT) ORDER BY t USING csv OPTIONS (path 'a.csv')
      LATE INTO tardy BAD INTO broken;
    CREATE STREAM dropped (a INT, t INT) ORDER BY t USING parquet OPTIONS (path 'a') LATE DROP;
    CREATE STREAM generous (a INT, t INT) ORDER BY t USING parquet OPTIONS (path 'a')
      SLACK 3 GENEROUS LATE DROP;
"""


def rejects(*progress: Progress) -> RejectionWarnings:
    catalog = Catalog()
    for statement in parse_script(SCRIPT):
        analyse(statement, catalog)
    return RejectionWarnings(progress, catalog.relation)


def test_queries_of_one_stream_see_the_same_tuples() -> None:
    once = Progress(rows={"plain": 10}, bad={"plain": 2}, late={"plain": 1})
    behind = Progress(rows={"plain": 6}, bad={"plain": 1})
    bad, late = rejects(once, behind).warnings()
    assert bad == (
        "2 bad records in stream plain (BAD INTO makes a stream of them)\n  column 't': the timestamp is NULL"
    )
    assert late == (
        "1 late tuple in stream plain (SLACK allows some disorder, LATE INTO makes a stream of them)"
    )


def test_a_clause_that_claims_them_is_named_or_makes_the_warning_superfluous() -> None:
    some = {"kept": 3, "dropped": 1}
    found = rejects(Progress(rows={"kept": 9, "dropped": 9}, late=some, bad={"kept": 1}))
    assert found.warnings() == [
        "1 bad record in stream kept",
        "3 late tuples in stream kept (now in tardy)",
        "1 late tuple in stream dropped (dropped)",
    ]
    assert found.warnings(unclaimed=True) == []


def test_late_tuples_of_a_generous_stream_are_not_all_dropped() -> None:
    assert rejects(Progress(rows={"generous": 9}, late={"generous": 2})).warnings() == [
        "2 late tuples in stream generous (counted by windows that could still count them, otherwise dropped)"
    ]


def test_a_stream_without_a_good_record() -> None:
    found = rejects(
        Progress(
            rows={"plain": 2, "kept": 5},
            bad={"plain": 2, "kept": 4},
            bad_records={"plain": (NOT_IN_SCHEMA, "x,1"), "kept": (NOT_IN_SCHEMA, "1,y")},
        )
    )
    assert found.all_bad() == ["plain"]
    assert found.warnings()[0] == (
        "2 bad records in stream plain, all of its records (BAD INTO makes a stream of them)\n"
        "  'x,1': column 'a' int cannot be read from 'x'; declare it STRING"
    )
    assert found.warnings(shown={"plain"})[0].count("\n") == 0


def test_input_in_another_order_is_suspected_where_most_tuples_are_late() -> None:
    (line,) = rejects(Progress(rows={"plain": 45_088}, late={"plain": 41_793})).warnings()
    assert line == (
        "41793 late tuples in stream plain, most of its 45088: is the input sorted by another column than t? "
        "SLACK that spans the input puts it in order, and a table needs no order"
    )
