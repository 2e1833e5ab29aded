"""What a checkpoint was not made for is refused, and refused again: state means nothing to another query."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.recovery.bids import bids, declared, write

import millstream as ms
from millstream.errors import ExecutionError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
]

SUMS = "SELECT item, sum(price) OVER (PARTITION BY item ROWS 3 PRECEDING) AS s FROM Bid"


@pytest.fixture
def stream(tmp_path: Path) -> str:
    write(tmp_path / "bids", bids(seed=1, count=20), files=1)
    return declared(str(tmp_path / "bids"))


def run(spark: SparkSession, checkpoint: Path, script: str) -> list[list[dict[str, object]]]:
    with ms.connect(spark, checkpoint=checkpoint) as mill:
        queries = mill.execute(script)
        for query in queries:
            query.wait()
        return [query.collect().to_pylist() for query in queries if query.log is not None]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ROWS 3 PRECEDING", "ROWS 4 PRECEDING"),
        ("SLACK INTERVAL 2 SECONDS", "SLACK INTERVAL 9 SECONDS"),
        ("price DOUBLE", "price BIGINT"),
    ],
)
def test_a_changed_query_or_stream(
    spark: SparkSession, tmp_path: Path, stream: str, before: str, after: str
) -> None:
    script = stream + SUMS
    assert before in script
    run(spark, tmp_path / "checkpoint", script)
    with pytest.raises(ExecutionError, match="is not the one whose checkpoint is in"):
        run(spark, tmp_path / "checkpoint", script.replace(before, after))


def test_a_changed_aggregate(spark: SparkSession, tmp_path: Path, stream: str) -> None:
    script = f"""{stream} CREATE AGGREGATE total(x DOUBLE) : DOUBLE {{ TABLE state(s DOUBLE);
        INITIALIZE : {{ INSERT INTO state VALUES (x); }}
        ITERATE : {{ UPDATE state SET s = s + x; INSERT INTO RETURN SELECT s FROM state; }} }};
        SELECT item, total(price) AS t FROM Bid GROUP BY item"""
    run(spark, tmp_path / "checkpoint", script)
    with pytest.raises(ExecutionError, match="is not the one whose checkpoint is in"):
        run(spark, tmp_path / "checkpoint", script.replace("s + x", "s + 2 * x"))


def test_a_directory_that_is_not_empty_however_often_it_is_tried(
    spark: SparkSession, tmp_path: Path, stream: str
) -> None:
    sink = tmp_path / "sink"
    sink.mkdir()
    (sink / "mine.txt").write_text("precious")
    script = f"{stream} CREATE SINK s USING parquet OPTIONS (path '{sink}'); INSERT INTO s {SUMS};"
    for _ in range(2):
        with pytest.raises(ExecutionError, match="is not empty"):
            run(spark, tmp_path / "checkpoint", script)


def test_one_query_more(spark: SparkSession, tmp_path: Path, stream: str) -> None:
    checkpoint = tmp_path / "checkpoint"
    run(spark, checkpoint, stream + SUMS)
    with pytest.raises(ExecutionError, match="is of a script that read a stream together for 'q1'"):
        run(spark, checkpoint, f"{stream} {SUMS}; {SUMS.replace('ROWS 3', 'ROWS 5')};")
