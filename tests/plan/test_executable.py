"""What this version cannot run is refused, and not begun."""

import pytest

from millstream.analysis.statements import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.plan.builder import build
from millstream.plan.executable import why_not
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
