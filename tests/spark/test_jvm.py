"""The death of the JVM is recognized by whatever exception its callers get."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from millstream.runtime.queries.start_throttle import _has_begun
from millstream.spark.errors.error_chain import translate
from millstream.spark.session import jvm


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    process.wait()
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o367.isActive"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_one_message_for_all(error: Exception) -> None:
    found = translate(error)
    assert found.message == "Spark's JVM has ended unexpectedly"
    assert found.hint is not None
    assert found.hint.startswith("if memory ran out")


@pytest.mark.usefixtures("dead")
def test_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_active_spark_context", "_jvm"):
        monkeypatch.setattr(SparkContext, name, None)
    assert jvm.has_died()
    jvm.forget()
    assert SparkContext._gateway is None
    assert not jvm.has_died()


def test_a_query_of_a_dead_jvm_keeps_no_other_waiting() -> None:
    class Lost:
        @property
        def isActive(self) -> bool:  # noqa: N802 (Spark's name)
            raise ConnectionRefusedError

    assert _has_begun(Lost())  # type: ignore[arg-type]
