"""Millstream: a data stream management system on Spark.

>>> import millstream as ms
>>> mill = ms.connect()                                   # embedded local Spark  # doctest: +SKIP
>>> mill.execute("CREATE STREAM s (a INT) USING csv OPTIONS (path 's.csv')")      # doctest: +SKIP
>>> for row in mill.start("SELECT a FROM s WHERE a > 1").results(): print(row)    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import (
    AnalysisError,
    EslSyntaxError,
    ExecutionError,
    MillstreamError,
    MillstreamWarning,
    NoteWarning,
    NotExecutableError,
    RejectedTuplesWarning,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.runtime.connection import Mill

__all__ = [
    "AnalysisError",
    "EslSyntaxError",
    "ExecutionError",
    "MillstreamError",
    "MillstreamWarning",
    "NotExecutableError",
    "NoteWarning",
    "RejectedTuplesWarning",
    "connect",
]

__version__ = "0.1.0"


def connect(
    spark: SparkSession | None = None,
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    checkpoint: str | Path | None = None,
    allow_python: bool = True,
    allow: Iterable[str] = (),
) -> Mill:
    """Return a connection: to embedded local Spark, to a ``master``, or on the caller's Spark session.

    Spark is started when it is first needed. ``settings`` are Spark's own. With a ``checkpoint`` directory,
    queries of the same names go on in a later run where they were stopped, or killed, in an earlier one.
    Without ``allow_python``, statements can neither run code nor reach other hosts; ``allow`` names formats,
    path schemes and databases that they may use nevertheless.
    """
    # Imported here so that `import millstream` costs nothing.
    from millstream.runtime.connection import Mill

    directory = Path(checkpoint) if checkpoint else None
    return Mill(
        spark,
        master=master,
        settings=settings,
        checkpoint=directory,
        allow_python=allow_python,
        allow=allow,
    )
