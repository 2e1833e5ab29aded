"""One Spark for all tests of a process, profiles of Hypothesis, and the choice and order of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests.scheduling import Recorder, longest_first, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Numbers of examples, for tests that name none: while working, in `make test`, in `make soak`, and for hours of fuzzing.
settings.register_profile("quick", max_examples=20, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None)
settings.register_profile("nightly", max_examples=1_000, deadline=None)
settings.register_profile("soak", max_examples=50_000, deadline=None)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """An embedded Spark, started for the first test that asks for it. Mark such tests with `spark`."""
    from millstream.spark.session import embedded_session

    # Tests are short: code compiled quickly is worth more to them than code compiled well.
    session = embedded_session(settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    yield session
    session.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help="renew tests/durations.json")


def pytest_configure(config: pytest.Config) -> None:
    # Workers report to the process that started them.
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for `make soak`, and begin with the files that take longest if two run side by side."""
    if "soak" not in (config.option.markexpr or ""):
        left_out = [item for item in items if item.get_closest_marker("soak") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items, recorded())
