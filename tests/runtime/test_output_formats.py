"""Results as text: each type's form, quoting, and whether programs can read it back."""

from __future__ import annotations

import csv
import io
import json
import math
import pathlib
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import ExecutionError
from millstream.runtime.results.output_formats import FORMATS, encode, write, write_file
from millstream.runtime.results.value_formatting import texts

if TYPE_CHECKING:
    from collections.abc import Iterator


def text(form: str, table: pa.Table) -> str:
    return b"".join(encode([table], table.schema, form)).decode()


def column(values: list[object], kind: pa.DataType) -> pa.Table:
    return pa.table({"x": pa.array(values, kind)})


SECOND = 1_000_000
AT = datetime(2006, 11, 5, 10, tzinfo=UTC)
FORMS = [
    # type, value, text, JSON
    (pa.int32(), -7, "-7", "-7"),
    (pa.int64(), 2**63 - 1, "9223372036854775807", "9223372036854775807"),
    (pa.bool_(), True, "true", "true"),
    (pa.float64(), 1.0, "1.0", "1.0"),
    (pa.float64(), -0.0, "-0.0", "-0.0"),
    (pa.float64(), 0.1 + 0.2, "0.30000000000000004", "0.30000000000000004"),
    (pa.float64(), 1e15, "1000000000000000.0", "1000000000000000.0"),
    (pa.float64(), 1e16, "1e+16", "1e+16"),
    (pa.float64(), 0.00001, "1e-05", "1e-05"),
    (pa.float64(), math.nan, "NaN", '"NaN"'),
    (pa.float64(), -math.inf, "-Infinity", '"-Infinity"'),
    (pa.float32(), 0.1, "0.1", "0.1"),
    (pa.float32(), 16777216.0, "16777216.0", "16777216.0"),
    (pa.decimal128(10, 2), Decimal("1.10"), "1.10", "1.10"),
    (pa.decimal128(20, 10), Decimal("0.0000000001"), "0.0000000001", "0.0000000001"),
    (pa.decimal128(20, 10), Decimal(0), "0.0000000000", "0.0000000000"),
    (pa.decimal128(38, 0), Decimal(10) ** 37, "1" + "0" * 37, "1" + "0" * 37),
    (pa.date32(), AT.date(), "2006-11-05", '"2006-11-05"'),
    (pa.timestamp("us", "UTC"), AT, "2006-11-05 10:00:00", '"2006-11-05 10:00:00"'),
    (pa.timestamp("us", "UTC"), AT.replace(microsecond=250_000), "2006-11-05 10:00:00.25", None),
    (pa.timestamp("us", "UTC"), AT.replace(microsecond=1), "2006-11-05 10:00:00.000001", None),
    (pa.timestamp("us", "Europe/Zurich"), AT, "2006-11-05 11:00:00", None),
    (pa.timestamp("us"), AT.replace(tzinfo=None), "2006-11-05 10:00:00", None),
    (pa.timestamp("s"), AT.replace(tzinfo=None), "2006-11-05 10:00:00", None),
    (pa.time64("ns"), AT.time(), "10:00:00", '"10:00:00"'),
    (pa.duration("us"), 93_784_500_000, "1 02:03:04.5", '"1 02:03:04.5"'),
    (pa.duration("us"), -SECOND, "-0 00:00:01", '"-0 00:00:01"'),
    (pa.binary(), b"\x00\xff", "AP8=", '"AP8="'),
    (pa.string(), "ä b", "ä b", '"ä b"'),
    (pa.list_(pa.float64()), [1.5, None, math.nan], '[1.5,null,"NaN"]', '[1.5,null,"NaN"]'),
    (pa.list_(pa.int8(), 2), [1, 2], "[1,2]", "[1,2]"),
    (pa.map_(pa.int32(), pa.bool_()), [(1, True), (2, None)], '{"1":true,"2":null}', '{"1":true,"2":null}'),
    (pa.struct({"a": pa.int32(), 'b"': pa.list_(pa.string())}), {"a": None, 'b"': ["x\n"]}, None, None),
    (pa.struct([]), {}, "{}", "{}"),
]


@pytest.mark.parametrize(("kind", "value", "plain", "as_json"), FORMS, ids=str)
def test_forms(kind: pa.DataType, value: object, plain: str | None, as_json: str | None) -> None:
    # A slice with NULLs around it: offsets of Arrow are easy to get wrong.
    array = pa.array([value, None, value, None], kind).slice(1, 3)
    plain = plain or '{"a":null,"b\\"":["x\\n"]}'
    assert texts(array).to_pylist() == [None, plain, None]
    as_json = as_json or (plain if pa.types.is_struct(kind) else f'"{plain}"')
    table = pa.table({"x": array})
    assert text("json", table) == f'{{"x":null}}\n{{"x":{as_json}}}\n{{"x":null}}\n'
    assert list(csv.reader(io.StringIO(text("csv", table)))) == [["x"], [], [plain], []]
    assert json.loads(text("json", table).splitlines()[1]) is not None


class TestCsv:
    def test_quotes_where_they_are_needed(self) -> None:
        table = pa.table(
            {"a,b": ["x", "", None, 'say "hi"', "1,5", "two\nlines"], "n": [1, 2, None, 4, 5, 6]}
        )
        assert text("csv", table) == '"a,b",n\nx,1\n"",2\n,\n"say ""hi""",4\n"1,5",5\n"two\nlines",6\n'

    def test_no_rows(self) -> None:
        assert (
            text("csv", pa.table({"a": pa.array([], pa.int32()), "b": pa.array([], pa.string())})) == "a,b\n"
        )

    @given(st.lists(st.tuples(st.text(), st.text()), max_size=20))
    def test_python_reads_strings_back(self, lines: list[tuple[str, str]]) -> None:
        table = pa.table({"a": pa.array([a for a, _ in lines], pa.string()), "b": [b for _, b in lines]})
        table = table.cast(pa.schema({"a": pa.string(), "b": pa.string()}))
        read = csv.reader(io.StringIO(text("csv", table), newline=""), strict=True)
        assert list(read) == [["a", "b"], *map(list, lines)]


@given(st.lists(st.floats() | st.none(), min_size=1))
def test_doubles_are_as_in_python(values: list[float | None]) -> None:
    expected = [
        None if v is None else "NaN" if math.isnan(v) else repr(v).replace("inf", "Infinity") for v in values
    ]
    assert texts(pa.array(values, pa.float64())).to_pylist() == expected


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_floats_are_read_back(values: list[float]) -> None:
    found = texts(pa.array(values, pa.float32())).to_pylist()
    assert pa.array([float(one) for one in found], pa.float32()).to_pylist() == values


NESTED = st.recursive(
    st.just(pa.int64()) | st.just(pa.string()) | st.just(pa.float64()) | st.just(pa.bool_()),
    lambda inner: (
        inner.map(pa.list_) | st.tuples(inner, inner).map(lambda two: pa.struct({"a": two[0], "b": two[1]}))
    ),
    max_leaves=4,
)


def values_of(kind: pa.DataType) -> st.SearchStrategy[object]:
    if pa.types.is_list(kind):
        return st.none() | st.lists(values_of(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.none() | st.fixed_dictionaries({f.name: values_of(f.type) for f in kind})
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    simple = {pa.int64(): st.integers(-(2**63), 2**63 - 1), pa.string(): st.text(), pa.bool_(): st.booleans()}
    return st.none() | simple.get(kind, numbers)


@given(st.data())
def test_json_is_read_back(data: st.DataObject) -> None:
    kind = data.draw(NESTED)
    values = data.draw(st.lists(values_of(kind), min_size=1, max_size=6))
    lines = text("json", column(values, kind)).split("\n")
    assert [json.loads(line)["x"] for line in lines[:-1]] == values


class TestTable:
    def test_aligned(self) -> None:
        table = pa.table(
            {"item": ["clock", None, "日本"], "price": [1.5, None, 100.0], "note": ["a\nb", "", "ok"]}
        )
        assert text("table", table).splitlines() == [
            "item  | price | note",
            "------+-------+-----",
            "clock |   1.5 | a\\nb",
            "NULL  |  NULL |",
            "日本  | 100.0 | ok",
        ]

    def test_no_rows(self) -> None:
        assert text("table", pa.table({"a": pa.array([], pa.int32())})) == "a\n-\n"

    def test_a_wider_value_comes_later(self) -> None:
        tables = [pa.table({"a": ["x"], "b": [1]}), pa.table({"a": ["much wider"], "b": [2]})]
        lines = b"".join(encode(tables, tables[0].schema, "table")).decode().splitlines()
        assert lines[2:] == ["x | 1", "much wider | 2"]


@pytest.mark.parametrize("form", FORMATS)
class TestAllFormats:
    def test_many_rows_come_in_pieces(self, form: str) -> None:
        table = pa.table({"n": range(150_000)})
        pieces = list(encode([table, table.slice(0, 0)], table.schema, form))
        assert len(pieces) >= 3
        assert b"".join(pieces).count(b"149999") == 1

    def test_a_table_may_have_empty_chunks(self, form: str) -> None:
        table = pa.table({"n": pa.chunked_array([[], [1], []], pa.int64())})
        assert text(form, table) == text(form, table.combine_chunks())

    def test_each_table_is_flushed(self, form: str) -> None:
        class Sink(io.BytesIO):
            flushed = 0

            def flush(self) -> None:
                self.flushed += 1

        sink = Sink()
        write([pa.table({"n": [1]}), pa.table({"n": [2]})], pa.schema({"n": pa.int64()}), form, sink)
        assert sink.flushed >= 2

    def test_a_file_is_complete_or_not_there(self, form: str, tmp_path: pathlib.Path) -> None:
        def fail() -> Iterator[pa.Table]:
            yield pa.table({"n": [1]})
            raise ExecutionError("the query failed")

        schema = pa.schema({"n": pa.int64()})
        file = tmp_path / "out" / f"q1.{form}"
        with pytest.raises(ExecutionError, match="the query failed"):
            write_file(fail(), schema, form, file)
        assert list(file.parent.iterdir()) == []
        write_file([pa.table({"n": [1]})], schema, form, file)
        assert list(file.parent.iterdir()) == [file]
        assert file.read_bytes() == b"".join(encode([pa.table({"n": [1]})], schema, form))

    def test_a_file_that_cannot_be_written(self, form: str) -> None:
        with pytest.raises(ExecutionError, match=r"/proc/nowhere/q1\.csv cannot be written"):
            write_file([], pa.schema({"n": pa.int64()}), form, pathlib.Path("/proc/nowhere/q1.csv"))


FAR_TIMES = [
    # type, number, text
    (pa.timestamp("us"), 327_403_555_200_500_000, "+12345-01-03 00:00:00.5"),
    (pa.timestamp("us", "UTC"), 327_403_555_200_000_000, "+12345-01-03 00:00:00"),
    (pa.timestamp("us", "UTC"), 2**63 - 1, "+294247-01-10 04:00:54.775807"),
    (pa.timestamp("us", "UTC"), -62_135_596_800_000_001, "0000-12-31 23:59:59.999999"),
    (pa.timestamp("us"), -(2**62), "-144169-06-28 09:59:32.612096"),
    (pa.date32(), 3_000_000, "+10183-09-21"),
    (pa.date32(), -800_000, "-0221-09-04"),
    (pa.date32(), 2**31 - 1, "+5881580-07-11"),
]


@pytest.mark.parametrize(("kind", "number", "expected"), FAR_TIMES)
def test_times_of_any_year_have_a_text(kind: pa.DataType, number: int, expected: str) -> None:
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    near = pa.array([0], whole)
    found = texts(pa.concat_arrays([pa.array([number, None], whole), near]).cast(kind)).to_pylist()
    assert found == [expected, None, "1970-01-01" if pa.types.is_date32(kind) else "1970-01-01 00:00:00"]
    for form in FORMATS:
        assert expected in text(form, pa.table({"x": pa.array([number], whole).cast(kind)}))
