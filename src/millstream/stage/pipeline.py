"""Description of a stage: its inputs, their columns, and its kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.kernels.kernel_specs import KernelSpec
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
# Columns added to results: the order of ties, and reports to the driver and to the next stage.
ORIGIN = "__ms_origin"
NUMBER = "__ms_number"
MARK = "__ms_mark"
TAG = "__ms_tag"

ORIGINS_PER_INPUT = 1 << 20
"""Source partitions are numbered through all inputs of a stage: no stream has more than this."""

MOST_ORIGINS = 1 << 30
"""Largest number of origins that the inputs of a stage have together."""


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
    """The least number of source partitions; the watermark does not advance before each has sent rows."""
    stored: bool = False
    """A table: nothing is promised about it, but all of it is there."""
    attribute: str | None = None
    """The attribute in TIME, if it is not the stream's timestamp."""
    suffix: str = ""
    """The suffix of the columns for disorder clauses on that attribute."""
    others: tuple[ProgressAttribute, ...] = ()
    """The other attributes about which something is promised: who breaks that is late too."""
    latent: bool = False
    """True if TIME is the clock of the micro-batch, from which tuples get successive instants."""
    counted: bool = False
    """True if the column COUNTED marks the tuples of a filtered stream, whose newest tuple is not the newest
    of the input."""
    apart: bool = False
    """True if kernels use the watermarks of sub-streams."""
    changes: bool = False
    """True if rows are changes of a relation, and not tuples of a stream."""
    first_origin: int | None = None
    """Smallest origin of its tuples; by default inputs have ORIGINS_PER_INPUT each."""

    @property
    def lines(self) -> tuple[ProgressAttribute, ...]:
        """The attributes with disorder clauses, TIME first."""
        own = ProgressAttribute(self.attribute, TIME, self.time_type, self.promises, self.suffix)
        return (own, *self.others)

    @property
    def stamp(self) -> str | None:
        """The column of the stream's timestamp, which every tuple has; None for a latent stream."""
        return next((line.column for line in self.lines if line.attribute is None), None)

    @property
    def judged_by_piece(self) -> bool:
        """True if shards can find late tuples without the timestamps of all rows."""
        plain = not self.others and self.attribute is None and not self.counted
        return plain and self.promises.slack is not None

    def without_generosity(self) -> Input:
        """Return the input for kernels that cannot use late tuples of GENEROUS streams."""

        def strict(promises: Promises) -> Promises:
            return replace(promises, generous=False)

        others = tuple(replace(line, promises=strict(line.promises)) for line in self.others)
        return replace(self, promises=strict(self.promises), others=others)


@dataclass(frozen=True)
class Pipeline:
    """Kernels over one partitioning.

    ``output`` is the schema of the results without the added columns. With ``late`` the results are the late
    tuples, and there are no kernels.
    """

    inputs: tuple[Input, ...]
    kernels: tuple[KernelSpec, ...]
    output: pa.Schema
    time_type: pa.DataType
    late: bool = False
    ordered: bool = True
    """True if results carry the order of ties."""
    marked: bool = False
    """True if results contain reports of the frontier for another stage."""


def tagged_name(tag: int, name: str) -> str:
    """Return the name of a column of one pipeline among those of several."""
    return f"p{tag}_{name}"
