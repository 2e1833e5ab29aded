"""Types from analysis without Spark against those of Spark's analyzer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException

from millstream.analysis.types.expression_types import Typer, field_type, from_datatype
from millstream.catalog.functions import builtin_names
from millstream.errors import AnalysisError
from millstream.syntax import parse_expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from sqlglot import exp

    from millstream.types import Type

pytestmark = pytest.mark.spark

COLUMNS = {
    "b": "BOOLEAN",
    "y": "TINYINT",
    "h": "SMALLINT",
    "i": "INT",
    "l": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "n": "DECIMAL(10, 2)",
    "w": "DECIMAL(38, 10)",
    "s": "STRING",
    "z": "BINARY",
    "day": "DATE",
    "t": "TIMESTAMP",
    "u": "TIMESTAMP_NTZ",
    "gap": "INTERVAL DAY TO SECOND",
    "age": "INTERVAL YEAR TO MONTH",
    "xs": "ARRAY<INT>",
    "ss": "ARRAY<STRING>",
    "m": "MAP<STRING, INT>",
    "p": "STRUCT<x: INT, y: STRING>",
    "v": "VARIANT",
}

# Every pair of these with every operator.
OPERATORS = ("+", "-", "*", "/", "=", "AND")
OPERANDS = ("b", "i", "l", "d", "n", "s", "day", "t", "gap", "xs", "NULL")

RIGHT = """
    1 | 5000000000 | 99999999999999999999 | 1.5 | 0.05 | 0.0 | 1. | .5 | 1e3 | -2147483648 | 1L | 1S | 1Y
    1.0D | 1F | 1BD | 1.5BD | 'a' | X'1F' | NULL | TRUE | DATE '2020-01-01'
    TIMESTAMP '2020-01-01 00:00:00' | TIMESTAMP_NTZ '2020-01-01 00:00:00' | INTERVAL '1' DAY
    INTERVAL 1 DAY 2 HOURS | INTERVAL 2 MONTHS | INTERVAL '1 2:3:4' DAY TO SECOND | n + 1 | n * 100
    n + 5000000000 | n + 1L | n * 1Y | n * 1S | n + -100 | w * w | w / w | w % n | 1 / 1.5 | i + 1.5 | s + 1
    day + INTERVAL 1 DAY | day + INTERVAL 1 HOUR | day + INTERVAL 1 MONTH | day - day + day
    INTERVAL 1 DAY * 2 | INTERVAL 1 DAY + INTERVAL 1 HOUR | -INTERVAL 1 DAY | -s | -n | ~y
    dateadd(DAY, 1, day) | timestampadd(HOUR, 1, u) | datediff(DAY, day, t) | datediff(day, t)
    EXTRACT(SECOND FROM t) | EXTRACT(HOUR FROM gap) | EXTRACT(MONTH FROM age) | date_part('week', day)
    current_date | current_timestamp | current_user | now() | localtimestamp() | i IN (1, '7', 2.5)
    (i, s) = (1, 'a') | p = named_struct('x', 1L, 'y', 'a') | b IS TRUE | NOT s | b AND s
    i BETWEEN 1 AND '7' | s LIKE ANY ('a', 'b') | xs = array(1L) | i IN (SELECT 1) | EXISTS (SELECT 1)
    CASE WHEN b THEN 1 WHEN b THEN 'a' ELSE 2.5 END | CASE s WHEN 1 THEN 'a' END | if(b, 1, 2.5)
    coalesce(w, CAST(1 AS DECIMAL(38, 0))) | coalesce(i, s) | coalesce(xs, ss) | nullif(i, 1.5)
    nvl(i, 2.5) | CAST(s AS DECIMAL(5, 2)) | TRY_CAST(s AS DATE) | i::STRING | decimal(i)
    CAST(xs AS ARRAY<STRING>) | upper(i) | substring(z, 1) | trim(BOTH 'x' FROM s) | position('a' IN s)
    overlay(s PLACING 'x' FROM 1) | concat(i, s) | concat(z, z) | concat(xs, array(1L))
    concat_ws(',', ss, s) | split(s, ',') | reverse(xs) | round(n, 1) | round(n, -1) | round(i, 1) | ceil(n)
    ceil(d, 1) | floor(f) | abs(s) | mod(n, 3) | sign(gap) | greatest(1, 2.5) | greatest(day, t) | pow(i, i)
    try_add(n, 3) | try_divide(i, 2) | nanvl(f, d) | date_add(t, 1) | year(s) | date_trunc('day', day)
    months_between(day, t) | to_date(i) | last_day(t) | xs[0] | m['a'] | m.a | p.x | p['y'] | array(p).x
    struct(i, s AS q, 1) | named_struct('a', 1) | (i + 1, s) | array(1, 'a') | array()
    map('a', 1, 'b', 2.5) | size(m) | element_at(m, 'a') | array_append(xs, 1L) | map_keys(m)
    map_entries(m) | sequence(day, t, INTERVAL 1 DAY) | array_max(xs) | flatten(array(xs))
    transform(xs, x -> x + 1.5) | filter(xs, (x, j) -> x > j) | exists(xs, x -> x > 1)
    transform(array(xs), x -> transform(x, y -> y + 1.5)) | aggregate(xs, 0, (a, x) -> a + x, a -> a * 1.5)
    count(*) | count(DISTINCT i, s) | sum(y) | sum(n) | sum(w) | sum(s) | sum(t) | sum(gap) | avg(n)
    avg(w) | avg(age) | min(b) | max(p) | first(s) IGNORE NULLS | any_value(i) | mode(s) | min_by(s, i)
    max_by(s, i, 2) | collect_list(i) | collect_set(p) | stddev(s) | corr(i, d) | median(i) | median(gap)
    bool_and(s) | any(b) | percentile(i, array(0.5, 0.9)) | percentile_disc(0.5) WITHIN GROUP (ORDER BY n)
    approx_percentile(n, 0.5) | listagg(s, ',') WITHIN GROUP (ORDER BY i) | string_agg(z)
    approx_count_distinct(m) | bit_and(h) | sum(i) FILTER (WHERE b) OVER (PARTITION BY s)
    rank() OVER (ORDER BY i) | percent_rank() OVER (ORDER BY i) | lag(i, 1, 2.5) OVER (ORDER BY i)
    nth_value(s, 2) OVER (ORDER BY i) | first_value(s) OVER (ORDER BY i)
"""

WRONG = """
    b + 1 | xs + 1 | t + 1 | t + '1 day' | day + 1L | s + s | d DIV 2 | -b | ~n | i & d | b * gap | b = 1
    t > 5 | xs = 1 | m = m | gap > age | xs = array('x') | i <=> b | i IS TRUE | i BETWEEN 1 AND b | i AND b
    s OR s | NOT i | xs LIKE 'a' | s RLIKE xs | i IN (1, b) | i IN (day) | s IN (1, b) | (i, s) = (1.5, 'a')
    CASE WHEN b THEN 1 ELSE b END | CASE WHEN s THEN 1 END | CASE i WHEN b THEN 1 END | if(s, 1, 2)
    if(b, 1, TRUE) | CAST(b AS DATE) | CAST(day AS INT) | CAST(s AS ARRAY<INT>) | TRY_CAST(t AS BOOLEAN)
    int(day) | sum(b) | sum(day) | avg(b) | avg(u) | stddev(t) | min(m) | max(v) | median(b) | count_if(i)
    bool_and(i) | max_by(s, m) | bit_xor(s) | collect_set(m) | sum(i) FILTER (WHERE s) | count() | sum(i, i)
    percentile(b, 0.5) | lag(i, 1, b) OVER (ORDER BY i) | no_such_function(1) | lower() | lower(1, 2)
    pi(1) | lower(xs) | size(s) | coalesce() | coalesce(i, b) | greatest(i) | greatest(s, i)
    array(1, TRUE) | map(1) | map(m, 1) | nullif(i, b) | xs['a'] | xs[1.5] | p.z | s.x | i[0]
    element_at(m, 1) | array_contains(xs, 'a') | year(i) | date_add(day, 1L) | EXTRACT(YEAR FROM gap)
    EXTRACT(EPOCH FROM t) | filter(xs, x -> x) | transform(xs, x -> x + b)
    aggregate(xs, 0.0, (a, x) -> a + x) | timestampadd(DAY, 1, i) | exp(b) | hex(xs) | concat(xs, s)
    concat(m)
"""


def listed(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


def column_type(node: exp.Column) -> Type:
    name, *fields = (part.name for part in node.parts)
    if name not in COLUMNS:
        raise AnalysisError(f"unknown column '{name}'")
    type_ = from_datatype(parse_expression(f"CAST(x AS {COLUMNS[name]})").args["to"])
    for field in fields:
        type_ = field_type(type_, field, node)
    return type_


def query_type(query: exp.Query) -> Type:
    return typer.type_of(query.selects[0])


typer = Typer(column=column_type, query=query_type)


def our_type(expression: str) -> str | None:
    """The type by our typer; None for a mistake."""
    try:
        return str(typer.type_of(parse_expression(expression)))
    except AnalysisError:
        return None


def spark_type(spark: SparkSession, expression: str) -> str | None:
    """The type by Spark, as far as our types go: of intervals we know whether they count days only."""
    try:
        text = spark.sql(f"SELECT {expression} AS r FROM typed_row").schema[0].dataType.simpleString()
    except AnalysisException:
        return None
    text = re.sub(
        r"interval \w+ to (hour|minute|second)|interval (hour|minute|second)", "interval day to second", text
    )
    return re.sub(r"interval (year|month)(?! to)", "interval year to month", text)


@pytest.fixture(scope="module", autouse=True)
def _typed_row(spark: SparkSession) -> Iterator[None]:
    columns = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in COLUMNS.items())
    spark.sql(f"SELECT {columns}").createOrReplaceTempView("typed_row")
    yield
    spark.catalog.dropTempView("typed_row")


@pytest.mark.parametrize("expression", listed(RIGHT))
def test_same_type(spark: SparkSession, expression: str) -> None:
    ours = our_type(expression)
    assert ours is not None
    assert "unknown" not in ours
    assert ours == spark_type(spark, expression)


@pytest.mark.parametrize("expression", listed(WRONG))
def test_same_mistake(spark: SparkSession, expression: str) -> None:
    assert (our_type(expression), spark_type(spark, expression)) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_same_for_all_pairs_of_types(spark: SparkSession, operator: str) -> None:
    expressions = [f"{a} {operator} {b}" for a in OPERANDS for b in OPERANDS]
    differences = {
        expression: (ours, theirs)
        for expression in expressions
        if (ours := our_type(expression)) != (theirs := spark_type(spark, expression))
    }
    assert not differences


def test_function_names(spark: SparkSession) -> None:
    listed_by_spark = {row.function for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert builtin_names() == listed_by_spark


@pytest.mark.parametrize(
    "comparison",
    [
        *("d > 'cheap'", "i = '1.5'", "i IN ('a', 3)", "d BETWEEN '1' AND 'two'", "b = 'maybe'"),
        *("t > 'noon'", "d > ' 1e3 '", "d > 'Infinity'", "d = '-inf'", "d = 'NaN'", "i = ' -7 '"),
        *("b = 'Y'", "d = '1d'", "t > '2026-01-31'", "day < '2026'", "t > '12:30'", "n = '.5'"),
        *("i IN ('1', 2.5)", "d + '1' > 2"),
    ],
)
def test_a_text_is_refused_where_spark_cannot_convert_it(comparison: str, spark: SparkSession) -> None:
    row = "true AS b, 1 AS i, 1.0D AS d, 1.5BD AS n, now() AS t, current_date() AS day"
    try:
        spark.sql(f"SELECT {comparison} FROM (SELECT {row})").collect()
        converts = True
    except PySparkException:
        converts = False
    assert (our_type(comparison) is not None) == converts
