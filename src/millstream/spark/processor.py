"""The one StatefulProcessor: it finds the shard, runs it, and writes down what has changed.

Spark starts a Python process for every query only to ask a processor for its state variables. So nothing
heavy is imported here before there are rows: the stage stays pickled until then.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from millstream.spark.host import Stage
    from millstream.stage.shard import Shard

ROWS_AT_ONCE = 1 << 17
"""How many results are handed to Spark at a time."""


class Processor(StatefulProcessor):
    """Hosts the shards of some stages, which come pickled."""

    def __init__(self, stages: bytes) -> None:
        self._pickled = stages

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._meta = handle.getValueState("meta", "data BINARY")
        self._chunks = handle.getMapState("chunks", "name STRING", "data BINARY")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        from millstream.stage.arrivals import Blob
        from millstream.stage.cache import remember
        from millstream.stage.shard import tagged, tagged_schema

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
        found = time.perf_counter()
        result, report = shard.process(blobs)
        done = time.perf_counter()
        self._write(shard)
        remember(stage.token, name, shard)
        report["state_ms"] = round((time.perf_counter() - done + found - began) * 1000, 3)
        table = shard.table(result, report)
        if len(stages) > 1:
            table = tagged(table, tag, tagged_schema([stage.pipeline for stage in stages]))
        for start in range(0, table.num_rows, ROWS_AT_ONCE):
            # Spark wants every column in one piece.
            piece = table.slice(start, ROWS_AT_ONCE).combine_chunks()
            yield piece.to_pandas(types_mapper=pd.ArrowDtype)

    def close(self) -> None:
        pass

    def _find(self, stage: Stage, number: int, name: str) -> Shard:
        """The shard as the state store has it, from memory if it is there."""
        from millstream.stage.cache import recall
        from millstream.stage.shard import version_of

        stored = self._meta.get()
        if stored is None:
            return stage.shard(number)
        meta = bytes(stored[0])
        shard = recall(stage.token, name, version_of(meta))
        if shard is None:
            shard = stage.shard(number)
            shard.restore(meta, {row[0][0]: bytes(row[1][0]) for row in self._chunks.iterator()})
        return shard

    def _write(self, shard: Shard) -> None:
        change = shard.snapshot()
        for name in change.dropped:
            self._chunks.removeKey((name,))
        for name, data in change.added.items():
            self._chunks.updateValue((name,), (data,))
        self._meta.update((change.meta,))
