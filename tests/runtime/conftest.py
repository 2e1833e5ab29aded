from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.runtime.connection import Mill
from millstream.testing import LocalEngine, Rows, Streams


@pytest.fixture
def local(tmp_path: Path) -> Streams:
    """Streams of the local engine, for tests that only look at rows: Spark takes seconds for a query."""
    return Streams(LocalEngine(batches=2, shards=2), tmp_path)


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Streams]:
    """Streams on Spark."""
    with ms.connect(spark) as mill:
        yield Streams(mill, tmp_path)


class Together(Streams):
    """Queries of a test file that are run as one script: each by itself would take seconds."""

    def __init__(self, mill: Mill, directory: Path) -> None:
        super().__init__(mill, directory)
        self._results: dict[str, Rows] = {}

    def ask(self, queries: Iterable[str]) -> None:
        asked = [query.strip() for query in queries]
        self._results |= zip(asked, self.run_all(";\n".join(asked)), strict=True)

    def answer(self, query: str) -> Rows:
        found = self._results.get(query.strip())
        return self.run(query) if found is None else found


@pytest.fixture(scope="module")
def together(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    with ms.connect(spark) as mill:
        yield Together(mill, tmp_path_factory.mktemp("together"))
