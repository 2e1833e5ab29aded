"""Progress of a query, added up from the reports of Spark and the shards."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from millstream.errors import MillstreamError
from millstream.runtime.queries.query_progress import ProgressCounter
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.results.result_log import ResultLog
from millstream.spark.sources import stream_sources


class Stage:
    """Stands for the reports of a stage, as many as a test puts there."""

    def __init__(self) -> None:
        self.waiting: list[dict[str, Any]] = []

    def put(
        self, shard: str, version: int, *, seen: int = 0, bad: int = 0, late: int = 0, at: int = 0
    ) -> None:
        self.waiting.append(
            {
                "shard": shard,
                "version": version,
                "seen": [seen],
                "bad": [bad],
                "late": [late],
                "newest": [str(at)],
                "frontier": [at, 0],
                "state_rows": 10 * version,
                "state_bytes": 100 * version,
                "pack_ms": 1.0,
                "kernel_ms": 2.0 if shard == "0" else 3.0,
                "state_ms": 4.0,
                "done": False,
            }
        )

    def take(self) -> Iterator[dict[str, Any]]:
        taken, self.waiting = self.waiting, []
        yield from taken


def batch(number: int, **observed: Any) -> Any:
    """A query of Spark's that has just ended this batch."""
    metrics = {name: SimpleNamespace(asDict=lambda row=row: row) for name, row in observed.items()}
    progress = SimpleNamespace(
        batchId=number,
        observedMetrics=metrics,
        durationMs={"addBatch": 5, "triggerExecution": 100},
    )
    return SimpleNamespace(lastProgress=progress, recentProgress=[progress])


def test_the_shards_of_a_stage_are_added_up() -> None:
    stage = Stage()
    counter = ProgressCounter({}, [(stage, ("s",))])  # type: ignore[list-item]
    stage.put("0", 1, seen=7, bad=1, late=1, at=5)
    stage.put("1", 1, late=2, at=4)
    stage.waiting[1]["newest"] = ["5"]
    counter.update(batch(0))
    progress = counter.progress
    assert (progress.rows, progress.bad, progress.late) == ({"s": 7}, {"s": 1}, {"s": 3})
    assert (progress.rows_in, progress.frontier, progress.newest) == (7, 4, "5")
    assert (progress.state_rows, progress.state_bytes) == (20, 200)
    assert progress.timings == {"pack": 0.001, "kernel": 0.003, "state": 0.004, "spark": 0.092}


def test_a_task_that_was_run_again_counts_once() -> None:
    stage = Stage()
    counter = ProgressCounter({}, [(stage, ("s",))])  # type: ignore[list-item]
    stage.put("0", 1, seen=7, late=1)
    stage.put("0", 1, seen=7, late=1)
    stage.put("0", 2, seen=3, late=1)
    counter.update(batch(0))
    assert counter.progress.rows == {"s": 10}
    assert counter.progress.late == {"s": 2}


def test_two_who_read_the_same_stream_count_the_same_rows() -> None:
    first, second = Stage(), Stage()
    stages = [(first, ("s",)), (second, ("s",))]
    counter = ProgressCounter({"metric": "s"}, stages)  # type: ignore[arg-type]
    first.put("0", 1, seen=7, late=1)
    second.put("0", 1, seen=7, late=1)
    counter.update(batch(0, metric={"rows": 7, "bad": 0, "newest": None}))
    assert counter.progress.rows == {"s": 7}
    assert counter.progress.late == {"s": 1}
    assert counter.progress.bad == {}


def test_rows_of_a_batch_are_counted_when_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are visible during their batch, and input counts after its end."""
    monkeypatch.setattr(stream_sources, "numbered", lambda frame: frame)
    counter = ProgressCounter({"bad_s": "s"})
    query = RunningQuery("q", ResultLog(), MillstreamError, counter)  # type: ignore[arg-type]
    for number in (0, 1):
        query.take(SimpleNamespace(toArrow=lambda: pa.table({"x": [1, 2, 3]})), number)  # type: ignore[arg-type]
        assert (query.progress.rows_out, query.progress.bad_total) == (3 * number, 3 * number)
        counter.update(batch(number, bad_s={"rows": 3, "bad": 3}))
        assert (query.progress.rows_out, query.progress.bad_total) == (3 * number + 3, 3 * number + 3)
