"""Helpers for tests of queries: streams and results as little tables.

    streams = Streams(mill, tmp_path)
    streams.add("CREATE STREAM Bid (itemID INT, price DOUBLE, t TIMESTAMP) ORDER BY t", '''
        itemID | price | t
        1      | 10.0  | 2026-01-01 10:00:00
        2      |       | 2026-01-01 10:00:01
    ''')
    assert streams.run("SELECT itemID FROM Bid WHERE price > 5") == table('''
        itemID
        1
    ''')

An empty cell is NULL; ``''`` is an empty text.
"""

from __future__ import annotations

import csv
from pathlib import Path

from millstream.runtime.connection import Mill
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.results.output_formats import encode

EMPTY_TEXT = "''"
Rows = list[tuple[str, ...]]


def table(text: str) -> Rows:
    """A little table as rows of texts, the header first.

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
    """Streams made of little tables, and the results of queries over them."""

    def __init__(self, mill: Mill, directory: Path) -> None:
        self.mill = mill
        self._directory = directory
        self._files = 0

    def add(self, definition: str, *files: str, clauses: str = "") -> None:
        """CREATE STREAM or TABLE over files with these rows; a further file is one that arrived later."""
        self._files += 1
        directory = self._directory / f"source{self._files}"
        directory.mkdir()
        for number, text in enumerate(files):
            _write(directory / f"part{number}.csv", table(text))
        options = f"(path '{directory}', header 'true')"
        self.mill.execute(f"{definition} USING csv OPTIONS {options} {clauses}")

    def run(self, query: str) -> Rows:
        """Run a query to the end of its input: the header and the rows, in order, as texts."""
        return _texts(self.mill.start(query))

    def run_all(self, script: str) -> list[Rows]:
        """The same for all queries of a script, which are started together."""
        return [_texts(query) for query in self.mill.execute(script)]


def _texts(query: RunningQuery) -> Rows:
    result = query.collect()
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
