"""Arrow types of ESL types."""

from __future__ import annotations

import pyarrow as pa

from millstream.types import Kind, Type

_PLAIN = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.TIMESTAMP_NTZ: pa.timestamp("us"),
    Kind.DAY_TIME_INTERVAL: pa.duration("us"),
    Kind.NULL: pa.null(),
}


def arrow_type(type_: Type) -> pa.DataType:
    """Return the Arrow type of a type.

    >>> from millstream.types import INT, array
    >>> arrow_type(array(INT))
    ListType(list<item: int32>)
    """
    match type_.kind:
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.ARRAY:
            assert type_.element is not None
            return pa.list_(arrow_type(type_.element))
        case Kind.MAP:
            assert type_.key is not None
            assert type_.element is not None
            return pa.map_(arrow_type(type_.key), arrow_type(type_.element))
        case Kind.STRUCT:
            return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in type_.fields])
    return _PLAIN[type_.kind]
