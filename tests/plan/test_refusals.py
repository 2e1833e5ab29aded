"""What this version cannot run is refused, and not begun."""

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
    return why_not(build(query.query))


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
        (
            "SELECT RSTREAM k FROM s [LANDMARK START AT 1 END AT 7 SLIDE 2]",
            "RSTREAM of rows that never leave",
        ),
        (
            "SELECT RSTREAM s.k FROM s [LANDMARK START AT 1 END AT 7 SLIDE 2] JOIN s [NOW] AS n ON s.k = n.k",
            "RSTREAM of rows that never leave",
        ),
        ("SELECT RSTREAM s.k FROM s [RANGE 4 SLIDE 2] JOIN s [NOW] AS n ON s.k = n.k", None),
        (
            "SELECT DISTINCT s.k FROM s [RANGE 4] LEFT SEMI JOIN names AS n ON s.k = n.k",
            "a SEMI join of a table with what is maintained",
        ),
        ("SELECT DISTINCT s.k FROM s [RANGE 4] LEFT ANTI JOIN names AS n ON s.k = n.k", None),
    ],
)
def test_what_is_maintained(query, reason):
    stream = "CREATE STREAM s (k INT, t INT) ORDER BY t USING csv OPTIONS (path 'x.csv');"
    table = "CREATE TABLE names (k INT, name STRING) USING csv OPTIONS (path 'n.csv');"
    assert refusal(f"{stream} {table} {query};") == reason


@pytest.mark.parametrize("join", ["", " JOIN s [RANGE 4] AS o ON s.k = o.k"])
@pytest.mark.parametrize(
    ("window", "why"),
    [
        ("[LANDMARK START AT '09:00:00']", "whose bound is a time of day"),
        ("[RANGE 4 SECONDS WATTR u]", "which is not measured by the timestamp"),
    ],
)
def test_windows_are_refused_in_the_same_words_alone_and_in_joins(join, window, why):
    columns = "k INT, t TIMESTAMP, u TIMESTAMP"
    stream = f"CREATE STREAM s ({columns}) ORDER BY t USING csv OPTIONS (path 'x.csv');"
    join = join.replace("RANGE 4", "RANGE 4 SECONDS")
    said = refusal(f"{stream} SELECT ISTREAM s.k FROM s {window}{join};")
    assert said is not None
    assert said.startswith("what is maintained of the window")
    assert why in said
