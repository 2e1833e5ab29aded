"""Queries of a script begin a few at a time."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from millstream.runtime.queries.start_throttle import StartThrottle


@dataclass
class Query:
    isActive: bool = True  # noqa: N815 (Spark's name)
    lastProgress: dict[str, Any] | None = None  # noqa: N815
    status: dict[str, str] = field(default_factory=lambda: {"message": "Initializing sources"})


@dataclass
class Writer:
    query: Query

    def start(self) -> Query:
        return self.query


def starts_soon(throttle: StartThrottle, query: Query) -> threading.Thread:
    thread = threading.Thread(target=throttle.start, args=(Writer(query),), daemon=True)
    thread.start()
    thread.join(0.3)
    return thread


def test_a_third_query_waits_until_one_of_two_has_begun() -> None:
    beginnings = StartThrottle(at_once=2)
    first, second = Query(), Query()
    beginnings.start(Writer(first))  # type: ignore[arg-type]
    beginnings.start(Writer(second))  # type: ignore[arg-type]
    third = starts_soon(beginnings, Query())
    assert third.is_alive()
    second.lastProgress = {"batchId": 0}
    third.join(5)
    assert not third.is_alive()


def test_nobody_waits_for_queries_that_have_ended_or_have_nothing_to_do_or_take_too_long() -> None:
    now = [0.0]
    beginnings = StartThrottle(at_once=1, clock=lambda: now[0])
    beginnings.start(Writer(Query(isActive=False)))  # type: ignore[arg-type]
    beginnings.start(Writer(Query(status={"message": "Waiting for data to arrive"})))  # type: ignore[arg-type]
    beginnings.start(Writer(Query()))  # type: ignore[arg-type]
    fourth = starts_soon(beginnings, Query())
    assert fourth.is_alive()
    now[0] = 21.0
    fourth.join(5)
    assert not fourth.is_alive()
