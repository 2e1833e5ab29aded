"""Blobs: the input of a shard in a micro-batch, as packers write it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

HEARTBEAT, ENDED = "heartbeat", "end"
"""Kinds of marks in the head of a blob."""


@dataclass(frozen=True)
class ShippedPiece:
    """A piece of a source partition: its tuples of this shard, and what all shards need to judge it.

    ``order`` is its place in the input, ``newest`` its largest time, ``whole`` its rows for the watermark.
    """

    order: tuple[Any, ...]
    rows: int
    newest: Any
    part: pa.Table | None
    whole: pa.Table | None
    first: bool
    """True in one of the shards, which counts the rows of all."""


@dataclass(frozen=True)
class Blob:
    """The output of a packer for one shard."""

    head: dict[str, Any]
    tuples: bytes | None
    all: bytes | None

    @classmethod
    def of(cls, head: str, tuples: bytes | None, everything: bytes | None) -> Blob:
        return cls(json.loads(head), tuples, everything)

    @property
    def bad(self) -> int:
        """The number of bad records."""
        return int(self.head.get("bad", 0))

    @property
    def marks(self) -> list[Any]:
        """Heartbeats and ends of inputs, and frontiers of shards."""
        return [json.loads(mark) if isinstance(mark, str) else mark for mark in self.head.get("marks", ())]

    def pieces(self, *, judged_by_piece: bool) -> Iterator[ShippedPiece]:
        """Yield the pieces in this blob. By piece, ``whole`` has only rows that are not among the tuples."""
        table = None if self.tuples is None else pa.ipc.open_stream(self.tuples).read_all()
        everything = None if self.all is None else pa.ipc.open_stream(self.all).read_all()
        start = shown = 0
        for partition, segment, file, rows, newest, count, unwanted in self.head["pieces"]:
            part = table.slice(start, count) if count and table is not None else None
            others = unwanted if judged_by_piece else rows
            whole = None if everything is None or not others else everything.slice(shown, others)
            order = (partition, segment, file, self.head["flush"])
            yield ShippedPiece(order, rows, newest, part, whole, self.head["first"])
            start += count
            shown += others
