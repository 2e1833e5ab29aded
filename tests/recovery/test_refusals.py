"""Refusals of checkpoints of other queries: state is meaningless to another query."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import ExecutionError
from tests.recovery.bids import bids, declared, write

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
]

SUMS = "SELECT item, sum(price) OVER (PARTITION BY item ROWS 3 PRECEDING) AS s FROM Bid"
TOTAL = """CREATE AGGREGATE total(x DOUBLE) : DOUBLE { TABLE state(s DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE : { UPDATE state SET s = s + x; INSERT INTO RETURN SELECT s FROM state; } };"""
Results = list[list[dict[str, object]]]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("refusals")
    write(directory / "bids", bids(seed=1, count=20), files=1)
    return declared(str(directory / "bids"))


def run(spark: SparkSession, checkpoint: Path, script: str) -> Results:
    with ms.connect(spark, checkpoint=checkpoint) as mill:
        queries = mill.execute(script)
        for query in queries:
            query.wait()
        return [query.collect().to_pylist() for query in queries if query.log is not None]


@dataclass(frozen=True)
class Ended:
    """A run that has ended, and what it left."""

    checkpoint: Path
    script: str
    rows: Results


@pytest.fixture(scope="module")
def ended(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, stream: str) -> Ended:
    checkpoint = tmp_path_factory.mktemp("ended") / "checkpoint"
    return Ended(checkpoint, stream + SUMS, run(spark, checkpoint, stream + SUMS))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ROWS 3 PRECEDING", "ROWS 4 PRECEDING"),
        ("SLACK INTERVAL 2 SECONDS", "SLACK INTERVAL 9 SECONDS"),
        ("price DOUBLE", "price BIGINT"),
    ],
)
def test_a_changed_query_or_stream(spark: SparkSession, ended: Ended, before: str, after: str) -> None:
    assert before in ended.script
    with pytest.raises(ExecutionError, match="is not the one whose checkpoint is in"):
        run(spark, ended.checkpoint, ended.script.replace(before, after))


def test_another_way_of_writing_the_same_goes_on(spark: SparkSession, ended: Ended) -> None:
    script = ended.script.replace("SELECT item, sum(price)", "select item, -- as before\n SUM( price )")
    assert script != ended.script
    assert run(spark, ended.checkpoint, script) == ended.rows


def test_another_number_of_partitions(spark: SparkSession, ended: Ended) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.shuffle.partitions", "3")
    with pytest.raises(ExecutionError, match="partitions, and this run would have 3") as raised:
        run(other, ended.checkpoint, ended.script)
    assert str(raised.value.hint).startswith("add --set spark.sql.shuffle.partitions=")


def test_one_query_more(spark: SparkSession, ended: Ended) -> None:
    with pytest.raises(ExecutionError, match="was written by queries 'q1'"):
        run(spark, ended.checkpoint, f"{ended.script}; {SUMS.replace('ROWS 3', 'ROWS 5')};")


def test_the_same_script_says_the_same_again_whatever_was_refused(spark: SparkSession, ended: Ended) -> None:
    assert len(ended.rows[0]) == 20
    assert run(spark, ended.checkpoint, ended.script) == ended.rows


def test_a_changed_aggregate(spark: SparkSession, tmp_path: Path, stream: str) -> None:
    script = f"{stream} {TOTAL} SELECT item, total(price) AS t FROM Bid GROUP BY item"
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
