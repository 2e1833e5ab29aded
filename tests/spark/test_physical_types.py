"""The types of physical plans, which are known without Spark, are those that Spark finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 (Spark's own custom)

from millstream.physical.nodes import Stage
from millstream.spark.lowering.input_frames import input_frame
from millstream.spark.lowering.lowerer import Lowerer
from millstream.spark.session.spark_types import from_spark_type
from millstream.spark.sources.hidden_columns import is_hidden
from millstream.types import Type
from tests.physical.planning import plans_of

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE STREAM s (
    k INT, name STRING, v BIGINT, d DOUBLE, m DECIMAL(10, 2), day DATE, ok BOOLEAN, list ARRAY<INT>,
    both STRUCT<a: INT, b: STRING>, t TIMESTAMP
) USING parquet OPTIONS (path '{path}') ORDER BY t SLACK INTERVAL 5 SECONDS;
CREATE STREAM r (k SMALLINT, v INT, t DATE) USING csv OPTIONS (path '{path}') ORDER BY t;
CREATE TABLE prices (name STRING, price DECIMAL(5, 1)) USING csv OPTIONS (path '{path}');
CREATE AGGREGATE pair(x INT) : (lo INT, hi DOUBLE) {{
    TABLE state(s INT);
    INITIALIZE : {{ INSERT INTO state VALUES (x); }}
    ITERATE    : {{ UPDATE state SET s = s + x; }}
    TERMINATE  : {{ INSERT INTO RETURN SELECT s, s / 2 FROM state; }}
}};
"""

QUERIES = [
    "SELECT v + 1, m * 2, name || 'x', both.a, list[0], day + INTERVAL 1 DAY FROM s WHERE ok",
    "SELECT k, avg(m), sum(m), sum(d), count(*) FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY k",
    "SELECT max(day), first(ok), stddev(v), window_end, wid FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]",
    "SELECT ok, median(v), percentile(v, array(0.1, 0.5)), mode(name) FROM s [ROWS 10 SLIDE 5] GROUP BY ok",
    "SELECT collect_list(v), max_by(name, v), count(DISTINCT name), approx_count_distinct(k) FROM s [NOW]",
    "SELECT list, count(*), any_value(m) FROM s [SESSION GAP 30 SECONDS] GROUP BY list",
    "SELECT name, sum(v) OVER (PARTITION BY name RANGE INTERVAL 1 MINUTE PRECEDING) AS a FROM s",
    "SELECT avg(d) OVER (ROWS 9 PRECEDING) AS b, listagg(name, ',') OVER (ROWS 3 PRECEDING) AS c FROM s",
    "SELECT pair(k) OVER (PARTITION BY m ROWS 9 PRECEDING) AS p FROM s",
    "SELECT pair(k) AS p, name FROM s [TUMBLE 1 HOUR] GROUP BY name",
    "SELECT X.v, last(Y).m, avg(*Y.d) FROM s PARTITION BY k, name AS (X, *Y) WHERE Y.v > Y.previous.v",
    "SELECT DISTINCT k, name FROM s [RANGE 1 MINUTE]",
    "SELECT a.m, b.name FROM s [RANGE 1 MINUTE] AS a LEFT JOIN s [ROWS 2] AS b ON a.k = b.k AND a.v > b.v",
    "SELECT RSTREAM k, sum(m) AS total FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k",
    "SELECT k, sum(price) AS p FROM s [TUMBLE 1 HOUR], prices WHERE s.name = prices.name GROUP BY k",
    "SELECT v, t FROM s UNION ALL SELECT k, CAST(t AS TIMESTAMP) FROM r",
    "SELECT k, v FROM r UNION SELECT k, v FROM r",
    "SELECT count(*), max(from_json(name, 'a INT')) FROM s [TUMBLE 1 HOUR]",
]


@pytest.mark.parametrize("query", QUERIES)
def test_predicted_types_are_those_of_spark(spark: SparkSession, tmp_path: Path, query: str) -> None:
    (plan,) = plans_of(f"{SCRIPT.format(path=tmp_path)}{query};")
    lowerer = Lowerer(spark, _no_ports, {}, lambda name: None)
    physical = lowerer.bind(plan)
    for node in physical.walk():
        predicted = {(c.relation.lower(), c.name.lower()): c.type for c in node.shown}
        found = dict(_found(lowerer.to.frame(node).schema, predicted))
        assert found.keys() == predicted.keys()
        # A projection above a stage may have columns whose types the plan needs not know.
        assert {key: found[key] for key, type_ in predicted.items() if type_.is_known} == {
            key: type_ for key, type_ in predicted.items() if type_.is_known
        }
        if isinstance(node, Stage):
            for source in node.sources:
                frame = input_frame(source, lowerer.to.frame(source.node))
                assert {c.name: c.type for c in (*source.columns, *source.time)} == {
                    f.name: from_spark_type(f.dataType)
                    for f in frame.schema.fields
                    if f.name in {c.name for c in (*source.columns, *source.time)}
                }


def _found(
    schema: T.StructType, predicted: dict[tuple[str, str], Type]
) -> Iterator[tuple[tuple[str, str], Type]]:
    """Columns of a frame by relation and name: relations are structs, or names that Spark keeps to itself."""
    relations = {relation for relation, _ in predicted}
    seen: set[tuple[str, str]] = set()
    for field in schema.fields:
        if is_hidden(field.name):
            continue
        if field.name.lower() in relations and ("", field.name.lower()) not in predicted:
            assert isinstance(field.dataType, T.StructType)
            for part in field.dataType.fields:
                seen.add((field.name.lower(), part.name.lower()))
                yield (field.name.lower(), part.name.lower()), from_spark_type(part.dataType)
        else:
            name = next(key for key in predicted if key[1] == field.name.lower() and key not in seen)
            seen.add(name)
            yield name, from_spark_type(field.dataType)


def _no_ports(_: int) -> DataFrame:
    raise AssertionError("nothing is read from ports")
