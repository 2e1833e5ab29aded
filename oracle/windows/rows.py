"""Row windows: RANGE and SLIDE counted in tuples (Window-ID paper, section 3; Q2 and Q4).

With PATTR tuples are counted in each partition. That needs backward context, the number of tuples that came
before in the same partition. Without PATTR there is one partition, the whole stream. The two differ: Q2 takes
the last so many tuples of the stream and divides them by GROUP BY, Q4 takes as many of each partition.

A stream is here the sequence of its tuples' partitions, in the order in which tuples are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from oracle.windows.sliding import Sliding

Wid = tuple[int, Hashable]
"""The number of a window in its partition, and the partition."""


@dataclass(frozen=True)
class RowSliding:
    """RANGE n ROWS SLIDE m ROWS, in each partition."""

    size: int
    slide: int

    @property
    def on_ranks(self) -> Sliding:
        """The window on ranks, which count from 0."""
        return Sliding(self.size, self.slide)

    def windows(self, partitions: Sequence[Hashable]) -> list[Wid]:
        """Return the windows that hold a tuple.

        >>> RowSliding(2, 1).windows(["a", "b", "a"])
        [(0, 'a'), (1, 'a'), (2, 'a'), (0, 'b'), (1, 'b')]
        """
        counts = Counter(partitions)
        return [
            (i, partition)
            for partition, count in counts.items()
            for i in self.on_ranks.windows([0, count - 1])
            if self.ranks(i).stop > 0 and self.ranks(i).start < count
        ]

    def extent(self, wid: Wid, partitions: Sequence[Hashable]) -> list[int]:
        """Return the positions in the stream of the tuples that a window holds."""
        i, partition = wid
        return [
            position
            for position, (its, rank) in enumerate(zip(partitions, ranks(partitions), strict=True))
            if its == partition and rank in self.ranks(i)
        ]

    def wids(self, position: int, partitions: Sequence[Hashable]) -> list[Wid]:
        """Return the windows that hold the tuple at a position."""
        partition = partitions[position]
        return [(i, partition) for i in self.on_ranks.wids(ranks(partitions)[position])]

    def ranks(self, i: int) -> range:
        """Return the ranks in the i-th window of a partition; the first windows begin before rank 0."""
        extent = self.on_ranks.extent(i)
        assert isinstance(extent.start, int)
        assert isinstance(extent.end, int)
        return range(extent.start, extent.end)


def ranks(partitions: Sequence[Hashable]) -> list[int]:
    """Return the number of tuples of the same partition before each tuple.

    >>> ranks(["a", "b", "a", "a", "b"])
    [0, 0, 1, 2, 1]
    """
    counts: Counter[Hashable] = Counter()
    found = []
    for partition in partitions:
        found.append(counts[partition])
        counts[partition] += 1
    return found
