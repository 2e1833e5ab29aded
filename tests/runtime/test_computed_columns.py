"""Computed columns end to end: Spark and the local engine give the same rows, whatever fails."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.testing import LocalEngine, Streams

LINES = """\
1 10/Oct/2000:13:55:36 -0700 GET /a 200 1000
2 10/Oct/2000:13:55:38 -0700 "/b" ,c 404 2147483647
garbage, with a comma
4 10/Oct/2000:13:55:37 -0700 GET /a many 3
5 31/Feb/2000:13:55:37 -0700 GET /a 200 4
"""
SCRIPT = """
CREATE OR REPLACE FUNCTION word(line STRING, n INT) : STRING AS split_part(line, ' ', n);
CREATE OR REPLACE STREAM hit (
    line STRING,
    at TIMESTAMP AS (to_timestamp(word(line, 2) || ' ' || word(line, 3), 'dd/MMM/yyyy:HH:mm:ss Z')),
    status INT AS (CAST(word(line, 6) AS INT)),
    size INT AS (CAST(word(line, 7) AS INT)),
    more INT AS (size + 1)
) ORDER BY at SLACK INTERVAL 1 MINUTE BAD INTO bad USING text OPTIONS (path '{0}/log.txt');
CREATE OR REPLACE STREAM reading (ms BIGINT, v INT, at AS (timestamp_millis(ms)),
  day DATE AS (CAST(at AS DATE))) ORDER BY at USING csv OPTIONS (path '{0}/readings.csv') BAD INTO unread;
CREATE OR REPLACE TABLE price (cents STRING, price INT AS (CAST(cents AS INT) / 100))
  USING csv OPTIONS (path '{0}/prices.csv');
CREATE OR REPLACE STREAM entry (line STRING, n AS (split_part(line, ' ', 1)))
  USING text OPTIONS (path '{0}/log.txt');
CREATE OR REPLACE STREAM one AS SELECT n AS number, line FROM entry e WHERE line <> '';
CREATE OR REPLACE STREAM few ORDER BY n LATE INTO tardy BAD INTO wrong AS
  SELECT -CAST(number AS INT) AS n, CAST(word(line, 6) AS INT) AS status FROM one WHERE number <> '5';
SELECT n, status FROM few;
SELECT n FROM tardy;
SELECT record, reason FROM wrong;
SELECT line, at, status, more FROM hit;
SELECT reason, record FROM bad;
SELECT window_end, count(*) AS n FROM hit [TUMBLE 1 SECOND];
SELECT ms, at, day FROM reading;
SELECT reason, record FROM unread;
SELECT v, price FROM reading JOIN price ON cast(v AS STRING) = cents OR price IS NULL
"""


def write(directory: Path) -> str:
    (directory / "log.txt").write_text(LINES)
    (directory / "readings.csv").write_text("1000,1\n,2\n2500,100\nx,3\n")
    (directory / "prices.csv").write_text("100\ndear\n")
    return SCRIPT.format(directory)


@pytest.mark.spark
def test_spark_computes_the_columns_that_the_local_engine_computes(
    tmp_path: Path, spark: SparkSession
) -> None:
    script = write(tmp_path)
    expected = Streams(LocalEngine(), tmp_path).run_all(script)
    reasons = {record[9]: reason for reason, record in expected[4][1:]}
    assert reasons == {
        "2": "column 'more' cannot be computed",
        "g": "column 'at' cannot be computed",
        "4": "column 'status' cannot be computed",
        "5": "column 'at' cannot be computed",
    }
    with ms.connect(spark) as mill:
        assert Streams(mill, tmp_path).run_all(script) == expected


@pytest.mark.spark
def test_a_registered_frame_has_computed_columns(spark: SparkSession) -> None:
    import pyarrow as pa

    with ms.connect(spark) as mill:
        rows = pa.table({"ms": [2000, 1000, None], "v": [1, 2, 3]})
        made = {"at": "timestamp_millis(ms)", "w": "v * 2"}
        mill.register_stream("r", rows, "at", slack="5 seconds", bad_into="b", computed=made, ends=True)
        found = mill.start("SELECT ms, w FROM r").collect()
        assert found.to_pylist() == [{"ms": 1000, "w": 4}, {"ms": 2000, "w": 2}]
