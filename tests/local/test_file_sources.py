"""Files without Spark: the rows and bad records that Spark reads."""

import bz2
import gzip
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.catalog.entries import Port, Reader, Stream, Table
from millstream.errors import ExecutionError, NotExecutableError
from millstream.local.file_sources import read_stream_files, read_table_files
from millstream.stage.hidden_columns import ROW
from millstream.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Field, decimal

FIELDS = (
    Field("i", INT),
    Field("x", DOUBLE),
    Field("s", STRING),
    Field("b", BOOLEAN),
    Field("t", TIMESTAMP),
    Field("d", DATE),
    Field("m", decimal(5, 2)),
)
CSV = """i,x,s,b,t,d,m
1,1.5,a,true,2026-01-01 10:00:00,2026-01-01,1.25
2,,"",,2026-01-01 10:00:01.5,,
3,NaN,"a ""b"", c",false,2026-01-01,2026-01-02,2

x,1,a,true,2026-01-01,2026-01-01,1
1,2
"""


def stream(path: Path, format_: str = "csv", **options: str) -> Stream:
    return Stream("s", FIELDS, Reader(format_, (("path", str(path)), *options.items())))


def test_csv(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(CSV)
    [found] = read_stream_files(stream(file, header="true"))
    ten = datetime(2026, 1, 1, 10, tzinfo=UTC)
    rows = found.rows.drop_columns([ROW])
    assert rows.to_pylist()[:2] == [
        {"i": 1, "x": 1.5, "s": "a", "b": True, "t": ten, "d": date(2026, 1, 1), "m": Decimal("1.25")},
        {"i": 2, "x": None, "s": "", "b": None, "t": ten + timedelta(seconds=1.5), "d": None, "m": None},
    ]  # fmt: skip
    assert found.rows.column("s").to_pylist()[2] == 'a "b", c'
    assert found.bad.column("record").to_pylist() == ["x,1,a,true,2026-01-01,2026-01-01,1", "1,2"]


def test_compressed_lines(tmp_path: Path) -> None:
    for name, compress in (("a.csv.gz", gzip.compress), ("b.csv.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(compress(b"1,1.5,a,true,2026-01-01,2026-01-01,1\n"))
        [file] = read_stream_files(stream(tmp_path / name))
        assert file.rows.column("i").to_pylist() == [1]
    (tmp_path / "c.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(ExecutionError, match=r"cannot read .*c\.csv\.gz"):
        read_stream_files(stream(tmp_path / "c.csv.gz"))


def test_values_of_a_table_that_do_not_fit_are_null(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("1,x\ny,z\n")
    table = Table("k", (Field("i", INT), Field("s", STRING)), Reader("csv", (("path", str(file)),)))
    assert read_table_files(table).to_pylist() == [{"i": 1, "s": "x"}, {"i": None, "s": "z"}]


def test_a_quote_that_is_not_closed_is_one_record(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('1,"x\n2,y\n3,z\n')
    fields = (Field("i", INT), Field("s", STRING))
    [found] = read_stream_files(Stream("s", fields, Reader("csv", (("path", str(file)),))))
    assert found.rows.column("i").to_pylist()[-2:] == [2, 3]


def test_lines_of_json(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"i": 1, "x": 2, "s": "a", "t": "2026-01-01 10:00:00", "m": 1.5}\n{"i": 1.5}\nnothing\n')
    [found] = read_stream_files(stream(file, "json"))
    [row] = found.rows.to_pylist()
    assert (row["i"], row["x"], row["s"], row["m"], row["b"]) == (1, 2.0, "a", Decimal("1.50"), None)
    assert found.bad.column("record").to_pylist() == ['{"i": 1.5}', "nothing"]


def test_parquet_has_the_declared_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int32())}), tmp_path / "a.parquet")
    source = Stream(
        "s", (Field("k", BIGINT), Field("other", STRING)), Reader("parquet", (("path", str(tmp_path)),))
    )
    [found] = read_stream_files(source)
    rows = found.rows.drop_columns([ROW])
    assert rows.schema.types == [pa.int64(), pa.string()]
    assert rows.to_pylist() == [{"k": 1, "other": None}, {"k": 2, "other": None}]


def test_files_arrive_by_time_and_name(tmp_path: Path) -> None:
    for name, when in (("b", 100), ("a", 200), ("c", 100)):
        file = tmp_path / f"{name}.csv"
        file.write_text(f"{ord(name)}\n")
        os.utime(file, (when, when))
    (tmp_path / "_SUCCESS").write_text("")
    source = Stream("s", (Field("i", INT),), Reader("csv", (("path", str(tmp_path)),)))
    assert [one.rows.column("i").to_pylist() for one in read_stream_files(source)] == [[98], [99], [97]]


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        (Port(4445), "stream 's' is read from port 4445, and the local engine reads files only"),
        (Reader("orc", (("path", "x"),)), "the format 'orc', and the local engine reads csv, json, parquet"),
        (Reader("csv", (("path", "x"), ("encoding", "latin1"))), "the option 'encoding', which only Spark's"),
        (Reader("csv", (("path", "x"), ("follow", "true"))), "reads bounded input only"),
    ],
)
def test_refused(origin: Port | Reader, message: str) -> None:
    with pytest.raises(NotExecutableError, match=message):
        read_stream_files(Stream("s", FIELDS, origin))


def test_missing_files_and_headers(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=r"stream 's' reads '.*', which does not exist"):
        read_stream_files(stream(tmp_path / "none.csv"))
    (tmp_path / "a.csv").write_text("x,i\n")
    with pytest.raises(ExecutionError, match=r"a.csv has the header \(x, i\), and not \(i, x, "):
        read_stream_files(stream(tmp_path / "a.csv", header="true"))


def test_columns_of_csv_are_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("S,other,i\nx,1,1\ny,2\nz,3,soon\n")
    reader = Reader("csv", (("path", str(tmp_path / "a.csv")), ("header", "true")))
    fields = (Field("i", INT), Field("s", STRING))
    [found] = read_stream_files(Stream("s", fields, reader))
    assert found.rows.drop_columns([ROW]).to_pylist() == [{"i": 1, "s": "x"}]
    assert found.bad.column("record").to_pylist() == ["y,2", "z,3,soon"]
    rows = read_table_files(Table("t", fields, reader)).to_pylist()
    assert rows[0] == {"i": 1, "s": "x"}
    assert rows[2] == {"i": None, "s": "z"}
