"""Specifications of kernels: plain data, of which the registry makes the kernels of a shard.

Some kernels are specified by what they compute alone (``kernels/specs.py``); the others stand here.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from millstream.kernels.column_names import Columns
from millstream.kernels.relational.lifetimes import Lifetime, RowLifetime, SlideInstants
from millstream.kernels.specs import (
    AppendOnlyJoinSpec,
    GroupSpec,
    InnerJoinSpec,
    OuterJoinSpec,
    OverSpec,
    OverUdaSpec,
    PatternSpec,
    SemiAntiJoinSpec,
    SetOperationSpec,
    SlideSpec,
    TimePaneSpec,
    UdaSpec,
    WindowRankSpec,
    WindowSpec,
)


@dataclass(frozen=True)
class ReorderSpec:
    """Tuples in the order of their timestamps."""


@dataclass(frozen=True)
class TieOrderSpec:
    """Tuples with the same timestamp in the order of the columns ``ties``, if they are of these origins."""

    ties: tuple[str, ...]
    origins: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class StreamLimitSpec:
    """The first tuples of a stream; with ``ends`` the query ends after them."""

    limit: int | None
    offset: int
    ends: bool


@dataclass(frozen=True)
class RetimeSpec:
    """Another column as the time of tuples, which is known to the end of the input only."""

    column: str


@dataclass(frozen=True)
class ArrivalNumbersSpec:
    """A mark on every so many tuples of a partition, by arrival."""

    every: int
    per: Columns


@dataclass(frozen=True)
class OverAggregatesSpec:
    """Built-in aggregates over windows of their own.

    With ``first``, tuples with more than so much in a column of results are left out.
    """

    calls: tuple[OverSpec, ...]
    slide: SlideSpec | None = None
    first: tuple[str, int] | None = None


@dataclass(frozen=True)
class OverUdasSpec:
    """Aggregates of the user's over windows of their own, each result a list if ``together``."""

    calls: tuple[OverUdaSpec, ...]
    together: bool = False


@dataclass(frozen=True)
class ActiveAggregateSpec:
    """A built-in aggregate that has a result also when a tuple leaves its window."""

    call: OverSpec
    origins: int


@dataclass(frozen=True)
class ActiveUdaSpec:
    """An aggregate of the user's that has a result also when a tuple leaves its window."""

    call: OverUdaSpec
    origins: int


@dataclass(frozen=True)
class PaneUdasSpec:
    """Aggregates of the user's over panes of time; tuples pass too if ``keeps_tuples``."""

    calls: tuple[TimePaneSpec, ...]
    group_by: tuple[str, ...]
    keeps_tuples: bool


@dataclass(frozen=True)
class StreamUdasSpec:
    """Aggregates of the user's on a bare stream."""

    calls: tuple[UdaSpec, ...]


@dataclass(frozen=True)
class StreamUnionSpec:
    """The first of tuples that are equal in every column and in time."""


@dataclass(frozen=True)
class PatternBranch:
    """One of the patterns of a group, and the columns of its results."""

    spec: PatternSpec
    output: pa.Schema


@dataclass(frozen=True)
class PatternGroupSpec:
    """Several patterns over the same tuples; a column tells to which of them a row belongs."""

    branches: tuple[PatternBranch, ...]


@dataclass(frozen=True)
class ChangelogSpec:
    """Rows of relations as they enter, and (all of them with ``all_``) as they leave."""

    stays: tuple[Lifetime | None, ...]
    columns: tuple[str, ...]
    slides: tuple[SlideInstants, ...] = ()
    all_: bool = False


@dataclass(frozen=True)
class RowChangelogSpec:
    """Rows of a window of rows as they enter and leave."""

    lifetime: RowLifetime
    columns: tuple[str, ...]
    slides: tuple[SlideInstants, ...] = ()


@dataclass(frozen=True)
class SampledChangelogSpec:
    """Rows of a relation as they are at ticks, which a second side has, and at slides."""

    stay: Lifetime | None
    columns: tuple[str, ...]
    slides: tuple[SlideInstants, ...] = ()


@dataclass(frozen=True)
class RStreamSpec:
    """All rows of a relation at every slide, or whenever anything changes; a second side has ticks."""

    stays: tuple[Lifetime | None, ...]
    columns: tuple[str, ...]
    slides: tuple[SlideInstants, ...] = ()


@dataclass(frozen=True)
class SetOperationsSpec:
    """A set operation on relations that vary."""

    spec: SetOperationSpec
    stays: tuple[Lifetime | None, ...]
    slides: tuple[SlideInstants, ...] = ()


@dataclass(frozen=True)
class GroupsSpec:
    """Aggregates over the groups of a relation that varies."""

    spec: GroupSpec
    lifetime: Lifetime | None
    slides: tuple[SlideInstants, ...] = ()


@dataclass(frozen=True)
class BoundsOfDaySpec:
    """Tuples from ``start`` on and before ``end``, of which some are times on the day of the first tuple."""

    start: int | None
    end: int | None
    of_day: tuple[bool, bool]


@dataclass(frozen=True)
class ScalarRowSpec:
    """The row of aggregates without GROUP BY, there from ``first`` on, or from the first change."""

    spec: GroupSpec
    first: int | float | None


@dataclass(frozen=True)
class BegunChangelogSpec:
    """Rows of a relation from the first instant at which it is not what it was at the instant ``first``."""

    stay: Lifetime | None
    columns: tuple[str, ...]
    first: int | float


@dataclass(frozen=True)
class AppendOnlyGroupsSpec(GroupsSpec):
    """Aggregates over the groups of a relation that nothing ever leaves."""


KernelSpec = (
    ReorderSpec
    | TieOrderSpec
    | StreamLimitSpec
    | RetimeSpec
    | ArrivalNumbersSpec
    | WindowSpec
    | WindowRankSpec
    | OverAggregatesSpec
    | OverUdasSpec
    | ActiveAggregateSpec
    | ActiveUdaSpec
    | PaneUdasSpec
    | StreamUdasSpec
    | StreamUnionSpec
    | PatternSpec
    | PatternGroupSpec
    | ChangelogSpec
    | RowChangelogSpec
    | SampledChangelogSpec
    | BoundsOfDaySpec
    | ScalarRowSpec
    | BegunChangelogSpec
    | RStreamSpec
    | SetOperationsSpec
    | GroupsSpec
    | AppendOnlyJoinSpec
    | InnerJoinSpec
    | OuterJoinSpec
    | SemiAntiJoinSpec
)
