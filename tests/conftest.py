"""One Spark for all tests of a process, profiles of Hypothesis, and the choice and order of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import is_hypothesis_test, settings

from millstream.syntax import parse_script
from tests.scheduling import Recorder, longest_first, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Of the examples that a test asks for, so many are drawn: in `make check`, in `make test`, in `make soak`.
EXAMPLES = {"quick": 0.25, "ci": 1, "nightly": 10}
for profile in EXAMPLES:
    settings.register_profile(profile, max_examples=100, deadline=None)
# Hours of fuzzing: pytest tests/syntax --hypothesis-profile=soak --timeout=0
settings.register_profile("soak", max_examples=50_000, deadline=None)
settings.load_profile("ci")

# The parser raises Python's recursion limit once; in the middle of a Hypothesis test that would be a warning.
parse_script("")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """An embedded Spark, started for the first test that takes it."""
    from millstream.spark.session.session import embedded_session

    # Tests are short: code compiled quickly is worth more to them than code compiled well.
    session = embedded_session(settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    yield session
    session.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help="renew tests/durations.json")


def pytest_configure(config: pytest.Config) -> None:
    # Workers report to this process.
    if not hasattr(config, "workerinput") and config.getoption("--record-durations"):
        config.pluginmanager.register(Recorder())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for `make soak`; side by side, begin with the files that take longest.

    A test that takes the fixture `spark`, directly or through others, has the mark of that name.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    if "soak" not in (config.option.markexpr or ""):
        left_out = [item for item in items if item.get_closest_marker("soak") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items, recorded())
    factor = EXAMPLES.get(config.getoption("--hypothesis-profile") or "ci", 1)
    if factor != 1:
        draw_more_or_fewer(items, factor)


def draw_more_or_fewer(items: list[pytest.Item], factor: float) -> None:
    """Multiply the examples of all tests; each function once, however many parameters it has."""
    subjects = [item.obj for item in items if isinstance(item, pytest.Function)]
    asked = {getattr(test, "__func__", test) for test in subjects if is_hypothesis_test(test)}
    for function in asked:
        before = function._hypothesis_internal_use_settings
        examples = max(1, round(before.max_examples * factor))
        function._hypothesis_internal_use_settings = settings(before, max_examples=examples)
