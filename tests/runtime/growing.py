"""Streams that do not end: files that come one after the other."""

from collections.abc import Callable
from pathlib import Path

from millstream.runtime.connection import Mill
from millstream.runtime.queries.running_query import RunningQuery


class Growing:
    """A stream Bid over a directory that is followed."""

    def __init__(self, mill: Mill, directory: Path) -> None:
        self.mill = mill
        self._directory = directory
        self._directory.mkdir(exist_ok=True)
        self._files = len(list(directory.iterdir()))
        mill.execute(f"""
            CREATE STREAM Bid (item INT, price INT, t INT) ORDER BY t
            USING csv OPTIONS (path '{directory}', follow 'true')
        """)

    def write(self, *rows: str) -> None:
        self._files += 1
        appear(self._directory / f"{self._files}.csv", *rows)


def appear(path: Path, *rows: str) -> None:
    """Replace a file atomically."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text("\n".join(rows) + "\n")
    unfinished.rename(path)


def until(holds: Callable[[], bool], query: RunningQuery) -> None:
    """Wait until something holds that the query has to do with."""
    for _ in range(600):
        if holds():
            return
        query.wait(0.1)
    raise AssertionError(f"{query} did not come to that")
