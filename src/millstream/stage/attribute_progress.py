"""Progress of each attribute of a source partition about which the stream declares something.

A tuple is late if it breaks a promise about any of them. One that has no value in an attribute breaks nothing
there and shows nothing; a row that is a promise about some attribute is no tuple for any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.windows.time_codec import has_value, instants, is_float
from millstream.progress.piece import Mask, Piece, Times, Verdict
from millstream.progress.watermark_tracker import Tracker
from millstream.stage.pipeline import ProgressAttribute


@dataclass
class AttributeProgress:
    """The progress of an attribute in one source partition: its watermark, and its sub-streams by code."""

    line: ProgressAttribute
    tracker: Tracker
    codes: dict[Any, int] = field(default_factory=dict)

    @classmethod
    def of(cls, line: ProgressAttribute) -> AttributeProgress:
        """Return the progress before the first tuple."""
        return cls(line, Tracker(line.promises, is_float(line.type)))

    def as_data(self) -> dict[str, Any]:
        """Return the state as plain data; sub-streams are in the order of their codes."""
        return {"tracker": self.tracker.as_data(), "streams": list(self.codes)}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Read the state back."""
        self.tracker.restore(data["tracker"])
        self.codes = {stream: code for code, stream in enumerate(data["streams"])}

    def show(self, rows: pa.Table, promises: Mask | None) -> Verdict:
        """Judge the next rows by this line alone; ``promises`` are those that are promises about any."""
        own = promise_mask(rows, self.line)
        values = rows.column(self.line.column)
        missing = ~_mask(has_value(values))
        if promises is None:
            seen = ~missing
        else:
            seen = ~(promises | missing)
            seen = seen if own is None else seen | own
        if seen.all():
            return self.tracker.show(self._piece(rows, own, missing))
        some = rows.filter(pa.array(seen))
        verdict = self.tracker.show(self._piece(some, None if own is None else own[seen], missing[seen]))
        late = np.zeros(len(seen), np.bool_)
        late[seen] = verdict.late
        promised = np.full(len(seen), self.tracker.lowest, verdict.promised.dtype)
        promised[seen] = verdict.promised
        return Verdict(late, promised)

    def _piece(self, rows: pa.Table, own: Mask | None, missing: Mask) -> Piece:
        streams = None
        if self.line.substream in rows.column_names:
            streams = numbered(rows.column(self.line.substream), self.codes)
        ends = None if own is None else own & missing
        return Piece(instants(rows.column(self.line.column)), streams, own, ends)


@dataclass(frozen=True)
class AttributeVerdicts:
    """The verdicts of all attributes on some rows.

    ``promised`` is the watermark of the windows' attribute before each row. Of the ``late`` rows the
    ``spared`` ones have broken GENEROUS clauses only.
    """

    late: Mask
    promised: Times
    spared: Mask

    def take(self, rows: npt.NDArray[Any]) -> AttributeVerdicts:
        return AttributeVerdicts(self.late[rows], self.promised[rows], self.spared[rows])


def judged(lines: Sequence[AttributeProgress], rows: pa.Table) -> AttributeVerdicts:
    """Judge rows by all attributes; the first is that of the windows."""
    promises = promises_in(rows, [followed.line for followed in lines])
    verdicts = [followed.show(rows, promises) for followed in lines]
    late = np.logical_or.reduce([verdict.late for verdict in verdicts])
    strict = [v.late for v, f in zip(verdicts, lines, strict=True) if not f.line.promises.generous]
    spared = late & ~np.logical_or.reduce(strict) if strict else late
    return AttributeVerdicts(late, verdicts[0].promised, spared)


def promises_in(rows: pa.Table, lines: Sequence[ProgressAttribute]) -> Mask | None:
    """Return a mask of the rows that are punctuation of any attribute; None without punctuation."""
    masks = [mask for mask in (promise_mask(rows, line) for line in lines) if mask is not None]
    return np.logical_or.reduce(masks) if masks else None


def promise_mask(rows: pa.Table, line: ProgressAttribute) -> Mask | None:
    """Return a mask of the rows that are punctuation of an attribute; None without a clause for it."""
    if line.promise not in rows.column_names:
        return None
    return _mask(pc.fill_null(rows.column(line.promise), False))


def _mask(column: pa.ChunkedArray) -> Mask:
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False), np.bool_)


def numbered(column: pa.ChunkedArray, codes: dict[Any, int]) -> npt.NDArray[np.int64]:
    """Return the codes of sub-streams; new ones are added to ``codes``."""
    encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    table = np.array(
        [codes.setdefault(value, len(codes)) for value in encoded.dictionary.to_pylist()], np.int64
    )
    return table[np.asarray(encoded.indices)] if len(table) else np.empty(0, np.int64)
