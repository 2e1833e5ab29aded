"""The library needs no declaration, and user-defined aggregates replace it."""

from __future__ import annotations

import re

import pytest

from millstream.analysis.definitions.statement_analyzer import DescribeOne, RunQuery, analyse
from millstream.catalog import Catalog
from millstream.catalog.functions import builtin
from millstream.errors import AnalysisError
from millstream.library import bundled_aggregates
from millstream.plan.builder import build
from millstream.plan.optimize import optimize
from millstream.plan.refusals import Refusal, why_not
from millstream.syntax import parse_script

DECLARED = """\
Bid (itemID INT, price DOUBLE, bidderID STRING, bid_time TIMESTAMP) ORDER BY bid_time
Requests (status INT, at TIMESTAMP) ORDER BY at
Speeds (stationId INT, speed DOUBLE, speedTime TIMESTAMP) ORDER BY speedTime
Weather (humidity DOUBLE, temperature DOUBLE, at TIMESTAMP) ORDER BY at
Sessions (SessNo INT, PageType STRING, at TIMESTAMP) ORDER BY at
Arrivals (name STRING, at TIMESTAMP) ORDER BY at
Clicks (userID STRING, page STRING, ClickTime TIMESTAMP) ORDER BY ClickTime
Readings (tagID STRING, sensor INT, label STRING, x DOUBLE, y DOUBLE, read_time TIMESTAMP) ORDER BY read_time
Door (tagID STRING, kind STRING, read_time TIMESTAMP) ORDER BY read_time
Mails (mail STRING, label STRING, sender STRING, language STRING, has_link STRING, at TIMESTAMP) ORDER BY at
Chunks (chunk STRING, n INT) ORDER BY n
Lines (line STRING, n INT) ORDER BY n
"""
STREAMS = "".join(
    f"CREATE STREAM {line} USING csv OPTIONS (path 'p');" for line in DECLARED.strip().splitlines()
)


def refusals(script: str, catalog: Catalog) -> list[Refusal | None]:
    meanings = [analyse(statement, catalog).meaning for statement in parse_script(script)]
    return [why_not(optimize(build(m.query))) for m in meanings if isinstance(m, RunQuery)]


def catalog_of(script: str) -> Catalog:
    catalog = Catalog()
    for statement in parse_script(script):
        analyse(statement, catalog)
    return catalog


@pytest.mark.parametrize("name", bundled_aggregates.names())
def test_what_the_comment_shows_can_be_run(name: str) -> None:
    shown = "\n".join(re.findall(r"^--     (.*)$", bundled_aggregates.text(name), re.MULTILINE))
    found = refusals(shown, catalog_of(STREAMS))
    assert f"{name}(" in shown
    assert found
    assert not any(found)


@pytest.mark.parametrize("name", bundled_aggregates.names())
def test_no_name_is_taken_from_spark(name: str) -> None:
    assert builtin(name) is None


@pytest.mark.parametrize("name", bundled_aggregates.names())
def test_the_first_line_is_a_sentence_and_the_costs_are_told(name: str) -> None:
    assert bundled_aggregates.summary(name).endswith(".")
    assert "\n-- Cost: " in bundled_aggregates.text(name) or " Cost: " in bundled_aggregates.text(name)


OWN = """
    CREATE AGGREGATE top_k(x DOUBLE) : DOUBLE {
        INITIALIZE : { INSERT INTO RETURN VALUES (x); }
        ITERATE    : { INSERT INTO RETURN VALUES (x); }
    };
"""


def test_an_aggregate_of_the_users_takes_the_place_of_both_versions() -> None:
    catalog = catalog_of(STREAMS + OWN)
    found = catalog.aggregate("top_k")
    assert found is not None
    assert len(found.parameters) == 1
    assert catalog.aggregate("top_k", window=True) is None
    assert refusals("SELECT top_k(price) FROM Bid;", catalog) == [None]


def test_when_it_is_dropped_the_library_is_back() -> None:
    catalog = catalog_of(OWN + "DROP AGGREGATE top_k;")
    found = catalog.aggregate("top_k")
    assert found is not None
    assert len(found.parameters) == 3


def test_a_function_of_the_users_takes_its_place_too() -> None:
    catalog = catalog_of(STREAMS + "CREATE FUNCTION top_k(x DOUBLE) : DOUBLE AS x * 2;")
    assert not catalog.has_aggregate("top_k")
    assert refusals("SELECT top_k(price) FROM Bid;", catalog) == [None]


def test_the_library_cannot_be_dropped() -> None:
    with pytest.raises(AnalysisError, match="'top_k' is in the library and cannot be dropped"):
        catalog_of("DROP AGGREGATE top_k;")


def test_names_of_the_library_are_known_to_hints_and_to_describe() -> None:
    with pytest.raises(AnalysisError) as wrong:
        catalog_of(STREAMS + "SELECT tok_k(price) FROM Bid;")
    assert wrong.value.hint == "did you mean 'top_k'?"
    [statement] = parse_script("DESCRIBE Unique_Count")
    meaning = analyse(statement, Catalog()).meaning
    assert isinstance(meaning, DescribeOne)
    assert [entry.name for entry in meaning.entries] == ["unique_count", "unique_count"]
