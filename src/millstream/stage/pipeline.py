"""What a stage is told before it starts: its inputs, where their columns are, and its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.kernels.core.kernel import Kernel
from millstream.progress.disorder_clauses import Promises

# Columns that a packer reads beside those of the user.
TIME = "__ms_time"
SEGMENT = "__ms_segment"
FILE = "__ms_file"
PARTITION = "__ms_partition"
SUBSTREAM = "__ms_substream"
PROMISE = "__ms_promise"
KEEP = "__ms_keep"
COUNTED = "__ms_counted"
# What a stage adds to its results: the order of ties, and reports to the driver and to the next stage.
ORIGIN = "__ms_origin"
NUMBER = "__ms_number"
MARK = "__ms_mark"
TAG = "__ms_tag"

ORIGINS_PER_INPUT = 1 << 20
"""Source partitions are numbered through all inputs of a stage: no input has more than this."""


IN_ORDER = Promises()

# Values of further attributes about which something is promised: numbered, and STAMP for the timestamp of the
# stream where a window is measured along another attribute.
LINE = "__ms_line"
STAMP = "__ms_stamp"


@dataclass(frozen=True)
class ProgressAttribute:
    """An attribute about which a stream promises something; None is its timestamp.

    Its values are in ``column``. Sub-streams, and the tuples that are promises about it, are in columns of
    the usual names with the ``suffix``.
    """

    attribute: str | None
    column: str
    type: pa.DataType
    promises: Promises
    suffix: str = ""

    @property
    def substream(self) -> str:
        return SUBSTREAM + self.suffix

    @property
    def promise(self) -> str:
        return PROMISE + self.suffix


@dataclass(frozen=True)
class Input:
    """One input of a pipeline.

    ``columns`` are shipped; ``key`` names an integer column that identifies the partition by itself,
    otherwise the columns KEY and KEY2 are among the others. ``chained`` input comes from another stage: its
    order and its punctuation are settled.
    """

    name: str
    columns: pa.Schema
    time_type: pa.DataType
    promises: Promises = IN_ORDER
    key: str | None = None
    chained: bool = False
    spread: bool = False
    """Tuples may go to any shard, as nothing that is done with them depends on others."""
    ties: tuple[str, ...] = ()
    """Columns that give the order of tuples with the same time, where that of arrival means nothing: the
    results of a window come from many shards, and are in the order of their groups."""
    partitions: int = 1
    """How many source partitions there are at least: nothing is promised before each has been heard of."""
    stored: bool = False
    """A table: nothing is promised about it, but all of it is there."""
    attribute: str | None = None
    """What TIME is, if it is not the stream's timestamp: the attribute along which windows are measured."""
    suffix: str = ""
    """Of the columns for promises about that attribute."""
    others: tuple[ProgressAttribute, ...] = ()
    """The other attributes about which something is promised: who breaks that is late too."""
    latent: bool = False
    """Whether TIME is the clock of the micro-batch, after which tuples are stamped one by one."""
    counted: bool = False
    """Whether COUNTED says which rows are tuples of the stream that a window is over: where that has been
    filtered, its newest tuple is not the newest that was read."""
    apart: bool = False
    """Whether kernels want to know what each sub-stream has promised for itself."""
    changes: bool = False
    """Whether rows are changes of a relation, and not tuples of a stream."""

    @property
    def lines(self) -> tuple[ProgressAttribute, ...]:
        """All attributes about which something is promised, TIME first."""
        own = ProgressAttribute(self.attribute, TIME, self.time_type, self.promises, self.suffix)
        return (own, *self.others)

    @property
    def stamp(self) -> str | None:
        """The column of the stream's timestamp, without which a row is no tuple; a latent stream has none."""
        return next((line.column for line in self.lines if line.attribute is None), None)

    @property
    def judged_by_piece(self) -> bool:
        """Whether lateness can be told without showing all timestamps to all shards."""
        plain = not self.others and self.attribute is None and not self.counted
        return plain and self.promises.slack is not None

    def without_generosity(self) -> Input:
        """The same for those who can do nothing with late tuples: to them they are just late."""

        def strict(promises: Promises) -> Promises:
            return replace(promises, generous=False)

        others = tuple(replace(line, promises=strict(line.promises)) for line in self.others)
        return replace(self, promises=strict(self.promises), others=others)


@dataclass(frozen=True)
class Pipeline:
    """Kernels over one partitioning: what a shard does with its tuples.

    ``output`` is the schema of the results without what travels along. With ``late`` the result is what came
    too late, and there are no kernels.
    """

    inputs: tuple[Input, ...]
    make_kernels: Callable[[], list[Kernel]]
    output: pa.Schema
    time_type: pa.DataType
    late: bool = False
    ordered: bool = True
    """Whether the order of results with the same time travels along."""
    marked: bool = False
    """Whether reports stand among the results, because another stage has to know how far this one is."""
