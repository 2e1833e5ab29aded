"""Functions whose first argument is a unit of time: in the interpreter, and the same on Spark."""

from datetime import UTC, datetime

import pandas as pd
import pytest
from pyspark.sql import SparkSession

import millstream as ms
from oracle import Arrivals, Row, answer

UNITS = [
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR"),
    *("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),
]
# Spark's grammar has DAYOFYEAR for differences too, but cannot compute them.
COUNTED = [unit for unit in UNITS if unit != "DAYOFYEAR"]
TIMES = [
    "2026-01-31 10:00:00",
    "2026-02-28 10:00:00",
    "2026-03-31 09:59:59.999999",
    "2024-02-29 23:00:00",
    "2025-12-31 00:00:00",
]
OTHER = "TIMESTAMP '2026-01-31 10:00:00'"
MONTHLY = "TIMESTAMP '2025-02-28 10:00:00'"
CALLS = [
    *(f"timestampdiff({unit}, t, {other})" for unit in COUNTED for other in (OTHER, MONTHLY)),
    *(f"datediff({unit}, {OTHER}, t)" for unit in COUNTED),
    *(f"timestampadd({unit}, {n}, t)" for unit in UNITS for n in (13, -1)),
    "dateadd(HOUR, 1, t)",
    "date_add(hour, 1, t)",
    "date_diff(DAY, t, DATE '2026-02-01')",
]


def interpreted(calls: list[str]) -> list[tuple[object, ...]]:
    rows = [
        Row({"n": n, "t": datetime.fromisoformat(time).replace(tzinfo=UTC)}) for n, time in enumerate(TIMES)
    ]
    script = f"CREATE STREAM z (n INT, t TIMESTAMP) ORDER BY n; SELECT {', '.join(calls)} FROM z"
    return [tuple(row) for row in answer(script, {"z": Arrivals([rows])}).values]


def test_whole_units_are_counted_towards_zero() -> None:
    calls = [
        "timestampdiff(MINUTE, t, TIMESTAMP '2026-03-31 10:00:00') AS m",
        f"datediff(MONTH, t, {OTHER}) AS n",
    ]
    assert interpreted(calls) == [(84_960, 0), (44_640, 0), (0, -1), (1_095_060, 23), (130_200, 1)]


def test_a_column_may_have_the_name_of_a_unit() -> None:
    script = "CREATE STREAM z (day DATE, t INT) ORDER BY t; SELECT datediff(day, day) AS d, day FROM z"
    with ms.connect() as mill:
        mill.analyse(script)


@pytest.mark.spark
def test_the_same_on_spark(spark: SparkSession) -> None:
    named = [f"{call} AS c{i}" for i, call in enumerate(CALLS)]
    with ms.connect(spark) as mill:
        frame = pd.DataFrame({"n": range(len(TIMES)), "t": pd.to_datetime(TIMES, format="ISO8601", utc=True)})
        mill.register_stream("z", frame, order_by="n")
        found = mill.start(f"SELECT {', '.join(named)} FROM z").collect().to_pydict()
    expected = list(zip(*interpreted(named), strict=True))
    for i, call in enumerate(CALLS):
        assert found[f"c{i}"] == list(expected[i]), call
