"""Disorder clauses of a stream, in the units of its timestamp: one class for each clause.

Timestamps are numbers here: microseconds, days turned into microseconds, unscaled decimals, or doubles.
"""

from __future__ import annotations

from dataclasses import dataclass

Instant = int | float


@dataclass(frozen=True)
class InOrder:
    """No tuple is older than the newest before it by more than the slack (none without a SLACK clause)."""

    slack: Instant = 0


@dataclass(frozen=True)
class RowSlack:
    """No tuple is overtaken by more than ``rows`` tuples."""

    rows: int


@dataclass(frozen=True)
class OrderedPer:
    """Each sub-stream is in order by itself.

    One that lags behind the newest tuple by more than ``idle_after`` no longer holds the watermark back.
    """

    idle_after: Instant | None = None


@dataclass(frozen=True)
class Punctuated:
    """Some tuples are punctuation, for the whole partition or (``per``) for their sub-stream."""

    per: bool = False


@dataclass(frozen=True)
class Heartbeats:
    """Progress from outside, while the source is silent."""


Clause = InOrder | RowSlack | OrderedPer | Punctuated | Heartbeats


@dataclass(frozen=True)
class Promises:
    """All clauses of a stream; a tuple that breaks any of them is late."""

    clauses: tuple[Clause, ...] = (InOrder(),)
    generous: bool = False

    @property
    def slack(self) -> Instant | None:
        """The slack, if a single clause of order makes tuples late.

        A piece of a stream can then be judged by itself, given the newest time before it.
        """
        orders = [clause for clause in self.clauses if not isinstance(clause, Heartbeats)]
        match orders:
            case [InOrder(slack)]:
                return slack
            case _:
                return None
