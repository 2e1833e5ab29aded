"""What a stream promises about its disorder, in the units of its timestamp: one clause, one class.

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
    """No tuple is overtaken by more than so many."""

    rows: int


@dataclass(frozen=True)
class OrderedPer:
    """Each sub-stream is in order by itself.

    One that falls behind the newest tuple by more than ``idle_after`` is not waited for.
    """

    idle_after: Instant | None = None


@dataclass(frozen=True)
class Punctuated:
    """Some tuples are no data but promises, for everything or (``per``) for their sub-stream."""

    per: bool = False


@dataclass(frozen=True)
class Heartbeats:
    """Progress that comes from outside, while the source is silent."""


Clause = InOrder | RowSlack | OrderedPer | Punctuated | Heartbeats


@dataclass(frozen=True)
class Promises:
    """All clauses of a stream. Each binds by itself; what breaks any of them is late."""

    clauses: tuple[Clause, ...] = (InOrder(),)
    generous: bool = False

    @property
    def slack(self) -> Instant | None:
        """The slack, if all that can be late is what lags behind the newest tuple by more than that.

        Then a piece of a stream can be judged by itself, up to the one number that came before it.
        """
        orders = [clause for clause in self.clauses if not isinstance(clause, Heartbeats)]
        match orders:
            case [InOrder(slack)]:
                return slack
            case _:
                return None
