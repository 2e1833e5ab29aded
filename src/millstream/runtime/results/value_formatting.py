"""Values as text, a column at a time.

One form for each type, the same in every output format:

| type | text |
| --- | --- |
| integers, decimals | plain digits, a decimal with all the digits of its scale |
| float, double | the shortest text that is read back as the same value, as Python's repr; NaN, Infinity |
| boolean | true, false |
| timestamp | `2006-11-05 10:00:00.25`, without trailing zeros, in the column's time zone (the session's) |
| date, time | `2006-11-05`, `10:00:00.25`; years of other than four digits have a sign: `+12345-01-01` |
| interval day to second | `1 02:03:04.5`, which Spark casts back |
| binary | base64, as in Spark's to_json |
| array, map, struct | JSON |

In JSON, numbers and decimals are numbers (text is exact; it is up to the reader not to make doubles of
decimals, as it is with Spark's to_json), booleans are booleans, and everything else is a string: also
NaN and the infinities, for which JSON has no numbers.
"""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.core.timestamp_text import is_far, time_texts

if TYPE_CHECKING:
    from collections.abc import Callable

_MICROSECONDS_OF_DAY = 86_400_000_000


def texts(column: pa.Array) -> pa.Array:
    """Return the text of each value; NULL stays NULL.

    >>> texts(pa.array([1.0, None, 1e-05])).to_pylist()
    ['1.0', None, '1e-05']
    """
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_nested(kind):
        return json_texts(column)
    if pa.types.is_floating(kind):
        return _floats(column)
    if pa.types.is_decimal(kind):
        return _decimals(column)
    if pa.types.is_timestamp(kind):
        return _without_zeros(_times(column if kind.tz is None else pc.local_timestamp(column)))
    if pa.types.is_date32(kind):
        return _times(column)
    if pa.types.is_time(kind):
        return _without_zeros(column.cast(pa.string()))
    if pa.types.is_duration(kind):
        return _durations(column)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _each(column, lambda value: base64.b64encode(value).decode())
    return column.cast(pa.string())


def json_texts(column: pa.Array) -> pa.Array:
    """Return the JSON of each value; NULL stays NULL at the top, and is null inside others.

    >>> json_texts(pa.array([{"a": "x", "b": [1.5, None]}])).to_pylist()
    ['{"a":"x","b":[1.5,null]}']
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return json_texts(column.cast(kind.value_type))
    if pa.types.is_struct(kind):
        # flatten() makes the fields of a NULL struct NULL.
        children = [json_texts(child) for child in column.flatten()]
        names = [kind.field(i).name for i in range(kind.num_fields)]
        return pc.if_else(column.is_valid(), json_objects(names, children, len(column)), None)
    if pa.types.is_map(kind):
        keys = _json_strings(texts(column.keys))
        return _joined(column, _concatenate(keys, ":", _or_null(json_texts(column.items))), "{}")
    if pa.types.is_fixed_size_list(kind):
        return json_texts(column.cast(pa.list_(kind.value_type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _joined(column, _or_null(json_texts(column.values)), "[]")
    plain = texts(column)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return plain
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), plain, _concatenate('"', plain, '"'))
    return _json_strings(plain)


def json_objects(names: list[str], columns: list[pa.Array], rows: int) -> pa.Array:
    """Return a JSON object for each row, made of columns that are JSON already."""
    if not columns:
        return pa.array(["{}"] * rows, pa.string())
    pieces: list[pa.Array | str] = []
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        lead = "{" if number == 0 else ","
        pieces += [f"{lead}{json.dumps(name, ensure_ascii=False)}:", _or_null(column)]
    return _concatenate(*pieces, "}")


def is_verbatim(kind: pa.DataType) -> bool:
    """Return whether texts of this type are never empty and never need quotes."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind))


def _times(column: pa.Array) -> pa.Array:
    """Return timestamps without a zone, or dates; those beyond Arrow's range are written as Spark does."""
    text = column.cast(pa.string())
    far = is_far(column)
    if not far.any():
        return text
    mask = pa.array(far)
    return pc.replace_with_mask(text, mask, pa.array(time_texts(column.filter(mask)), pa.string()))


def _floats(column: pa.Array) -> pa.Array:
    """Return floats as Python's repr writes them; Arrow writes 1, 0.00001 and 1e+15 differently."""
    column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    text = column.cast(pa.string())
    size = pc.abs(column)
    small = pc.and_(pc.less(size, 1e-4), pc.greater(size, 0))
    unusual = pc.or_(small, pc.match_substring_regex(text, "[a-z]"))
    whole = pc.and_not(pc.equal(pc.floor(column), column), unusual)
    text = pc.if_else(whole, _concatenate(text, ".0"), text)
    return _patch(text, unusual, _unusual_float)


def _unusual_float(text: str) -> str:
    special = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text)
    return special or repr(float(text))


def _decimals(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    # Arrow writes very small decimals with an exponent.
    return _patch(text, pc.match_substring(text, "E"), lambda text: format(Decimal(text), "f"))


def _durations(column: pa.Array) -> pa.Array:
    total = column.cast(pa.duration("us")).cast(pa.int64())
    size = pc.abs(total)

    def digits(unit: int, modulo: int, width: int) -> pa.Array:
        count = pc.divide(size, unit)
        # Arrow has no remainder.
        count = pc.subtract(count, pc.multiply(pc.divide(count, modulo), modulo))
        return pc.ascii_lpad(count.cast(pa.string()), width, "0")

    sign = pc.if_else(pc.less(total, 0), "-", "")
    days = pc.divide(size, _MICROSECONDS_OF_DAY).cast(pa.string())
    hours, minutes = digits(3_600_000_000, 24, 2), digits(60_000_000, 60, 2)
    seconds, fraction = digits(1_000_000, 60, 2), digits(1, 1_000_000, 6)
    return _without_zeros(_concatenate(sign, days, " ", hours, ":", minutes, ":", seconds, ".", fraction))


def _without_zeros(column: pa.Array) -> pa.Array:
    """Remove trailing zeros from the fractions of times."""
    trimmed = pc.ascii_rtrim(pc.ascii_rtrim(column, "0"), ".")
    return pc.if_else(pc.match_substring(column, "."), trimmed, column)


def _json_strings(column: pa.Array) -> pa.Array:
    quoted = _concatenate('"', column, '"')
    special = pc.match_substring_regex(column, r'["\\\x00-\x1f]')
    return _patch(quoted, special, lambda text: json.dumps(text[1:-1], ensure_ascii=False))


def _joined(column: pa.Array, children: pa.Array, brackets: str) -> pa.Array:
    """Join the children of each array or map, between brackets."""
    parts = children.to_pylist()
    offsets = column.offsets.to_pylist()
    valid = column.is_valid().to_pylist()
    return pa.array(
        [
            f"{brackets[0]}{','.join(parts[offsets[i] : offsets[i + 1]])}{brackets[1]}" if valid[i] else None
            for i in range(len(column))
        ],
        pa.string(),
    )


def _or_null(column: pa.Array) -> pa.Array:
    return pc.fill_null(column, "null")


def _concatenate(*pieces: pa.Array | str) -> pa.Array:
    """Concatenate texts; NULL if one of them is NULL."""
    # The last argument is the separator.
    return pc.binary_join_element_wise(*pieces, "")


def _patch(column: pa.Array, where: pa.Array, correct: Callable[[str], str]) -> pa.Array:
    """Correct some texts of a column, one by one."""
    where = pc.fill_null(where, False)
    wrong = column.filter(where)
    return pc.replace_with_mask(column, where, _each(wrong, correct)) if len(wrong) else column


def _each(column: pa.Array, change: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if v is None else change(v) for v in column.to_pylist()], pa.string())
