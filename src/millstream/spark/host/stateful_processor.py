"""The stateful processor: it loads the shard, runs it, and writes its changed state.

Spark starts a Python process for every query only to ask a processor for its state variables. So nothing
heavy is imported here before there are rows: the stage stays pickled until then.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.accumulators import Accumulator

    from millstream.spark.host.stage_host import Stage
    from millstream.stage.shard import Shard

# Schemas as texts would be sent to the JVM to be parsed there, in every task.
_NAME = StructType([StructField("name", StringType())])
_DATA = StructType([StructField("data", BinaryType())])

_META = ""
"""Key of the shard's metadata; all other keys are state chunks."""

ROWS_AT_ONCE = 1 << 17
"""Number of results that are passed to Spark at a time."""


class ShardProcessor(StatefulProcessor):
    """Hosts the shards of some pickled stages, with accumulators for the reports of each."""

    def __init__(self, stages: bytes, reports: tuple[tuple[Accumulator[Any], ...], ...]) -> None:
        self._pickled = stages
        self._reports = reports

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState("state", _NAME, _DATA)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        from millstream.spark.host.worker_gc import settle
        from millstream.stage.blob import Blob
        from millstream.stage.shard import tagged, tagged_schema
        from millstream.stage.shard_cache import remember

        stages = pickle.loads(self._pickled)
        tag, stage = next((i, stage) for i, stage in enumerate(stages) if key[0] in stage.shards)
        name = str(key[0])
        blobs = [
            Blob.of(head, tuples, everything)
            for frame in rows
            for head, tuples, everything in zip(frame["head"], frame["tuples"], frame["all"], strict=True)
        ]
        began = time.perf_counter()
        shard = self._find(stage, int(key[0]), name)
        loaded = time.perf_counter()
        result, report = shard.process(blobs)
        done = time.perf_counter()
        self._write(shard)
        remember(stage.token, name, shard)
        report["state_ms"] = round((time.perf_counter() - done + loaded - began) * 1000, 3)
        for reports in self._reports[tag]:
            reports.add([report])
        table = shard.table(result, report)
        if len(stages) > 1:
            table = tagged(table, tag, tagged_schema([stage.pipeline for stage in stages]))
        for start in range(0, table.num_rows, ROWS_AT_ONCE):
            # Spark requires every column in one chunk.
            piece = table.slice(start, ROWS_AT_ONCE).combine_chunks()
            yield _frame(piece)
        settle()

    def close(self) -> None:
        pass

    def _find(self, stage: Stage, number: int, name: str) -> Shard:
        """Return the shard with the state in the store, from the shard cache if it is there."""
        from millstream.stage.shard import version_of
        from millstream.stage.shard_cache import recall

        stored = self._state.getValue((_META,))
        if stored is None:
            return stage.shard(number)
        meta = bytes(stored[0])
        shard = recall(stage.token, name, version_of(meta))
        if shard is None:
            shard = stage.shard(number)
            shard.restore(meta, {key[0]: bytes(data[0]) for key, data in self._state.iterator()})
        return shard

    def _write(self, shard: Shard) -> None:
        change = shard.snapshot()
        for name in change.dropped:
            self._state.removeKey((name,))
        for name, data in change.added.items():
            self._state.updateValue((name,), (data,))
        self._state.updateValue((_META,), (change.meta,))


def _frame(table: pa.Table) -> pd.DataFrame:
    """Convert a table for Spark; lists, structs and maps become Python objects.

    Spark converts those one by one itself, and accepts only Python's None as NULL in them.
    """
    import pandas as pd
    import pyarrow as pa

    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    for i, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            values = table.column(i).to_pylist(maps_as_pydicts="strict")
            frame[field.name] = pd.Series(values, dtype=object)
    return frame
