"""Helpers for tests of queries: streams and results as small tables.

    streams = Streams(LocalEngine(), tmp_path)
    streams.add("CREATE STREAM Bid (itemID INT, price DOUBLE, t TIMESTAMP) ORDER BY t", '''
        itemID | price | t
        1      | 10.0  | 2026-01-01 10:00:00
        2      |       | 2026-01-01 10:00:01
    ''')
    assert streams.run("SELECT itemID FROM Bid WHERE price > 5") == table('''
        itemID
        1
    ''')

An empty cell is NULL; ``''`` is an empty text. The local engine runs a query in milliseconds, without Spark.
A connection (``millstream.connect()``) in its place runs it on Spark, with the same results.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa

from millstream.runtime.connection import Mill
from millstream.runtime.local_engine import LocalEngine, LocalQuery
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.results.output_formats import encode

__all__ = ["LocalEngine", "Streams", "table"]

EMPTY_TEXT = "''"
Rows = list[tuple[str, ...]]


def table(text: str) -> Rows:
    """Parse a small table into rows of texts, the header first.

    >>> table('''
    ...     item | price
    ...     1    | 9.5
    ...     2    |
    ... ''')
    [('item', 'price'), ('1', '9.5'), ('2', '')]
    """
    lines = [line.strip() for line in text.strip().splitlines()]
    return [tuple(cell.strip() for cell in line.split("|")) for line in lines if line]


class Streams:
    """Streams made of small tables, and the results of queries over them."""

    def __init__(self, engine: Mill | LocalEngine, directory: Path) -> None:
        self.engine = engine
        self._directory = directory
        self._files = 0

    def add(self, definition: str, *files: str, clauses: str = "") -> None:
        """Create a stream or table over files with these rows; later files arrive later."""
        self._files += 1
        directory = self._directory / f"source{self._files}"
        directory.mkdir()
        for number, text in enumerate(files):
            _write(directory / f"part{number}.csv", table(text))
        options = f"(path '{directory}', header 'true')"
        self.engine.execute(f"{definition} USING csv OPTIONS {options} {clauses}")

    def run(self, query: str) -> Rows:
        """Run a query to the end of its input; return the header and the rows, in order, as texts."""
        if isinstance(self.engine, Mill):
            return _texts(self.engine.start(query).collect())
        return self.run_all(query)[0]

    def run_all(self, script: str) -> list[Rows]:
        """Run all queries of a script together, and return the header and the rows of each."""
        outcomes = self.engine.execute(script)
        queries = [one for one in outcomes if isinstance(one, RunningQuery | LocalQuery)]
        return [_texts(one.collect() if isinstance(one, RunningQuery) else one.rows) for one in queries]


def _texts(result: pa.Table) -> Rows:
    lines = b"".join(encode([result], result.schema, "csv")).decode().splitlines()
    return [tuple(row) for row in csv.reader(lines)]


def _write(path: Path, rows: Rows) -> None:
    with path.open("w", newline="") as file:
        for row in rows:
            file.write(",".join(_cell(cell) for cell in row) + "\n")


def _cell(cell: str) -> str:
    if cell == EMPTY_TEXT:
        return '""'
    return '"' + cell.replace('"', '""') + '"' if any(c in cell for c in ',"\n') else cell
