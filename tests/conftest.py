"""What all tests share: one Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """An embedded Spark, started for the first test that asks for it. Mark such tests with `spark`."""
    from millstream.spark.session import embedded_session

    # Tests are short: code compiled quickly is worth more to them than code compiled well.
    session = embedded_session(settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """When tests run side by side (`pytest -n`): those with the one Spark in one process, and in another one
    those that start Sparks of their own."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("session"))
        elif item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("processes"))
