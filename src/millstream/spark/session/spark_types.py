"""Conversion of types between ESL and Spark."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import types as spark

from millstream.kernels.windows.time_codec import OUTERMOST
from millstream.types import Field, Kind, Type

_SIMPLE: dict[Kind, spark.DataType] = {
    Kind.BOOLEAN: spark.BooleanType(),
    Kind.TINYINT: spark.ByteType(),
    Kind.SMALLINT: spark.ShortType(),
    Kind.INT: spark.IntegerType(),
    Kind.BIGINT: spark.LongType(),
    Kind.FLOAT: spark.FloatType(),
    Kind.DOUBLE: spark.DoubleType(),
    Kind.STRING: spark.StringType(),
    Kind.BINARY: spark.BinaryType(),
    Kind.DATE: spark.DateType(),
    Kind.TIMESTAMP: spark.TimestampType(),
    Kind.TIMESTAMP_NTZ: spark.TimestampNTZType(),
    Kind.DAY_TIME_INTERVAL: spark.DayTimeIntervalType(),
    Kind.YEAR_MONTH_INTERVAL: spark.YearMonthIntervalType(),
    Kind.VARIANT: spark.VariantType(),
    Kind.NULL: spark.NullType(),
}

# By class: CHAR(n), VARCHAR(n) and strings with a collation are strings, and the fields of an interval do not
# matter.
_KINDS: tuple[tuple[type[spark.DataType], Kind], ...] = (
    (spark.CharType, Kind.STRING),
    (spark.VarcharType, Kind.STRING),
    *((type(simple), kind) for kind, simple in _SIMPLE.items()),
)


def to_spark_type(of: Type) -> spark.DataType:
    """Return the Spark type of an ESL type; every element and field may be NULL.

    >>> to_spark_type(Type(Kind.ARRAY, element=Type(Kind.INT))).simpleString()
    'array<int>'
    """
    match of:
        case Type(kind=Kind.DECIMAL):
            return spark.DecimalType(of.precision, of.scale)
        case Type(kind=Kind.ARRAY, element=Type() as element):
            return spark.ArrayType(to_spark_type(element))
        case Type(kind=Kind.MAP, key=Type() as key, element=Type() as element):
            return spark.MapType(to_spark_type(key), to_spark_type(element))
        case Type(kind=Kind.STRUCT):
            return spark.StructType([spark.StructField(f.name, to_spark_type(f.type)) for f in of.fields])
        case _ if of.kind in _SIMPLE:
            return _SIMPLE[of.kind]
    raise ValueError(f"{of} is no type that Spark could have")


def from_spark_type(of: spark.DataType) -> Type:
    """Return the ESL type of a Spark type; UNKNOWN for types that ESL has no name for, as user-defined ones.

    >>> str(from_spark_type(spark.DecimalType(10, 2)))
    'decimal(10,2)'
    """
    match of:
        case spark.DecimalType():
            return Type(Kind.DECIMAL, precision=of.precision, scale=of.scale)
        case spark.ArrayType():
            return Type(Kind.ARRAY, element=from_spark_type(of.elementType))
        case spark.MapType():
            return Type(Kind.MAP, key=from_spark_type(of.keyType), element=from_spark_type(of.valueType))
        case spark.StructType():
            return Type(Kind.STRUCT, fields=fields_of(of))
    return Type(next((kind for class_, kind in _KINDS if isinstance(of, class_)), Kind.UNKNOWN))


def fields_of(schema: spark.StructType) -> tuple[Field, ...]:
    """Return the columns of a DataFrame's schema."""
    return tuple(Field(column.name, from_spark_type(column.dataType)) for column in schema.fields)


def is_outermost(value: Column) -> Column:
    """Whether a BIGINT is the smallest or the largest one, which stand for no time and for the end of all."""
    return (value == OUTERMOST[0]) | (value == OUTERMOST[1])
