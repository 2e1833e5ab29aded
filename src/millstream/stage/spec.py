"""What a stage is told before it starts: its inputs, where their columns are, and its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from millstream.kernels.base import Kernel
from millstream.progress.clauses import Promises

# Columns that a packer reads beside those of the user.
TIME = "__ms_time"
SEGMENT = "__ms_segment"
FILE = "__ms_file"
PARTITION = "__ms_partition"
SUBSTREAM = "__ms_substream"
PROMISE = "__ms_promise"
KEEP = "__ms_keep"
# What a stage adds to its results: the order of ties, and reports to the driver and to the next stage.
ORIGIN = "__ms_origin"
NUMBER = "__ms_number"
MARK = "__ms_mark"
TAG = "__ms_tag"

ORIGINS_PER_INPUT = 1 << 20
"""Source partitions are numbered through all inputs of a stage: no input has more than this."""


IN_ORDER = Promises()


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

    @property
    def judged_by_piece(self) -> bool:
        """Whether lateness can be told without showing all timestamps to all shards."""
        return self.promises.slack is not None


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
