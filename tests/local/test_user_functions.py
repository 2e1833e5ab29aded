"""User-defined functions on the local engine: in SQL, in Python, and of one another."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from millstream.errors import ExecutionError
from millstream.testing import LocalEngine, Streams, table

FUNCTIONS = """
CREATE FUNCTION with_tax(x DOUBLE) : DECIMAL(10, 2) AS x * 1.25;
CREATE FUNCTION twice_taxed(y DOUBLE) : DOUBLE AS with_tax(y) + with_tax(y);
CREATE FUNCTION root(x DOUBLE) : DOUBLE LANGUAGE PYTHON AS 'math:sqrt';
CREATE FUNCTION hour_of(t TIMESTAMP, add INT) : INT
  LANGUAGE PYTHON AS 'tests.local.test_user_functions:hour_of';
"""


def hour_of(t: datetime | None, add: int) -> int | None:
    assert t is None or t.tzinfo is None, "as Spark gives times to Python"
    return None if t is None else t.hour + add


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    streams = Streams(LocalEngine(), tmp_path)
    streams.add(
        "CREATE STREAM s (a INT, b STRING, at TIMESTAMP, n INT) ORDER BY n",
        """
        a | b  | at                  | n
        3 | 16 | 2026-01-01 10:00:00 | 1
          | 25 |                     | 2
        """,
    )
    streams.engine.execute(FUNCTIONS)
    return streams


def test_functions_in_sql_convert_arguments_and_results(streams: Streams) -> None:
    assert streams.run("SELECT with_tax(a) AS p, twice_taxed(a + 0.001) AS q FROM s") == table("""
        p    | q
        3.75 | 7.5
             |
    """)


def test_functions_in_python_get_arguments_of_the_declared_types(streams: Streams) -> None:
    query = "SELECT root(b) AS r, hour_of(at, '2') AS h, sum(root(b)) OVER (ROWS 1 PRECEDING) AS s FROM s"
    assert streams.run(query) == table("""
        r   | h  | s
        4.0 | 12 | 4.0
        5.0 |    | 9.0
    """)


def test_an_exception_of_a_function_names_its_arguments(streams: Streams) -> None:
    with pytest.raises(ExecutionError) as raised:
        streams.run("SELECT root(-n) AS r FROM s")
    assert raised.value.message.startswith("Python code failed with ValueError: ")
    assert raised.value.hint == "raised by root(-1.0)"
