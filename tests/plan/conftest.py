from collections.abc import Callable

import pytest

from millstream.analysis.definitions.statement_analyzer import ExplainQuery, RunQuery, analyse
from millstream.catalog import Catalog
from millstream.plan.builder import build
from millstream.plan.nodes import Node
from millstream.syntax import parse_script

PRELUDE = """
    CREATE STREAM s (a INT, b DOUBLE, c STRING, t TIMESTAMP) ORDER BY t USING kafka;
    CREATE STREAM r (a INT, d DOUBLE, u TIMESTAMP) ORDER BY u USING kafka;
    CREATE STREAM n (a INT, i SMALLINT) ORDER BY i USING kafka;
    CREATE STREAM m (a INT, i INT) ORDER BY i USING kafka SLACK 10 ON a;
    CREATE TABLE k (a INT, name STRING) USING csv OPTIONS (path 'k.csv');
    CREATE STREAM doubled AS SELECT a, b * 2 AS bb, t FROM s WHERE a > 0;
"""


@pytest.fixture
def plan() -> Callable[[str], Node]:
    """The plan of a query as it was written."""
    catalog = Catalog()
    for statement in parse_script(PRELUDE):
        analyse(statement, catalog)

    def planned(query: str) -> Node:
        (statement,) = parse_script(query)
        meaning = analyse(statement, catalog).meaning
        assert isinstance(meaning, RunQuery | ExplainQuery)
        return build(meaning.query)

    return planned
