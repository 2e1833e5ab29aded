"""The two kinds of disorder of the window-id paper (sections 7.1 and 8.1), reproduced.

Times are microseconds. Every tuple has a timestamp, and an instant at which it arrives, by a clock that goes
as the timestamps do: so a latency is a difference of two instants of the stream's time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

SECOND = 1_000_000


@dataclass(frozen=True)
class Disordered:
    """A stream as it arrives: timestamps, instants of arrival (which never decrease), and readings."""

    ts: Integers
    arrival: Integers
    v: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ts)


BAND = 3_200_000
"""No tuple is delayed by more: the largest slack of the paper's experiment 2."""


def band(rows: int, per_second: int = 100) -> Disordered:
    """Bounded disorder: delays as on a network, most of them short, none longer than BAND.

    As in the paper ten sequences are made first, and randomly chosen copies of them are put in a row: some
    sequences are smooth, some have stretches in which everything is held up.
    """
    random = np.random.default_rng(5)
    ts = np.arange(rows) * SECOND // per_second
    sequences = [_delays(random, int(random.integers(500, 3000))) for _ in range(10)]
    delays: list[Integers] = []
    while sum(map(len, delays)) < rows:
        delays.append(sequences[random.integers(len(sequences))])
    arrival = ts + np.concatenate(delays)[:rows]
    order = np.argsort(arrival, kind="stable")
    return Disordered(ts[order], arrival[order], random.normal(60, 15, rows)[order])


def _delays(random: np.random.Generator, count: int) -> Integers:
    typical = random.uniform(0.05, 0.6) * SECOND
    delays = random.exponential(typical, count)
    # Where packets are sent again, some tuples come much later than their neighbours.
    again = random.random(count) < random.uniform(0.005, 0.05)
    delays[again] += random.uniform(0.3, 1.0, int(again.sum())) * BAND
    return np.minimum(delays, BAND).astype(np.int64)


BLOCK = 490 * SECOND
"""The paper's duration of a block."""


def blocks(rows: int, per_second: int = 50) -> Disordered:
    """Block-sorted disorder: a router that emits the tuples of a block of time in no order.

    Segments of equal length on the timestamp, and random positions within each. A block is sent while the
    next one is recorded, at the rate at which it came in.
    """
    random = np.random.default_rng(6)
    ts = np.arange(rows) * SECOND // per_second
    arrival = ts + BLOCK
    order = np.lexsort((random.random(rows), ts // BLOCK))
    return Disordered(ts[order], arrival, random.normal(60, 15, rows)[order])
