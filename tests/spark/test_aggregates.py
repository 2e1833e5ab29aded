"""Every aggregate over windows of a stream, compared with Spark's own on the same rows as a table."""

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import millstream as ms
from millstream.errors import MillstreamError

pytestmark = pytest.mark.spark

SCHEMA = """
    t INT, g STRING, x DOUBLE, y DOUBLE, f FLOAT, i INT, l BIGINT, s STRING, d DECIMAL(10,2), b BOOLEAN,
    e DATE, a ARRAY<INT>, r STRUCT<i: INT, s: STRING>
"""

ARROW = pa.schema(
    [
        pa.field("t", pa.int32()), pa.field("g", pa.string()), pa.field("x", pa.float64()),
        pa.field("y", pa.float64()), pa.field("f", pa.float32()), pa.field("i", pa.int32()),
        pa.field("l", pa.int64()), pa.field("s", pa.string()), pa.field("d", pa.decimal128(10, 2)),
        pa.field("b", pa.bool_()), pa.field("e", pa.date32()), pa.field("a", pa.list_(pa.int32())),
        pa.field("r", pa.struct({"i": pa.int32(), "s": pa.string()})),
    ]
)  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Groups with few values, many, none at all, and with NaN and infinity."""
    made = []
    for t in range(60):
        g = "many" if t % 3 else ("few" if t % 2 else "odd")
        row: dict[str, Any] = {"t": t, "g": g}
        if t % 7:
            row |= {
                "x": (t * 37 % 50) / 4,
                "y": 100.0 - t * t % 17,
                "f": t / 8,
                "i": t * 13 % 11,
                "l": 2**53 + t,
            }
        if t % 5:
            row |= {"s": "abcdefg"[t % 4], "d": Decimal(t * 31 % 400) / 4, "b": t % 4 < 3, "e": t * 11 % 40}
            row |= {"a": [t % 3, None], "r": {"i": t % 3, "s": "xyz"[t % 2]}}
        if t == 42:
            row |= {"x": math.nan, "y": math.inf}
        made.append(row)
    return [
        *made,
        {"t": 60, "g": "empty"},
        {"t": 61, "g": "single", "x": 2.5, "y": 1.0, "i": 3, "s": "q", "b": True},
    ]


AGGREGATES = """
    count(*) | count(x) | count(i, s) | count_if(b) | sum(i) | sum(d) | avg(i) | avg(d) | mean(x) | sum(f)
    min(s) | max(e) | min(a) | max(r) | min(b)
    first(i) | last(s) | first(s) IGNORE NULLS | any_value(d) | last(a) | first_value(r, true)
    var_pop(x) | var_samp(x) | variance(i) | stddev(x) | std(d) | stddev_samp(y) | stddev_pop(i)
    skewness(x) | kurtosis(x) | skewness(i) | kurtosis(i)
    covar_pop(x, y) | covar_samp(i, y) | corr(x, y) | corr(i, d)
    regr_count(x, y) | regr_avgx(x, i) | regr_avgy(x, i) | regr_sxx(x, i) | regr_syy(x, i) | regr_sxy(i, t)
    regr_slope(i, t) | regr_intercept(i, t) | regr_r2(i, t) | regr_slope(x, y)
    bool_and(b) | every(b) | bool_or(b) | some(b) | any(b) | bit_and(i) | bit_or(l) | bit_xor(i)
    min_by(s, t) | max_by(i, t) | max_by(r, t) | max_by(s, t, 2) | try_sum(l) | try_avg(d)
    median(x) | median(i) | median(d)
    percentile(x, 0.3) | percentile(i, array(0.25, 0.5)) | percentile(x, 0.5, i)
    percentile_cont(0.4) WITHIN GROUP (ORDER BY x) | percentile_cont(0.4) WITHIN GROUP (ORDER BY x DESC)
    percentile_disc(0.4) WITHIN GROUP (ORDER BY i) | percentile_disc(0.4) WITHIN GROUP (ORDER BY i DESC)
    percentile_approx(i, 0.5) | approx_percentile(d, array(0.1, 0.9), 1000) | percentile_approx(e, 0.5)
    mode(i, true) | mode() WITHIN GROUP (ORDER BY s) | mode() WITHIN GROUP (ORDER BY i DESC)
    collect_list(i) | array_agg(s) | collect_list(r) | collect_list(i) RESPECT NULLS
    collect_set(i) | collect_set(a)
    string_agg(s) | listagg(s, ', ') | listagg(s, '') WITHIN GROUP (ORDER BY i DESC, t)
    approx_count_distinct(i) | count(DISTINCT i) | count(DISTINCT i, s) | sum(DISTINCT i) | avg(DISTINCT d)
    stddev(DISTINCT i) | max(DISTINCT s) | collect_list(DISTINCT s) | listagg(DISTINCT s, '-')
    histogram_numeric(i, 20) | collect_union(a)
    count(*) FILTER (WHERE b) | sum(i) FILTER (WHERE b) | first(i) FILTER (WHERE NOT b)
    median(x) FILTER (WHERE i > 4)
    collect_list(i) FILTER (WHERE b) | max_by(s, t) FILTER (WHERE i < 5) | count(DISTINCT i) FILTER (WHERE b)
    corr(x, y) FILTER (WHERE t <> 42) | var_samp(x) FILTER (WHERE t <> 42) | last(s) FILTER (WHERE t < 0)
"""
CALLS = [call.strip() for line in AGGREGATES.strip().splitlines() for call in line.split("|")]
PORTION = 20
UNORDERED = ("collect_set", "collect_union", "collect_list(DISTINCT", "listagg(DISTINCT")


@pytest.fixture(scope="module")
def mill(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("readings")
    pq.write_table(pa.Table.from_pylist(rows(), ARROW), Path(path) / "readings.parquet")
    spark.read.parquet(str(path)).createOrReplaceTempView("readings_table")
    with ms.connect(spark) as mill:
        mill.execute(f"CREATE STREAM readings ({SCHEMA}) USING parquet OPTIONS (path '{path}') ORDER BY t")
        yield mill
    spark.catalog.dropTempView("readings_table")


def test_the_whole_of_a_group(spark: SparkSession, mill: Any) -> None:
    columns = ", ".join(f"{call} AS r{i}" for i, call in enumerate(CALLS))
    streamed = mill.start(f"SELECT g, {columns} FROM readings [TUMBLE 1000] GROUP BY g").collect()
    _compare(streamed, CALLS, lambda some: spark.sql(f"SELECT g, {some} FROM readings_table GROUP BY g"))


def test_over_the_last_rows(spark: SparkSession, mill: Any) -> None:
    # What Spark itself does not take with OVER is left out.
    without = ("DISTINCT", "WITHIN", "NULLS", "median")
    over = "OVER (PARTITION BY g ORDER BY t ROWS BETWEEN 4 PRECEDING AND CURRENT ROW)"
    calls = [f"{call} {over}" for call in CALLS if not any(word in call for word in without)]
    columns = ", ".join(f"{call} AS r{i}" for i, call in enumerate(calls))
    streamed = mill.start(f"SELECT t, {columns} FROM readings").collect()
    _compare(streamed, calls, lambda some: spark.sql(f"SELECT t, {some} FROM readings_table"))


def _compare(streamed: pa.Table, calls: list[str], stored: Callable[[str], DataFrame]) -> None:
    """Column by column; Spark gets them in portions, since all together are too much for it."""
    different = {}
    # Beside aggregates with DISTINCT Spark forgets the order of tuples, and stumbles over that of a listagg.
    alone = [i for i, call in enumerate(calls) if "DISTINCT" in call]
    others = [i for i in range(len(calls)) if i not in alone]
    portions = [others[start : start + PORTION] for start in range(0, len(others), PORTION)]
    for portion in [*portions, *([i] for i in alone)]:
        theirs = stored(", ".join(f"{calls[i]} AS r{i}" for i in portion)).toArrow()
        key = theirs.column_names[0]
        ours = {row[key]: row for row in streamed.to_pylist()}
        assert theirs.num_rows == len(ours) == streamed.num_rows
        for i in portion:
            one, other = (str(t.schema.field(f"r{i}").type) for t in (streamed, theirs))
            assert one == other.replace(" not null", ""), calls[i]
            for row in theirs.to_pylist():
                mine, wanted = ours[row[key]][f"r{i}"], row[f"r{i}"]
                if calls[i].startswith(UNORDERED):
                    mine, wanted = _unordered(mine), _unordered(wanted)
                if not _same(mine, wanted):
                    different[calls[i], row[key]] = mine, wanted
    assert not different


def _unordered(value: Any) -> Any:
    return sorted(value, key=repr) if value is not None else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize(
    "call", ["hll_sketch_agg(i)", "bitmap_construct_agg(l)", "count_min_sketch(i, 0.1d, 0.9d, 1)"]
)
def test_sketches_are_refused_by_name(mill: Any, call: str) -> None:
    name = call.partition("(")[0]
    with pytest.raises(MillstreamError, match=f"the aggregate '{name}' over a window"):
        mill.start(f"SELECT {call} FROM readings [TUMBLE 1000]")


def test_a_percentage_is_a_constant_between_0_and_1(mill: Any) -> None:
    with pytest.raises(MillstreamError, match="must be a constant"):
        mill.start("SELECT percentile(x, y) FROM readings [TUMBLE 1000]")
    with pytest.raises(MillstreamError, match="a number from 0 to 1"):
        mill.start("SELECT percentile(x, 1.5) FROM readings [TUMBLE 1000]")
