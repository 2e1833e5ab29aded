"""Queries ask Spark only for the tables that they read: a broken one harms no other query."""

from typing import Any

import pytest

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.catalog.entries import Table
from millstream.errors import ExecutionError
from millstream.plan.builder import build
from millstream.plan.optimize import optimize
from millstream.runtime import session_registry
from millstream.runtime.own_tables import OwnTables
from millstream.runtime.session_registry import SessionRegistry
from millstream.runtime.table_refresh import VersionedRelations
from millstream.runtime.view_registry import ViewRegistry
from millstream.syntax import parse_script

SCRIPT = """
CREATE STREAM s (a INT, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 's.csv');
CREATE TABLE good (a INT) USING csv OPTIONS (path 'good.csv');
CREATE TABLE other (a INT) USING csv OPTIONS (path 'other.csv');
CREATE TABLE broken (a INT) USING csv OPTIONS (path 'broken.csv');
CREATE TABLE above AS SELECT a FROM good WHERE a NOT IN (SELECT a FROM other);
CREATE TABLE worse AS SELECT a + 1 AS a FROM broken;
"""


class Tables:
    """Reads tables; one of them cannot be read."""

    def __init__(self) -> None:
        self.entered: list[str] = []

    def table(self, table: Table) -> Any:
        if table.name == "broken":
            raise ExecutionError("there is no file broken.csv")
        return self

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 (Spark's name)
        self.entered.append(name)


def entered(query: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are made known to Spark for a query."""
    catalog = Catalog()
    *_, last = [analyse(statement, catalog) for statement in parse_script(SCRIPT + query)]
    assert isinstance(last.meaning, RunQuery)
    tables = Tables()
    entrance = SessionRegistry(
        lambda: catalog,
        {},
        lambda port: Any,
        ViewRegistry(catalog.relation),
        VersionedRelations(),
        OwnTables(),
    )  # type: ignore[arg-type,return-value]
    monkeypatch.setattr(entrance, "_for_tables", lambda spark: tables)
    entrance._enter_tables(None, session_registry._mentioned(optimize(build(last.meaning.query))))  # type: ignore[arg-type]
    return tables.entered


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("SELECT a FROM s WHERE a > 1", []),
        ("SELECT s.a FROM s JOIN good ON s.a = good.a", ["good"]),
        ("SELECT a FROM s WHERE a IN (SELECT a FROM other)", ["other"]),
        ("SELECT a, sum((SELECT max(a) FROM good) + a) OVER (ROWS 2 PRECEDING) FROM s", ["good"]),
        ("SELECT X.a FROM s AS (X, Y) WHERE Y.a > (SELECT max(a) FROM good)", ["good"]),
        ("SELECT a FROM above", ["good", "other", "above"]),
        ("WITH w AS (SELECT a FROM good) SELECT * FROM w, other", ["good", "other"]),
        ("FROM good |> WHERE a > 1", ["good"]),
    ],
)
def test_tables_of_a_query(query: str, tables: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert entered(query, monkeypatch) == tables


@pytest.mark.parametrize("query", ["SELECT a FROM broken", "SELECT a FROM worse"])
def test_who_reads_the_broken_table_hears_of_it(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExecutionError, match=r"there is no file broken\.csv"):
        entered(query, monkeypatch)
