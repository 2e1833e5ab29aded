"""A shard of a pipeline: the state of some of the keys between micro-batches."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.errors import ExecutionError
from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import END, STREAM, Change, Frontier, Kernel, Times, Tuples
from millstream.kernels.core.timestamp_text import is_time, time_texts
from millstream.kernels.core.tuple_batch import frontier_as_data, frontier_from_data, joined
from millstream.kernels.registry import make_kernels
from millstream.kernels.windows.time_codec import is_float, timestamps
from millstream.stage.blob import Blob
from millstream.stage.input_progress import InputProgress
from millstream.stage.pipeline import MARK, NUMBER, ORIGIN, TAG, TIME, Input, Pipeline, tagged_name

Report = dict[str, Any]
"""Statistics and frontier of a micro-batch, as plain data for JSON."""

_LAST_ORIGIN = 2**31 - 1
_LARGEST = float(np.finfo(np.float64).max)

FORMAT = 3
"""Number of the state's format: a state with another number is refused."""


@dataclass
class StateChange:
    """The changes of the state store by a micro-batch."""

    meta: bytes
    added: dict[str, bytes] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()


class Shard:
    """Runs the kernels of a pipeline for one shard."""

    def __init__(self, pipeline: Pipeline, name: str = "", shards: int = 1) -> None:
        self._pipeline = pipeline
        self._name = name
        self._shards = shards
        self._arrivals = [InputProgress(source, i) for i, source in enumerate(pipeline.inputs)]
        self._kernels: list[Kernel] = [] if pipeline.late else make_kernels(pipeline.kernels)
        self._chunks: dict[str, int] = {}
        self.frontier = Frontier(-np.inf, -1)
        self.version = 0

    def process(self, blobs: Iterable[Blob]) -> tuple[Tuples, Report]:
        """Process a micro-batch; return its results and its report."""
        by_input: dict[int, list[Blob]] = {}
        pack_ms = 0.0
        for blob in blobs:
            by_input.setdefault(blob.head["input"], []).append(blob)
            pack_ms += blob.head.get("pack_ms", 0.0)
        began = time.perf_counter()
        before = self._counts()
        arrived = [self._arrivals[i].take(group) for i, group in sorted(by_input.items())]
        taken = time.perf_counter()
        wanted = [a.late if self._pipeline.late else a.tuples for a in arrived]
        parts = [part for part in wanted if part is not None and len(part)]
        result, reached, frontier = self._run(joined(parts) if parts else self._empty())
        done = time.perf_counter()
        self.version += 1
        counted = {
            name: [a - b for a, b in zip(now, then, strict=True)]
            for (name, now), then in zip(self._counts().items(), before.values(), strict=True)
        }
        inputs = self._pipeline.inputs
        report = {
            "shard": self._name,
            "version": self.version,
            "shards": self._shards,
            "frontier": _written(frontier),
            "reached": _written(reached),
            "end": self.frontier == END,
            "last_word": all(arrivals.reached == END for arrivals in self._arrivals),
            **counted,
            "newest": [_newest(a, s) for a, s in zip(self._arrivals, inputs, strict=True)],
            "done": any(k.is_done for k in self._kernels),
            "state_rows": sum(k.rows for k in self._kernels) + sum(a.state_rows for a in self._arrivals),
            "state_bytes": sum(self._chunks.values()),
            "pack_ms": round(pack_ms / self._shards + (taken - began) * 1000, 3),
            "kernel_ms": round((done - taken) * 1000, 3),
        }
        return result, report

    def _run(self, tuples: Tuples) -> tuple[Tuples, Frontier, Frontier]:
        """Return the results of tuples, the frontier before the end of the input, and the frontier after it.

        The end is processed after the frontier before it, since it causes no partial results.
        """
        before = self.frontier
        self.frontier = max(before, min(arrivals.frontier for arrivals in self._arrivals))
        if before.is_end or not self.frontier.is_end:
            result, passed = self._through(tuples, replace(self.frontier, own=self._arrivals[0].own))
            return result, passed, passed
        promised = max(before, self._reached)
        promised = replace(promised, own=self._arrivals[0].own)
        result, reached = self._through(tuples, promised)
        newest = [arrivals.newest for arrivals in self._arrivals if arrivals.newest is not None]
        kind = self._pipeline.inputs[0].time_type
        before_end = reached_time(promised, is_float(kind))
        end = replace(self.frontier, newest=max(newest, default=None), reached=before_end)
        rest, passed = self._through(self._empty(), end)
        parts = [part for part in (result, rest) if len(part)]
        return joined(parts) if parts else result, reached, passed

    @property
    def _reached(self) -> Frontier:
        """The frontier of all inputs before their end."""
        reached = min(arrivals.reached for arrivals in self._arrivals)
        return max(arrivals.before_last_word for arrivals in self._arrivals) if reached == END else reached

    def _through(self, tuples: Tuples, frontier: Frontier) -> tuple[Tuples, Frontier]:
        """Run all kernels; return the results and the frontier behind the last kernel."""
        for kernel in self._kernels:
            tuples = kernel.process(tuples, frontier)
            frontier = kernel.passes(frontier)
        return tuples, frontier

    def _counts(self) -> dict[str, list[int]]:
        """Return the counters of every input."""
        return {
            name: [getattr(arrivals, name) for arrivals in self._arrivals] for name in ("seen", "bad", "late")
        }

    def _empty(self) -> Tuples:
        source = self._pipeline.inputs[0]
        schema = source.columns
        if source.key is not None and KEY not in schema.names:
            schema = schema.append(pa.field(KEY, pa.int64()))
        if source.apart:
            schema = schema.append(pa.field(STREAM, pa.int64()))
        time: Times = np.empty(0, np.float64) if is_float(source.time_type) else np.empty(0, np.int64)
        return Tuples(schema.empty_table(), time, np.empty(0, np.int32), np.empty(0, np.int64))

    def table(self, result: Tuples, report: Report) -> pa.Table:
        """Return the results with the added columns, and a row with the report where the pipeline has one."""
        rows = len(result)
        kind = self._pipeline.time_type
        columns = [result.columns.column(name) for name in self._pipeline.output.names]
        times = pa.nulls(rows, kind) if self._pipeline.late else timestamps(result.time, kind)
        columns.append(pa.chunked_array([times]))
        if self._pipeline.ordered:
            columns.append(pa.chunked_array([pa.array(result.origin, pa.int32())]))
            columns.append(pa.chunked_array([pa.array(result.number, pa.int64())]))
        if self._pipeline.marked:
            columns.append(pa.chunked_array([pa.nulls(rows, pa.string())]))
        schema = result_schema(self._pipeline)
        table = pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        if not self._pipeline.marked:
            return table
        marks = [pa.nulls(1, f.type) if f.name != MARK else pa.array([json.dumps(report)]) for f in schema]
        return pa.concat_tables([table, pa.table(marks, schema=schema)])

    # ------------------------------------------------------------ state

    def snapshot(self) -> StateChange:
        """Return the changes of the state store after a micro-batch."""
        added: dict[str, bytes] = {}
        dropped: list[str] = []
        metas: list[Mapping[str, Any]] = []
        for i, kernel in enumerate(self._kernels):
            change: Change = kernel.snapshot()
            metas.append(dict(change.meta))
            for name, chunk in change.added.items():
                added[f"{i}/{name}"] = _to_bytes(chunk)
            dropped += [f"{i}/{name}" for name in change.dropped]
        for name in dropped:
            if added.pop(name, None) is None:
                self._chunks.pop(name, None)
        self._chunks.update({name: len(chunk) for name, chunk in added.items()})
        meta = {
            "format": FORMAT,
            "version": self.version,
            "frontier": frontier_as_data(self.frontier),
            "arrivals": [arrivals.as_data() for arrivals in self._arrivals],
            "kernels": metas,
            "chunks": self._chunks,
        }
        return StateChange(json.dumps(meta, allow_nan=False).encode(), added, tuple(dropped))

    def restore(self, meta: bytes, chunks: Mapping[str, bytes]) -> None:
        """Restore the state from the state store."""
        stored = _read(meta)
        self.version = stored["version"]
        self.frontier = frontier_from_data(stored["frontier"])
        self._chunks = stored["chunks"]
        for arrivals, data in zip(self._arrivals, stored["arrivals"], strict=True):
            arrivals.restore(data)
        missing = [name for name in self._chunks if name not in chunks]
        if missing:
            raise _damaged(f"{len(missing)} of its {len(self._chunks)} chunks are missing")
        for i, (kernel, own) in enumerate(zip(self._kernels, stored["kernels"], strict=True)):
            prefix = f"{i}/"
            kernel.restore(
                own,
                {
                    name.removeprefix(prefix): _from_bytes(chunks[name])
                    for name in self._chunks
                    if name.startswith(prefix)
                },
            )


def reached_time(promised: Frontier, is_double: bool) -> int | float | None:
    """Return the time of a frontier; None at the beginning and at the end."""
    if not np.isfinite(promised.time) or (not is_double and promised.time >= np.iinfo(np.int64).max):
        return None
    return None if is_double and promised.time >= _LARGEST else promised.time


def version_of(meta: bytes) -> int:
    """Return the version of a stored state."""
    return int(_read(meta)["version"])


def _read(meta: bytes) -> dict[str, Any]:
    """Read the state of a shard besides its chunks; refuse other formats."""
    stored: Any = None
    with contextlib.suppress(ValueError):
        stored = json.loads(meta)
    # The state of older versions was no JSON.
    written = stored.get("format") if isinstance(stored, dict) else None
    if written != FORMAT:
        raise _damaged(
            f"it is in {'another format' if written is None else f'format {written}'}, not {FORMAT}"
        )
    return dict(stored)


def _damaged(reason: str) -> ExecutionError:
    return ExecutionError(
        f"the state of the query cannot be read: {reason}",
        hint="start with a new directory, put back a copy of the checkpoint, "
        "or run it with the version of Millstream that wrote it",
    )


def result_schema(pipeline: Pipeline) -> pa.Schema:
    """Return the columns of a shard's results."""
    order = [(ORIGIN, pa.int32()), (NUMBER, pa.int64())] if pipeline.ordered else []
    marks = [(MARK, pa.string())] if pipeline.marked else []
    hidden = [(TIME, pipeline.time_type), *order, *marks]
    return pa.schema([*pipeline.output, *(pa.field(name, kind) for name, kind in hidden)])


def tagged_schema(pipelines: Sequence[Pipeline]) -> pa.Schema:
    """Return the result columns of several pipelines together; of a single one, its own."""
    if len(pipelines) == 1:
        return result_schema(pipelines[0])
    fields = [
        pa.field(tagged_name(i, field.name), field.type)
        for i, pipeline in enumerate(pipelines)
        for field in result_schema(pipeline)
    ]
    return pa.schema([*fields, pa.field(TAG, pa.int32())])


def tagged(table: pa.Table, tag: int, schema: pa.Schema) -> pa.Table:
    """Return the results of one pipeline with the columns of all."""
    own = {tagged_name(tag, name): name for name in table.column_names}
    columns = {
        TAG: pa.array(np.full(table.num_rows, tag, np.int32)),
        **{name: table.column(inner) for name, inner in own.items()},
    }
    return pa.table(
        [columns.get(field.name, pa.nulls(table.num_rows, field.type)) for field in schema], schema=schema
    )


def _written(frontier: Frontier) -> list[int | float] | None:
    """Return a frontier for JSON, which has no infinite numbers; None at the beginning."""
    time = frontier.time.item() if isinstance(frontier.time, np.generic) else frontier.time
    return None if time == -np.inf else [min(time, _LARGEST), min(frontier.origin, _LAST_ORIGIN)]


def _newest(progress: InputProgress, source: Input) -> str | None:
    """Return the largest timestamp of a tuple."""
    if source.changes:
        return None
    stamp = next((line for line in source.others if line.attribute is None), None)
    if stamp is not None:
        return time_for_people(progress.newest_stamp, stamp.type)
    return time_for_people(progress.newest, source.time_type) if source.attribute is None else None


def time_for_people(newest: Any, kind: pa.DataType) -> str | None:
    """Return a time as readable text for JSON."""
    if newest is None:
        return None
    values = timestamps(np.array([newest]), kind)
    if not is_time(kind):
        return str(values[0].as_py())
    text = time_texts(values, "T")[0].removesuffix(".000000")
    return f"{text}+00:00" if pa.types.is_timestamp(kind) and kind.tz is not None else text


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    out: bytes = sink.getvalue().to_pybytes()
    return out


def _from_bytes(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
