"""Results for people and programs: an aligned table, CSV, or a JSON object for each row.

All three are made a column at a time in Arrow (values by `runtime/results/value_formatting.py`), and come out
piece by piece, so that any number of rows can be written.

- `csv` follows RFC 4180 with a header row and lines that end in a plain newline: a field is quoted if
  it has a comma, a quote or a line break in it, or is the empty string; NULL is an empty field.
- `json` is one object on each line, with null for NULL.
- `table` is for reading: numbers to the right, text to the left. Columns are as wide as in the first
  rows; should a wider value come later, its column is wider from there on.
"""

from __future__ import annotations

import contextlib
import os
import unicodedata
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import ExecutionError
from millstream.runtime.results.value_formatting import is_verbatim, json_objects, json_texts, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_ROWS = 65_536
_BYTES = 2**28
"""Size of a formatted piece: enough to be fast, and far below Arrow's limit of 2 GB of text."""


class ByteSink(Protocol):
    """A target for bytes."""

    def write(self, piece: bytes, /) -> object: ...

    def flush(self) -> None: ...


def encode(tables: Iterable[pa.Table], schema: pa.Schema, form: str) -> Iterator[bytes]:
    """Yield tables as UTF-8 text in one of `FORMATS`, in pieces; the schema is for the header.

    A piece consists of whole lines. The header precedes the first rows, or ends the output if there are none.
    """
    return FORMATS[form](_pieces(tables), schema)


def write(tables: Iterable[pa.Table], schema: pa.Schema, form: str, sink: ByteSink) -> None:
    """Write tables to a stream, such as `sys.stdout.buffer`, and flush it after each."""
    for piece in encode(tables, schema, form):
        sink.write(piece)
        sink.flush()


def write_file(tables: Iterable[pa.Table], schema: pa.Schema, form: str, path: Path) -> None:
    """Write tables to a file atomically."""
    # In the same directory, because a rename cannot cross file systems.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as sink:
            sink.writelines(encode(tables, schema, form))
        unfinished.replace(path)
    except OSError as error:
        raise ExecutionError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="check the directory, its permissions, and the space left on its disk",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def _csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    names = _csv_quoted(pa.array(schema.names, pa.string())).to_pylist()
    header = (",".join(names) + "\n").encode()
    for batch in batches:
        fields = [
            texts(column) if is_verbatim(column.type) else _csv_quoted(texts(column))
            for column in batch.columns
        ]
        yield header + _lines(_join(fields, ","))
        header = b""
    if header:
        yield header


def _csv_quoted(column: pa.Array) -> pa.Array:
    quote = pc.or_(pc.match_substring_regex(column, '[,"\r\n]'), pc.equal(pc.binary_length(column), 0))
    if not pc.any(quote).as_py():
        return column
    doubled = pc.replace_substring(column, '"', '""')
    return pc.if_else(quote, pc.binary_join_element_wise('"', doubled, '"', ""), column)


def _json(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    for batch in batches:
        columns = [json_texts(column) for column in batch.columns]
        yield _lines(json_objects(schema.names, columns, batch.num_rows))


def _table(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    numeric = [
        pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t) for t in schema.types
    ]
    widths = [_width(name) for name in schema.names]
    header_due = True
    for batch in batches:
        cells = [_cells(column) for column in batch.columns]
        widths = [max(width, _widest(column)) for width, column in zip(widths, cells, strict=True)]
        header = _table_header(schema.names, widths, numeric) if header_due else b""
        header_due = False
        padded = [_pad(*parts) for parts in zip(cells, widths, numeric, strict=True)]
        yield header + _lines(pc.utf8_rtrim_whitespace(_join(padded, " | ")))
    if header_due:
        yield _table_header(schema.names, widths, numeric)


def _table_header(names: list[str], widths: list[int], numeric: list[bool]) -> bytes:
    titles = []
    for name, width, to_the_right in zip(names, widths, numeric, strict=True):
        space = " " * (width - _width(name))
        titles.append(space + name if to_the_right else name + space)
    rule = "-+-".join("-" * width for width in widths)
    return f"{' | '.join(titles).rstrip()}\n{rule}\n".encode()


def _cells(column: pa.Array) -> pa.Array:
    cells = texts(column)
    if not is_verbatim(column.type):
        # A line break would break the table.
        for character, shown in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
            cells = pc.replace_substring(cells, character, shown)
    return pc.fill_null(cells, "NULL")


def _pad(cells: pa.Array, width: int, to_the_right: bool) -> pa.Array:
    if to_the_right:
        return pc.utf8_lpad(cells, width)
    if _is_ascii(cells):
        return pc.utf8_rpad(cells, width)
    return pa.array([text + " " * (width - _width(text)) for text in cells.to_pylist()], pa.string())


def _widest(cells: pa.Array) -> int:
    if _is_ascii(cells):
        return int(pc.max(pc.binary_length(cells)).as_py() or 0)
    return max((_width(text) for text in cells.to_pylist()), default=0)


def _is_ascii(cells: pa.Array) -> bool:
    return bool(pc.all(pc.string_is_ascii(cells)).as_py())


def _width(text: str) -> int:
    """Return the width of a text in a terminal: Chinese characters take two columns, accents none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _pieces(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        if table.num_rows:
            rows = max(1, min(_ROWS, _BYTES * table.num_rows // max(1, table.nbytes)))
            # A table may have empty chunks, and Arrow has no text buffer for an empty column.
            yield from (batch for batch in table.to_batches(max_chunksize=rows) if batch.num_rows)


def _join(columns: list[pa.Array], between: str) -> pa.Array:
    return pc.binary_join_element_wise(*columns, between, null_handling="replace", null_replacement="")


def _lines(column: pa.Array) -> bytes:
    """Return all texts of a column as lines."""
    lines = pc.binary_join_element_wise(column, "\n", "")
    # Arrow stores the texts of a column contiguously, so its buffer is the content of the file.
    return bytes(lines.buffers()[2])


FORMATS: dict[str, Callable[[Iterable[pa.RecordBatch], pa.Schema], Iterator[bytes]]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
}
"""Encoders by the name of their format."""
