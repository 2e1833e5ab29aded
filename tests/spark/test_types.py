"""Types of ESL to Spark and back."""

from __future__ import annotations

import pytest
from pyspark.sql import types as spark_types

from millstream import types
from millstream.spark.session.spark_types import fields_of, from_spark_type, to_spark_type
from millstream.types import Field, Kind, Type

KNOWN = [
    Type(kind) for kind in Kind if kind not in (Kind.UNKNOWN, Kind.DECIMAL, Kind.ARRAY, Kind.MAP, Kind.STRUCT)
]
NESTED = [
    types.decimal(38, 6),
    types.array(types.decimal(5, 2)),
    Type(Kind.MAP, key=types.STRING, element=types.array(types.INT)),
    types.struct(Field("a", types.DATE), Field("b c", types.struct(Field("d", types.NULL)))),
]


@pytest.mark.parametrize("kind", [*KNOWN, *NESTED], ids=str)
def test_there_and_back(kind: Type) -> None:
    assert from_spark_type(to_spark_type(kind)) == kind


@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_spark_writes_them_the_same_way(kind: Type) -> None:
    assert to_spark_type(kind).simpleString() == str(kind)


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (spark_types.VarcharType(10), Kind.STRING),
        (spark_types.CharType(3), Kind.STRING),
        (spark_types.StringType("UNICODE_CI"), Kind.STRING),
        (spark_types.DayTimeIntervalType(1, 1), Kind.DAY_TIME_INTERVAL),
        (spark_types.CalendarIntervalType(), Kind.UNKNOWN),
    ],
    ids=str,
)
def test_variants(of: spark_types.DataType, kind: Kind) -> None:
    assert from_spark_type(of) == Type(kind)


def test_unknown_has_no_type_in_spark() -> None:
    with pytest.raises(ValueError, match="unknown"):
        to_spark_type(types.UNKNOWN)


def test_columns() -> None:
    strings = spark_types.ArrayType(spark_types.StringType())
    schema = spark_types.StructType().add("a", spark_types.IntegerType()).add("b", strings)
    assert fields_of(schema) == (Field("a", types.INT), Field("b", types.array(types.STRING)))
