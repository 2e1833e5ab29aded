"""Functions that only the local engine computes itself, beside Spark's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.errors import ExecutionError, NotExecutableError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.expressions import compile_expression
from millstream.types import BIGINT, DATE, STRING, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = [
    ColumnRef("", name, type_)
    for name, type_ in {"s": STRING, "n": BIGINT, "ts": TIMESTAMP, "dt": DATE}.items()
]
ROWS = [
    ("17/May/2015:10:05:03 +0200", 5, datetime(2026, 1, 5, 10, 20, 30, 500_000, UTC), date(2024, 2, 29)),
    ('{"a": {"b": [1, "x"]}}', -1, datetime(1969, 12, 31, 23, 59, 59, 1, UTC), date(1969, 7, 20)),
    ("2026-03-02 9:7", 1_700_000_000, datetime(2000, 2, 29, tzinfo=UTC), date(2025, 12, 31)),
    ("", 0, datetime(2026, 11, 15, 12, 0, tzinfo=UTC), date(2023, 1, 1)),
    (None, None, None, None),
]
TEXTS = (
    "try_to_timestamp(s, 'dd/MMM/yyyy:HH:mm:ss Z')",
    "try_to_timestamp(s, 'yyyy-MM-dd H:m[:s]')",
    "to_timestamp('2026-11-15 23:59:59.123456', 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
    "to_timestamp('15 November 2026 07:30 PM', 'd MMMM yyyy hh:mm a')",
    "to_timestamp('20261115T0730Z', \"yyyyMMdd'T'HHmmX\")",
    "to_date('15.11.2026', 'dd.MM.yyyy')",
    "to_date(ts)",
    "to_date('2026-11-15')",
    *(
        f"date_trunc('{unit}', ts)"
        for unit in ("SECOND", "minute", "HOUR", "day", "WEEK", "MONTH", "QUARTER")
    ),
    *(f"trunc(dt, '{unit}')" for unit in ("week", "MM", "quarter", "year", "nonsense")),
    "date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')",
    "date_format(ts, \"EEE d MMM yy, h 'o''clock' a\")",
    "date_format(dt, 'EEEE MMMM D')",
    "from_unixtime(n)",
    "from_unixtime(n, 'HH:mm')",
    "date_add(dt, 30)",
    "date_sub(dt, 366)",
    "datediff(dt, ts)",
    "add_months(dt, 12)",
    "add_months(dt, -1)",
    "last_day(dt)",
    "make_date(2026, 2, 28)",
    "weekday(dt)",
    "weekofyear(dt)",
    "dayname(dt)",
    "monthname(dt)",
    "regexp_extract(s, '(\\\\d+)/(\\\\w+)', 2)",
    "regexp_replace(s, '(\\\\d)(\\\\d)', '$2-$1')",
    "concat_ws('-', s, 'x', CAST(n AS STRING))",
    "substring_index(s, ':', 2)",
    "substring_index(s, ':', -1)",
    "translate(s, 'ab:', 'x-')",
    "get_json_object(s, '$.a.b[1]')",
    "get_json_object(s, '$.a')",
    "md5(s)",
    "sha1(s)",
    "sha2(s, 256)",
)


def values(text: str) -> list[object]:
    columns = [
        pa.array(column, arrow_type(known.type))
        for column, known in zip(zip(*ROWS, strict=True), SCHEMA, strict=True)
    ]
    return compile_expression(Expr((text,)), SCHEMA)(columns, len(ROWS)).to_pylist()


def test_functions_give_what_spark_gives(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, "s STRING, n BIGINT, ts TIMESTAMP, dt DATE")
    rows = frame.selectExpr(*(f"{text} AS c{i}" for i, text in enumerate(TEXTS))).toArrow()
    for i, text in enumerate(TEXTS):
        assert (text, values(text)) == (text, rows.column(i).to_pylist())


def test_a_text_of_another_form_stops_the_query() -> None:
    with pytest.raises(ExecutionError, match=r"'17/May.*' is no timestamp of the form 'yyyy'"):
        values("to_timestamp(s, 'yyyy')")


def test_letters_that_are_not_known_are_refused() -> None:
    with pytest.raises(NotExecutableError, match="the letter 'n' of a pattern of times"):
        values("to_timestamp(s, 'n')")
