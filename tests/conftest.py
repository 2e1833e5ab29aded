"""What all tests share: one Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """An embedded Spark, started for the first test that asks for it. Mark such tests with `spark`."""
    from millstream.spark.session import embedded_session

    session = embedded_session()
    yield session
    session.stop()
