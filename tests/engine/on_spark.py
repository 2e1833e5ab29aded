"""Generated streams as files, and the answers of the engine on Spark in the oracle's words."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.catalog import Catalog
from millstream.catalog.entries import Registered, Stored, Stream, Table
from millstream.runtime.connection import Mill
from millstream.syntax import parse_script
from oracle import Arrivals, Input, Row
from tests.oracle.generate import Case

Rows = list[tuple[Any, ...]]


def without_heartbeats(case: Case) -> Mapping[str, Input]:
    """Files have no heartbeats in them."""
    return {
        name: Arrivals([[a for a in partition if isinstance(a, Row)] for partition in given.partitions])
        if isinstance(given, Arrivals)
        else given
        for name, given in case.inputs.items()
    }


def run(case: Case, mill: Mill, directory: Path, cuts: Sequence[int]) -> dict[str, Rows]:
    """The results of all queries of a case, whose streams are cut into files, one for each micro-batch."""
    reading = {}
    for name, schema in _schemas(case.script).items():
        given = case.inputs[name]
        if isinstance(given, Arrivals):
            rows = [dict(a.values) for partition in given.partitions for a in partition if isinstance(a, Row)]
        else:
            rows = [dict(row) for row in given]
            cuts = ()
        path = directory / name
        path.mkdir()
        bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
        for number, (start, end) in enumerate(itertools.pairwise(bounds)):
            file = path / f"{number}.parquet"
            pq.write_table(pa.Table.from_pylist(rows[start:end], schema), file)
            os.utime(file, (1_800_000_000 + number, 1_800_000_000 + number))
        options = (
            f"path '{path}', maxFilesPerTrigger '1'" if isinstance(given, Arrivals) else f"path '{path}'"
        )
        reading[name] = f"USING parquet OPTIONS ({options})"
    queries = mill.execute(case.script_reading(reading))
    try:
        tables = {query.name: query.collect() for query in queries}
    finally:
        for query in queries:
            query.close()
    return {
        f"q{i + 1}": [tuple(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
        for i, table in enumerate(tables.values())
    }


def _schemas(script: str) -> dict[str, pa.Schema]:
    """The Arrow schemas of streams and tables as they are declared."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructField, StructType

    from millstream.spark.session.spark_types import to_spark_type

    catalog = Catalog()
    for statement in parse_script(script):
        analyse(statement, catalog)
    found = {}
    for entry in catalog.entries(Stream, Table):
        if (
            isinstance(entry, Stream | Table)
            and entry.schema
            and isinstance(entry.origin, Registered | Stored)
        ):
            fields = [StructField(f.name, to_spark_type(f.type)) for f in entry.schema]
            found[entry.name] = to_arrow_schema(StructType(fields), timezone="UTC")
    return found
