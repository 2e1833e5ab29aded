"""The contract that every kernel must pass, and streams written as little tables."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from brute import close

from millstream.kernels.column_names import KEY, KEY2
from millstream.kernels.core.kernel import BEGINNING, END, Change, Frontier, Kernel, Tuples
from millstream.kernels.core.tuple_batch import cut

Batch = tuple[Tuples, Frontier]
Row = dict[str, Any]


def stream(text: str, **types: pa.DataType) -> Tuples:
    """A stream as a table; `-` is NULL, `key` and `key2` name partitions, columns are bigint unless told."""
    lines = [line.split() for line in text.strip().splitlines()]
    names, rows = lines[0], lines[1:]
    read = {"key": pa.int64(), "key2": pa.int64(), "time": pa.int64(), "hold": pa.int64(), **types}
    columns = {
        name: pa.array(
            [_value(row[i], read.get(name, pa.int64())) for row in rows], read.get(name, pa.int64())
        )
        for i, name in enumerate(names)
    }
    return tuples_of(columns, len(rows))


def _value(word: str, type_: pa.DataType) -> Any:
    if word == "-":
        return None
    if pa.types.is_string(type_):
        return word
    if pa.types.is_decimal(type_):
        return Decimal(word)
    return float(word) if pa.types.is_floating(type_) else int(word)


def tuples_of(columns: dict[str, pa.Array], count: int) -> Tuples:
    """Tuples from columns; `time`, `origin`, `number` and `hold` travel along unseen."""
    rest = {
        {"key": KEY, "key2": KEY2}.get(name, name): column
        for name, column in columns.items()
        if name not in ("time", "origin", "number", "hold")
    }
    origin = columns["origin"].to_numpy() if "origin" in columns else np.zeros(count)
    number = columns["number"].to_numpy() if "number" in columns else np.arange(count)
    hold = columns["hold"].fill_null(np.iinfo(np.int64).min).to_numpy() if "hold" in columns else None
    table = pa.table(rest) if rest else pa.table({"nothing": pa.nulls(count)})
    return Tuples(table, columns["time"].to_numpy(), origin.astype(np.int32), number, hold)


def rows(tuples: Tuples) -> list[Row]:
    along = zip(tuples.time.tolist(), tuples.origin.tolist(), tuples.number.tolist(), strict=True)
    return [
        {"time": time, "origin": origin, "number": number, **row}
        for (time, origin, number), row in zip(along, tuples.columns.to_pylist(), strict=True)
    ]


def run(kernel: Kernel, batches: Iterable[Batch]) -> list[Row]:
    """All that comes out, without keys, which mean nothing to the reader."""
    out = [row for batch in batches for row in rows(kernel.process(*batch))]
    return [{name: value for name, value in row.items() if name not in (KEY, KEY2)} for row in out]


def results(kernel: Kernel, *batches: Batch, columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns.split()) for row in run(kernel, batches)]


class Chain(Kernel):
    """Kernels one after the other, as a stage has them."""

    def __init__(self, *kernels: Kernel) -> None:
        self.kernels = kernels

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        for kernel in self.kernels:
            tuples = kernel.process(tuples, frontier)
        return tuples

    def snapshot(self) -> Change:
        added, dropped, meta = {}, [], {}
        for i, kernel in enumerate(self.kernels):
            change = kernel.snapshot()
            added |= {f"{i}.{name}": table for name, table in change.added.items()}
            dropped += [f"{i}.{name}" for name in change.dropped]
            meta[str(i)] = dict(change.meta)
        return Change(added, tuple(dropped), meta)

    def restore(self, meta: Any, chunks: Any) -> None:
        for i, kernel in enumerate(self.kernels):
            mine = {name[2:]: table for name, table in chunks.items() if name.startswith(f"{i}.")}
            kernel.restore(meta[str(i)], mine)

    @property
    def rows(self) -> int:
        return sum(kernel.rows for kernel in self.kernels)


class Store:
    """A store for snapshots: bytes and JSON, as in a state store."""

    def __init__(self) -> None:
        self.chunks: dict[str, bytes] = {}
        self.meta = "{}"
        self.used: set[str] = set()

    def write(self, change: Change) -> None:
        for name in change.dropped:
            del self.chunks[name]
        for name, table in change.added.items():
            assert name not in self.used, "a chunk is written once"
            assert table.num_rows > 0
            self.used.add(name)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            self.chunks[name] = sink.getvalue().to_pybytes()
        self.meta = json.dumps(change.meta, allow_nan=False)

    def read(self) -> tuple[Any, dict[str, pa.Table]]:
        chunks = {name: pa.ipc.open_stream(data).read_all() for name, data in self.chunks.items()}
        return json.loads(self.meta), chunks

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.read()[1].values())


def check(
    make: Callable[[], Kernel], batches: Sequence[Batch], magnitude: float = 0.0, *, end_apart: bool = False
) -> list[Row]:
    """Pass the contract on some input; gives what comes out of it.

    Sums of doubles may differ a little, as much as twice their precision does for addends of a magnitude.
    With ``end_apart`` the end of the input comes by itself, as it does where partial results depend on what
    was promised before it.
    """
    expected = run(make(), batches)
    apart = len(batches) - 1 if end_apart else len(batches)
    in_one = [*_all_in_one(batches[:apart]), *batches[apart:]]
    for cut_up in (_one_by_one(batches), in_one, _with_empty(batches)):
        same_rows(run(make(), cut_up), expected, magnitude)
    same_rows(_pickled_between(make(), batches), expected, magnitude)
    for restore_at in (*({i} for i in range(len(batches))), set(range(len(batches)))):
        same_rows(restored(make, batches, restore_at), expected, magnitude)
    return expected


def _one_by_one(batches: Sequence[Batch]) -> list[Batch]:
    """Each tuple a batch of its own; what a batch promises, its last tuple does."""
    out = []
    before = BEGINNING
    for tuples, frontier in batches:
        singles = [cut(tuples, i, i + 1) for i in range(len(tuples))] or [tuples]
        out += [(single, before) for single in singles[:-1]] + [(singles[-1], frontier)]
        before = frontier
    return out


def _all_in_one(batches: Sequence[Batch]) -> list[Batch]:
    if not batches:
        return []
    tuples = [batch[0] for batch in batches]
    holds = [t.hold if t.hold is not None else np.full(len(t), np.iinfo(np.int64).min) for t in tuples]
    together = Tuples(
        pa.concat_tables([t.columns for t in tuples]),
        np.concatenate([t.time for t in tuples]),
        np.concatenate([t.origin for t in tuples]),
        np.concatenate([t.number for t in tuples]),
        np.concatenate(holds) if any(t.hold is not None for t in tuples) else None,
    )
    return [(together, batches[-1][1])]


def _with_empty(batches: Sequence[Batch]) -> list[Batch]:
    return [(part, frontier) for tuples, frontier in batches for part in (tuples, cut(tuples, 0, 0))]


def _pickled_between(kernel: Kernel, batches: Sequence[Batch]) -> list[Row]:
    out = []
    for protocol, batch in zip(itertools.cycle((5, 2)), batches, strict=False):
        out += run(kernel, [batch])
        kernel = pickle.loads(pickle.dumps(kernel, protocol))
    return out


def restored(make: Callable[[], Kernel], batches: Sequence[Batch], at: set[int]) -> list[Row]:
    """Write down the state after each batch, and lose the kernel after some of them."""
    kernel, store, out = make(), Store(), []
    for i, batch in enumerate(batches):
        out += run(kernel, [batch])
        store.write(kernel.snapshot())
        if i in at:
            kernel = make()
            kernel.restore(*store.read())
    return out


def same_rows(actual: list[Row], expected: list[Row], magnitude: float = 0.0) -> None:
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        assert one.keys() == other.keys()
        assert all(close(one[name], other[name], magnitude) for name in one), (one, other)


def ended(*batches: Batch) -> list[Batch]:
    """Return the batches followed by the end of the input."""
    last = batches[-1][0]
    return [*batches, (cut(last, 0, 0), END)]
