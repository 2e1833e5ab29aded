"""The course of a run: micro-batches, shards and restarts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class SentHeartbeat(NamedTuple):
    """A heartbeat as the last message of a micro-batch, about the timestamp or another attribute."""

    batch: int
    time: int
    on: str | None = None


@dataclass(frozen=True)
class Course:
    """The course of a run. ``batches`` counts micro-batches; the last one is the end of the input.

    Before those in ``restarts`` all stages are read back from the state that they have written, and in those
    in ``pauses`` nothing arrives. Without a number of ``shards`` each stage has a random one. With a
    ``chance``, rows of a source partition are cut into pieces that different tasks read, blobs of tasks have
    any size and arrive in any order, and a ``forgetful`` host loses shards now and then, each by itself.

    A run that is not ``ended`` has no end of input, and gives results as far as promises go. ``heartbeats``
    are those of each stream.
    """

    batches: int = 2
    shards: int | None = 1
    restarts: frozenset[int] = frozenset()
    pauses: frozenset[int] = frozenset()
    forgetful: bool = False
    ended: bool = True
    heartbeats: Mapping[str, Sequence[SentHeartbeat]] = field(default_factory=dict)
    chance: random.Random | None = field(default=None, compare=False, repr=False)

    def shards_of(self, parallel: bool) -> int:
        """Return how many shards a stage has."""
        if not parallel:
            return 1
        return self.shards or (self.chance or random.Random(0)).randint(1, 3)
