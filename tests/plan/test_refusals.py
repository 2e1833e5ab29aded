"""Refusals of queries that this version cannot run."""

import pytest

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.plan.builder import build
from millstream.plan.refusals import why_not
from millstream.syntax import parse_script


def refusal(text: str) -> str | None:
    catalog = Catalog()
    meanings = [analyse(statement, catalog).meaning for statement in parse_script(text)]
    query = meanings[-1]
    assert isinstance(query, RunQuery)
    reason = why_not(build(query.query))
    return None if reason is None else reason.what


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ("[START WHEN v > 1 END WHEN v < 0 EMIT EVERY 1]", "EMIT EVERY with START WHEN on doubles"),
        ("[SESSION GAP 3 EMIT EVERY 1]", "EMIT EVERY on sessions of doubles"),
        ("[RANGE 4 SLIDE 2 EMIT EVERY 1]", None),
        ("[START WHEN v > 1 END WHEN v < 0]", None),
    ],
)
def test_between_two_doubles_there_are_too_many_instants_to_report_at(window, reason):
    stream = "CREATE STREAM s (v INT, t DOUBLE) ORDER BY t USING csv OPTIONS (path 'x.csv');"
    assert refusal(f"{stream} SELECT count(*) FROM s {window};") == reason


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT RSTREAM k FROM s [LANDMARK START AT 1 END AT 7 SLIDE 2]", None),
        (
            "SELECT RSTREAM s.k FROM s [LANDMARK START AT 1 END AT 7 SLIDE 2] JOIN s [NOW] AS n ON s.k = n.k",
            None,
        ),
        ("SELECT RSTREAM s.k FROM s [RANGE 4 SLIDE 2] JOIN s [NOW] AS n ON s.k = n.k", None),
        ("SELECT DISTINCT s.k FROM s [RANGE 4] LEFT SEMI JOIN names AS n ON s.k = n.k", None),
        ("SELECT DISTINCT s.k FROM s [RANGE 4] LEFT ANTI JOIN names AS n ON s.k = n.k", None),
    ],
)
def test_maintained_relations(query, reason):
    stream = "CREATE STREAM s (k INT, t INT) ORDER BY t USING csv OPTIONS (path 'x.csv');"
    table = "CREATE TABLE names (k INT, name STRING) USING csv OPTIONS (path 'n.csv');"
    assert refusal(f"{stream} {table} {query};") == reason


@pytest.mark.parametrize("join", ["", " JOIN s [RANGE 4] AS o ON s.k = o.k"])
@pytest.mark.parametrize(
    ("window", "why"),
    [
        ("[LANDMARK START AT '09:00:00' SLIDE 5 SECONDS]", "SLIDE 5 SECONDS"),
        ("[RANGE 4 ROWS SLIDE 1 ROW WATTR row_num]", "BY ARRIVAL"),
    ],
)
def test_windows_are_refused_in_the_same_words_alone_and_in_joins(join, window, why):
    columns = "k INT, t TIMESTAMP, u TIMESTAMP"
    stream = f"CREATE STREAM s ({columns}) ORDER BY t USING csv OPTIONS (path 'x.csv');"
    join = join.replace("RANGE 4", "RANGE 4 SECONDS")
    said = refusal(f"{stream} SELECT ISTREAM s.k FROM s {window}{join};")
    assert said is not None
    assert said.startswith("a maintained relation over the window")
    assert why in said


@pytest.mark.parametrize("bound", ["'09:00'", "'9:5'"])
def test_a_join_would_hide_the_first_tuple_from_a_time_of_day(bound):
    stream = "CREATE STREAM s (k INT, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'x.csv');"
    table = "CREATE TABLE names (k INT, name STRING) USING csv OPTIONS (path 'n.csv');"
    query = f"SELECT count(*) FROM s [LANDMARK START AT {bound}] JOIN names AS n ON s.k = n.k"
    said = refusal(f"{stream} {table} {query};")
    assert said is not None
    assert said.startswith("a join between the window [LANDMARK START AT")


PYTHON = """
CREATE STREAM s (k INT, v DOUBLE, t TIMESTAMP, u TIMESTAMP) ORDER BY t SLACK INTERVAL 1 SECOND ON u
    USING kafka OPTIONS (subscribe 's');
CREATE FUNCTION f(x DOUBLE) : BOOLEAN LANGUAGE PYTHON AS 'shop:f';
"""


ARRIVALS = "[RANGE 1 SECOND SLIDE 2 ROWS SATTR row_num WATTR u]"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT count(*) FROM (SELECT k, u FROM s WHERE f(v)) [TUMBLE 1 SECOND WATTR u]",
            "the window [RANGE 1 SECOND SLIDE 1 SECOND WATTR u] above a function in Python",
        ),
        ("SELECT count(*) FROM (SELECT k, u FROM s WHERE v > 1) [TUMBLE 1 SECOND WATTR u]", None),
        ("SELECT count(*) FROM (SELECT k, t FROM s WHERE f(v)) [TUMBLE 1 SECOND WATTR t]", None),
        (
            "SELECT count(*) FROM s [RANGE 1 SECOND RATTR u SLIDE 2 ROWS SATTR row_num] WHERE f(v)",
            f"a function in Python in WHERE above the window {ARRIVALS}",
        ),
        ("SELECT count_if(f(v)) FROM s [RANGE 1 SECOND RATTR u SLIDE 2 ROWS SATTR row_num]", None),
    ],
)
def test_late_tuples_are_removed_before_functions_in_python(query, reason):
    assert refusal(f"{PYTHON} {query};") == reason


def test_a_refusal_says_object_reason_remedy_and_place():
    catalog = Catalog()
    text = "CREATE STREAM s (v DOUBLE, t INT) ORDER BY t USING csv OPTIONS (path 'x');"
    text += " SELECT count(*), percentile(v, v) FROM s [TUMBLE 1];"
    query = [analyse(statement, catalog).meaning for statement in parse_script(text)][-1]
    assert isinstance(query, RunQuery)
    reason = why_not(build(query.query))
    assert reason is not None
    assert str(reason) == "percentile with 's.v' cannot be run: this argument must be a constant"
    assert reason.hint is not None
    assert reason.span is not None
    assert text[reason.span[0] : reason.span[1] + 1] == "percentile(v, v)"
