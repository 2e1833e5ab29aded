"""Warnings about late and bad tuples: how many, of which stream, an example, and the clause that helps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from millstream.catalog.entries import NO_TIMESTAMP, Relation, SlackPromise, Stream
from millstream.runtime.queries.bad_records import diagnosis
from millstream.runtime.queries.query_progress import Progress, most

FindRelation = Callable[[str], Relation | None]

_MANY = 0.5
"""Share of late tuples above which the warning questions the order of the input."""


@dataclass(frozen=True)
class RejectionWarnings:
    """Late and bad tuples of the streams that some queries read; queries over one stream see the same tuples.

    ``relation`` looks up streams of the catalog by name.
    """

    progress: tuple[Progress, ...]
    relation: FindRelation

    def all_bad(self) -> list[str]:
        """Return the streams of which every record was bad."""
        rows, bad = self._most("rows"), self._most("bad")
        return [stream for stream, count in bad.items() if count >= rows.get(stream, 0)]

    def warnings(self, *, unclaimed: bool = False, shown: Collection[str] = ()) -> list[str]:
        """Describe rejected tuples; with ``unclaimed`` only those of streams without a clause for them.

        For streams in ``shown`` the example of a bad record is omitted.
        """
        return [*self._about_bad(unclaimed, shown), *self._about_late(unclaimed)]

    def example(self, stream: str) -> str:
        """Describe a bad record of a stream; empty if none is known."""
        entry = self._stream(stream)
        for progress in self.progress:
            if entry is not None and stream in progress.bad_records:
                reason, record = progress.bad_records[stream]
                return diagnosis(record, reason, entry)
            if entry is not None and progress.bad.get(stream):
                # Formats that cannot have unreadable records: packing counts the tuples without a time.
                return f"column '{entry.timestamp.column}': {NO_TIMESTAMP}" if entry.timestamp.column else ""
        return ""

    def bad_streams(self) -> list[str]:
        return list(self._most("bad"))

    def _about_bad(self, unclaimed: bool, shown: Collection[str]) -> Iterator[str]:
        rows = self._most("rows")
        for stream, count in self._most("bad").items():
            entry = self._stream(stream)
            has_clause = entry is not None and entry.bad_into is not None
            if has_clause and unclaimed:
                continue
            of_all = ", all of its records" if count >= rows.get(stream, 0) else ""
            advice = "" if has_clause else " (BAD INTO makes a stream of them)"
            is_shown = stream in shown or (has_clause and not of_all)
            example = "" if is_shown else self.example(stream)
            below = f"\n  {example}" if example else ""
            yield f"{count} bad {_plural('record', count)} in stream {stream}{of_all}{advice}{below}"

    def _about_late(self, unclaimed: bool) -> Iterator[str]:
        rows = self._most("rows")
        for stream, count in self._most("late").items():
            entry = self._stream(stream)
            claimed = entry is not None and (entry.late_into or entry.late_drop)
            if claimed and unclaimed:
                continue
            if claimed and entry is not None:
                advice = _claimed(entry)
            elif entry is not None and count > _MANY * rows.get(stream, 0):
                advice = (
                    f", most of its {rows.get(stream, 0)}: is the input sorted by another column than "
                    f"{entry.timestamp.column}? SLACK that spans the input puts it in order, "
                    "and a table needs no order"
                )
            else:
                advice = " (SLACK allows some disorder, LATE INTO makes a stream of them)"
            yield f"{count} late {_plural('tuple', count)} in stream {stream}{advice}"

    def _stream(self, name: str) -> Stream | None:
        entry = self.relation(name)
        return entry if isinstance(entry, Stream) else None

    def _most(self, what: str) -> dict[str, int]:
        return most(getattr(progress, what) for progress in self.progress)


def _claimed(entry: Stream) -> str:
    """Describe the destination of a stream's late tuples."""
    if entry.late_into:
        return f" (now in {entry.late_into})"
    generous = any(isinstance(promise, SlackPromise) and promise.generous for promise in entry.promises)
    return (
        " (counted by windows that could still count them, otherwise dropped)" if generous else " (dropped)"
    )


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"
