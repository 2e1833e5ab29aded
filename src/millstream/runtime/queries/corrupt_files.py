"""Corrupt input files: a query fails on one, or skips it and reports it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import NotExecutableError
from millstream.scratch import temporary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "millstream.on_corrupt_file"
_OF_SPARK = "spark.sql.files.ignoreCorruptFiles"
_NAMED = re.compile(r"corrupted file: (?:path: )?(.+?)(?:, range: |$)")


class CorruptFiles:
    """The corrupt files that queries of a connection have skipped.

    Spark skips a file from its first unreadable byte on and only writes a warning to its log. The warnings
    are diverted to a file of their own, from which the names are read.
    """

    def __init__(self) -> None:
        self.skips = False
        self._warnings: Path | None = None

    def apply(self, spark: SparkSession) -> None:
        """Pass the setting to Spark; if it was never set, Spark's own setting is left unchanged."""
        if self.skips and self._warnings is None:
            if not (spark.sparkContext.master or "").startswith("local"):
                raise NotExecutableError(
                    f"{SETTING} = 'skip' needs local Spark: files skipped elsewhere could not be reported",
                    hint="remove the corrupt files, or run with local Spark",
                )
            from millstream.spark.errors.log_warnings import divert

            self._warnings = temporary("corrupt-") / "files.log"
            divert(spark, ".*corrupted file: .*", self._warnings)
        if self._warnings is not None:
            spark.conf.set(_OF_SPARK, str(self.skips).lower())

    def skipped(self) -> list[str]:
        """Return the names of all files skipped so far, in the order of their first warning."""
        if self._warnings is None or not self._warnings.exists():
            return []
        names = _NAMED.findall(self._warnings.read_text(errors="replace").replace("\n", "\n\n"))
        return list(dict.fromkeys(re.sub(r"^file:/+", "/", name.strip()) for name in names))
