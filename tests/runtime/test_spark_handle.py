"""The Spark session of a connection, with sessions that only record their calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from millstream.errors import ExecutionError
from millstream.runtime import spark_handle
from millstream.runtime.spark_handle import SparkHandle
from millstream.spark.session import session as sessions


class Session:
    """A session on a cluster, which is not checked, with one table and one stream."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(master="spark://host:7077")
        self.settings: dict[str, str] = {}
        self.conf = SimpleNamespace(set=self.settings.__setitem__)
        self.frames = {"t": SimpleNamespace(isStreaming=False), "s": SimpleNamespace(isStreaming=True)}
        self.catalog = SimpleNamespace(tableExists=self.frames.__contains__)

    def table(self, name: str) -> Any:
        return self.frames[name]


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """Replace the embedded session; return its starts and stops."""
    calls: list[tuple[str, object]] = []

    def start(master: str | None, settings: dict[str, str]) -> Session:
        calls.append(("start", dict(settings)))
        return Session()

    monkeypatch.setattr(sessions, "embedded_session", start)
    monkeypatch.setattr(sessions, "stop_session", lambda session: calls.append(("stop", None)))
    monkeypatch.setattr(spark_handle, "_users_of_embedded_spark", set())
    return calls


def test_settings_before_the_start_are_those_of_the_start(embedded: list[tuple[str, object]]) -> None:
    handle = SparkHandle(None, None)
    handle.configure("spark.a", "1")
    assert embedded == []
    assert handle.session is handle.session
    assert embedded == [("start", {"spark.a": "1"})]


def test_the_last_user_stops_the_embedded_session(embedded: list[tuple[str, object]]) -> None:
    one, other = SparkHandle(None, None), SparkHandle(None, None)
    assert one.session is not None
    assert other.session is not None
    one.stop()
    assert embedded[-1][0] == "start"
    other.stop()
    assert embedded[-1] == ("stop", None)


def test_a_session_of_the_caller_is_configured_and_never_stopped(embedded: list[tuple[str, object]]) -> None:
    session: Any = Session()
    handle = SparkHandle(session, None)
    handle.configure("spark.a", "1")
    assert session.settings == {"spark.a": "1"}
    handle.stop()
    assert handle.session is session
    assert embedded == []


def test_tables_are_looked_up_in_a_session_that_has_started(embedded: list[tuple[str, object]]) -> None:
    session: Any = Session()
    handle = SparkHandle(session, None)
    assert handle.table("t") is session.frames["t"]
    assert handle.table("s") is None
    assert handle.table("missing") is None
    assert SparkHandle(None, None).table("t") is None
    assert embedded == []


def test_a_closed_handle_has_no_session() -> None:
    handle = SparkHandle(None, None)
    handle.close()
    with pytest.raises(ExecutionError, match="this connection is closed"):
        assert handle.session is not None
