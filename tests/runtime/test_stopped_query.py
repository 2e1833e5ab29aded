"""A query that is stopped in the middle of a micro-batch has ended, not failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from millstream.errors import ExecutionError, MillstreamError
from millstream.runtime.queries.query_progress import ProgressCounter
from millstream.runtime.queries.running_query import RunningQuery

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.runtime.queries.heartbeats import HeartbeatSender


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


def started(streaming: Streaming) -> RunningQuery:
    query = RunningQuery("q", None, lambda error: ExecutionError(str(error)), ProgressCounter({}))
    query.watch(
        cast("StreamingQuery", streaming),
        cast("HeartbeatSender", SimpleNamespace(failure=None)),
        bounded=False,
        stop=streaming.stop,
    )
    return query


def test_an_interrupted_micro_batch_of_a_stopped_query_is_no_error() -> None:
    query = started(Streaming())
    query.stop()
    assert (query.state, query.error) == ("ended", None)
    assert query.wait()


def test_an_interrupted_micro_batch_of_any_other_query_is_its_error() -> None:
    streaming = Streaming()
    query = started(streaming)
    streaming.stop()
    with pytest.raises(MillstreamError, match="the micro-batch was interrupted"):
        query.wait()
    assert query.state == "failed"
