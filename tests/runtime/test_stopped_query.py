"""A query stopped in the middle of a micro-batch has ended, not failed; others over its scan go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

from millstream.errors import ExecutionError, MillstreamError
from millstream.runtime.queries.query_progress import ProgressCounter
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.queries.spark_query import Member, SparkQuery


class Streaming:
    """A query of Spark whose micro-batch is interrupted by ``stop``."""

    def __init__(self) -> None:
        self.lastProgress = None
        self.recentProgress: tuple[Any, ...] = ()
        self.isActive = True

    def stop(self) -> bool:
        self.isActive = False
        return True

    def __getattr__(self, name: str) -> Any:
        assert name == "awaitTermination"
        raise RuntimeError("the micro-batch was interrupted")


def started(
    streaming: Streaming, *names: str, on_end: Callable[[], None] = lambda: None
) -> list[RunningQuery]:
    """Start queries that share one query of Spark."""
    queries = [RunningQuery(n, None, lambda e: ExecutionError(str(e)), ProgressCounter({})) for n in names]
    members = [Member(query, lambda batch: batch) for query in queries]
    writer = MagicMock()
    writer.start.return_value = streaming
    for method in ("option", "outputMode", "trigger"):
        getattr(writer, method).return_value = writer
    SparkQuery(MagicMock(), members, "", None, bounded=False, on_end=on_end).start(lambda frame: writer)
    return queries


def test_an_interrupted_micro_batch_of_a_stopped_query_is_no_error() -> None:
    (query,) = started(Streaming(), "q")
    query.stop()
    assert (query.state, query.error) == ("ended", None)
    assert query.wait()


def test_an_interrupted_micro_batch_of_any_other_query_is_its_error() -> None:
    streaming = Streaming()
    (query,) = started(streaming, "q")
    streaming.stop()
    with pytest.raises(MillstreamError, match="the micro-batch was interrupted"):
        query.wait()
    assert query.state == "failed"


def test_the_last_of_several_queries_ends_the_query_of_spark() -> None:
    streaming, ended = Streaming(), []
    first, second, third = started(streaming, "a", "b", "c", on_end=lambda: ended.append("end"))
    for query in (third, first):
        query.stop()
        assert (query.state, streaming.isActive, ended) == ("ended", True, [])
    second.stop()
    assert (second.state, streaming.isActive, ended) == ("ended", False, ["end"])


def test_an_error_of_the_query_of_spark_ends_all_and_is_cleaned_up_once() -> None:
    streaming, ended = Streaming(), []
    queries = started(streaming, "a", "b", on_end=lambda: ended.append("end"))
    streaming.stop()
    for query in queries:
        with pytest.raises(MillstreamError, match="the micro-batch was interrupted"):
            query.wait()
    assert ended == ["end"]
