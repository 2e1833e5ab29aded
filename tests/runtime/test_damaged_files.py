"""Corrupt input can be skipped and is named; leftovers of killed batches go from the directory of a sink."""

import gzip
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import MillstreamError

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM s (a INT, t INT) ORDER BY t SLACK 100 USING csv OPTIONS (path '{path}');"


def test_a_corrupt_file_fails_or_is_skipped_and_named(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.mkdir()
    (path / "1.csv").write_text("1,1\n")
    whole = gzip.compress(os.urandom(200_000).hex().encode())
    (path / "2.csv.gz").write_bytes(whole[: len(whole) // 2])
    (path / "3.csv").write_text("3,3\n")
    with ms.connect(spark) as mill:
        mill.execute(STREAM.format(path=path))
        with pytest.raises(MillstreamError):
            mill.start("SELECT a FROM s").collect()
        assert mill.corrupt_files == []
        mill.execute("SET millstream.on_corrupt_file = 'skip'")
        assert sorted(mill.start("SELECT a FROM s").collect().to_pydict()["a"]) == [1, 3]
        assert mill.corrupt_files == [str(path / "2.csv.gz")]
        mill.execute("SET millstream.on_corrupt_file = 'fail'")
        with pytest.raises(MillstreamError):
            mill.start("SELECT a FROM s").collect()


def test_leftovers_in_a_sink_are_removed_when_a_query_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("1,1\n")
    sink = tmp_path / "out"
    script = STREAM.format(path=tmp_path / "in") + (
        f"CREATE SINK w USING parquet OPTIONS (path '{sink}'); INSERT INTO w SELECT a, t FROM s;"
    )
    with ms.connect(spark, checkpoint=tmp_path / "kept") as mill:
        mill.execute(script)[0].wait()
    written = {path.name for path in sink.glob("part-*")}
    assert written
    empty, torn = sink / "part-00000-a-c000.snappy.parquet", sink / "part-00001-a-c000.snappy.parquet"
    older, other = sink / "part-00002-a-c000.snappy.parquet", sink / "mine.parquet"
    for path in (empty, torn, older, other):
        path.write_bytes(b"" if path is empty else b"PAR1")
    os.utime(older, (0, 0))
    with ms.connect(spark, checkpoint=tmp_path / "kept") as mill:
        mill.execute(script)[0].wait()
    left = {path.name for path in sink.glob("*.parquet")}
    assert {*written, older.name, other.name} <= left
    assert not {empty.name, torn.name} & left
