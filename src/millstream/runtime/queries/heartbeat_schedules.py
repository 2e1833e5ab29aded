"""Schedules of heartbeats: those of clauses, and those of streams that are stamped by the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from millstream.catalog.entries import (
    HeartbeatPromise,
    Port,
    Promise,
    Rejected,
    SlackPromise,
    Stream,
    TimestampKind,
)
from millstream.plan import nodes
from millstream.quantity import Duration
from millstream.runtime.queries.heartbeats import HeartbeatSchedule, now

_LATENT_SECONDS = 1.0
"""Interval at which tuples of latent streams expire."""


def schedules(
    streams: Iterable[Stream], complete_until: Callable[[int], int], *, latent: bool
) -> list[HeartbeatSchedule]:
    """Return the heartbeats of streams; ``latent`` ones get them if tuples have to expire in silence.

    ``complete_until`` returns the time before which all lines of a port can be read.
    """
    return [one for stream in streams for one in _schedules(stream, complete_until, latent=latent)]


def has_active_expiration(plan: nodes.Node) -> bool:
    """Tell whether tuples of a plan expire without input."""
    overs = (node for node in plan.walk() if isinstance(node, nodes.OverAggregate))
    return any(call.active_expiration for over in overs for call in over.calls)


def _schedules(
    stream: Stream, complete_until: Callable[[int], int], *, latent: bool
) -> Iterator[HeartbeatSchedule]:
    clock = now
    if stream.timestamp.kind is TimestampKind.INTERNAL and isinstance(stream.origin, Port):
        clock = partial(complete_until, stream.origin.number)
    for on, promises in ((None, stream.own_promises), *stream.promises_on_others.items()):
        for promise in promises:
            if isinstance(promise, HeartbeatPromise):
                seconds = promise.every.microseconds / 1e6
                yield HeartbeatSchedule(stream.name, seconds, _slack(promises), on, now if on else clock)
    if latent and stream.timestamp.kind is TimestampKind.LATENT and not isinstance(stream.origin, Rejected):
        yield HeartbeatSchedule(stream.name, _LATENT_SECONDS)


def _slack(promises: Iterable[Promise]) -> int:
    """Return the permitted delay of tuples behind a heartbeat."""
    for promise in promises:
        if isinstance(promise, SlackPromise) and isinstance(promise.amount, Duration):
            return promise.amount.microseconds
    return 0
