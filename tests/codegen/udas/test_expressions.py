"""Expressions in bodies have the values that Spark gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.analysis.udas.aggregate_versions import checked_body
from millstream.catalog import Catalog
from millstream.codegen.udas.uda_compiler import compile_uda
from millstream.kernels.core.buffers import NO_CODES
from millstream.kernels.udas.compiled_machine import CompiledMachine
from millstream.syntax import parse_script
from millstream.types import INT, STRING, TIMESTAMP
from tests.library.running import uncompiled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS = {
    "s LIKE 'a%'": "BOOLEAN",
    "s NOT LIKE 'a%'": "BOOLEAN",
    "s NOT ILIKE 'A%'": "BOOLEAN",
    "s NOT RLIKE 'b+'": "BOOLEAN",
    "split_part(s, ',', 2)": "STRING",
    "split_part(s, ',', -1)": "STRING",
    "xxhash64(s)": "BIGINT",
    "xxhash64(s, n)": "BIGINT",
    "xxhash64(n, s)": "BIGINT",
    "xxhash64(t, s, s)": "BIGINT",
    "hash(s)": "INT",
    "hash(s, n)": "INT",
    "hash(n, s)": "INT",
    "unix_micros(t + n * INTERVAL 90 SECONDS)": "BIGINT",
    "unix_micros(t - INTERVAL 1 DAY * n)": "BIGINT",
}
ROWS: list[tuple[str | None, int | None]] = [
    ("", 0),
    ("abc", 1),
    ("a,b,,d", -7),
    ("Zürich, 東京", 12_345),
    ("a text that is longer than thirty-two bytes, by some", 12),
    (None, 5),
    ("bbb", None),
]


def in_a_body(expression: str, type_: str) -> list[Any]:
    catalog = Catalog()
    block = f"{{ INSERT INTO RETURN VALUES ({expression}); }}"
    blocks = f"INITIALIZE : {block} ITERATE : {block}"
    text = f"CREATE AGGREGATE e(s STRING, n INT, t TIMESTAMP) : {type_} {{ {blocks} }};"
    for statement in parse_script(text):
        analyse(statement, catalog)
    entry = catalog.aggregate("e")
    assert entry is not None
    machine = CompiledMachine(compile_uda(checked_body(entry, [STRING, INT, TIMESTAMP], catalog), "base"))
    time = pa.array([1_772_452_800_000_000] * len(ROWS), pa.timestamp("us", "UTC"))
    columns = [pa.array(column) for column in zip(*ROWS, strict=True)]
    table = pa.table([columns[0], columns[1].cast(pa.int32()), time], ["s", "n", "t"])
    machine.reserve(1, len(ROWS))
    codes = NO_CODES.copy()
    codes.resize(len(ROWS))
    [found] = machine.call("run", len(ROWS), (codes,), machine.encoded(table, ["s", "n", "t"])).columns
    return found.to_pylist()


@pytest.mark.spark
def test_expressions_have_the_values_that_spark_gives_them(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, "s STRING, n INT")
    frame = frame.selectExpr("*", "timestamp_micros(1772452800000000) AS t").coalesce(1)
    expected = frame.selectExpr(*(f"{e} AS e{i}" for i, e in enumerate(EXPRESSIONS))).collect()
    for i, (expression, type_) in enumerate(EXPRESSIONS.items()):
        with uncompiled():
            assert in_a_body(expression, type_) == [row[i] for row in expected], expression


@pytest.mark.slow
def test_hashes_of_texts_are_the_same_when_compiled() -> None:
    with uncompiled():
        plainly = in_a_body("xxhash64(s, n)", "BIGINT")
    assert in_a_body("xxhash64(s, n)", "BIGINT") == plainly


def test_words_that_a_program_makes_are_in_order_with_those_that_it_was_given() -> None:
    """More new words than there was room for when the program began."""
    catalog = Catalog()
    text = """
        CREATE AGGREGATE least_text(s STRING, n INT) : STRING {
            TABLE state(best STRING, number INT);
            INITIALIZE : { INSERT INTO state VALUES (s || '!', n);
                           INSERT INTO RETURN SELECT best FROM state; }
            ITERATE    : { UPDATE state SET best = s || CAST(n AS STRING) WHERE s || CAST(n AS STRING) < best;
                           INSERT INTO RETURN SELECT best FROM state; }
        };"""
    for statement in parse_script(text):
        analyse(statement, catalog)
    entry = catalog.aggregate("least_text")
    assert entry is not None
    machine = CompiledMachine(compile_uda(checked_body(entry, [STRING, INT], catalog), "base"))
    numbers = list(range(200, 100, -1))
    table = pa.table([pa.array(["x"] * 100), pa.array(numbers, pa.int32())], ["s", "n"])
    machine.reserve(1, 100)
    codes = NO_CODES.copy()
    codes.resize(100)
    [found] = machine.call("run", 100, (codes,), machine.encoded(table, ["s", "n"])).columns
    made = ["x!", *(f"x{number}" for number in numbers[1:])]
    assert found.to_pylist() == [min(made[: i + 1]) for i in range(100)]
