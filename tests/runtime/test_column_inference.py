"""Columns that CREATE STREAM and CREATE TABLE leave out, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.catalog.entries import Reader
from millstream.errors import AnalysisError
from millstream.runtime.column_inference import KeptColumns, inferred_columns
from millstream.runtime.local_engine import LocalEngine


def reader(path: Path, **options: str) -> Reader:
    return Reader(path.suffix[1:] or "csv", (("path", str(path)), *options.items()))


def columns(path: Path, **options: str) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in inferred_columns(reader(path, **options)))


def test_csv(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        'i;x;d;t;b;s;e\n1;1;2024-01-01;2024-01-01 10:00:00;true;x;\n-2;.5;2024-01-02;;FALSE;"1;2";-\n'
    )
    expected = "i bigint, x double, d date, t timestamp, b boolean, s string, e string"
    assert columns(file, header="true", sep=";", nullValue="-") == expected


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(
        '{"i": 1, "x": 1, "l": [1]}\nbroken\n{"x": 0.5, "s": "a", "t": "2024-01-01T00:00:00Z", "n": null}\n'
    )
    assert columns(file) == "i bigint, x double, l array<bigint>, s string, t timestamp, n string"


def test_parquet(tmp_path: Path) -> None:
    times = pa.array([0], pa.timestamp("us"))
    table = pa.table({"i": pa.array([1], pa.int16()), "t": times, "z": times.cast(pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert columns(tmp_path / "a.parquet") == "i smallint, t timestamp_ntz, z timestamp"
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert columns(tmp_path / "a.parquet") == "i smallint, t timestamp, z timestamp"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "there are no files in"),
        ("a.csv", "a,a\n", "has two columns 'a'"),
        ("a.csv", "", "has no header"),
        ("a.json", "", "has no JSON objects"),
        (
            "a.json",
            '{"a": 1}\n{"a": "x"}\n',
            "column 'a' is ambiguous: its values are number, string",
        ),
        ("a.json", '{"a": {"b": 1}}', "the type of column 'a' is ambiguous: its values are object"),
        ("a.parquet", "x", "cannot be read as parquet"),
    ],
)
def test_files_without_clear_columns(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(AnalysisError, match=message):
        columns(tmp_path / name, header="true")


def test_files_that_differ_and_directories_with_values(tmp_path: Path) -> None:
    for i, type_ in enumerate((pa.int32(), pa.int64())):
        pq.write_table(pa.table({"a": pa.array([1], type_)}), tmp_path / f"{i}.parquet")
    with pytest.raises(AnalysisError, match="the columns are ambiguous"):
        inferred_columns(Reader("parquet", (("path", str(tmp_path)),)))
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "2.parquet").write_bytes(b"")
    with pytest.raises(AnalysisError, match="the directory 'day=1' makes a column of its own"):
        inferred_columns(Reader("parquet", (("path", str(tmp_path)),)))


def test_a_stream_and_a_table_without_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ms,v\n2000,b\n1000,a\n")
    options = f"USING csv OPTIONS (path '{tmp_path}/a.csv', header 'true')"
    script = f"""
        CREATE STREAM a (at AS (timestamp_millis(ms))) ORDER BY at SLACK INTERVAL 5 SECONDS {options};
        CREATE TABLE t {options};
        SELECT a.v, t.ms FROM a JOIN t ON a.v = t.v;
    """
    [query] = [one for one in LocalEngine().execute(script) if not isinstance(one, str)]
    assert query.rows.to_pydict() == {"v": ["a", "b"], "ms": [1000, 2000]}


def test_the_place_of_an_error_is_the_format(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\n")
    with pytest.raises(AnalysisError, match="only from csv with header") as raised:
        LocalEngine().execute(f"CREATE STREAM a USING csv OPTIONS (path '{tmp_path}/a.csv')")
    assert raised.value.place is not None
    assert raised.value.place.column == 23


def test_a_checkpoint_keeps_the_columns(tmp_path: Path) -> None:
    file, kept = tmp_path / "a.csv", KeptColumns(tmp_path / "checkpoint" / "columns.json")
    file.write_text("a,l\n1,2\n")
    before = kept(reader(file, header="true"))
    file.write_text("a,l\nx,2\n")
    again = KeptColumns(kept.file)(reader(file, header="true"))
    assert again == before != inferred_columns(reader(file, header="true"))
