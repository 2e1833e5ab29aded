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

    # Tests are short: code compiled quickly is worth more to them than code compiled well.
    session = embedded_session(settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    yield session
    session.stop()
