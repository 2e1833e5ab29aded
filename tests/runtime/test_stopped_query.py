"""A query that is stopped in the middle of a micro-batch: Spark interrupts the batch, the query has not failed."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.errors import ExecutionError, MillstreamError
from millstream.runtime.queries.query_progress import ProgressCounter
from millstream.runtime.queries.running_query import RunningQuery


class Streaming:
    """A query of Spark whose micro-batch is interrupted by ``stop``."""

    lastProgress = None
    recentProgress: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self._stopped = threading.Event()

    @property
    def isActive(self) -> bool:  # noqa: N802 (PySpark's name)
        return not self._stopped.is_set()

    def stop(self) -> bool:
        self._stopped.set()
        return True

    def awaitTermination(self) -> None:  # noqa: N802 (PySpark's name)
        raise RuntimeError("the micro-batch was interrupted")


def started(streaming: Streaming) -> RunningQuery:
    query = RunningQuery("q", None, lambda error: ExecutionError(str(error)), ProgressCounter({}))
    query.watch(streaming, SimpleNamespace(failure=None), bounded=False, stop=streaming.stop)  # type: ignore[arg-type]
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
