"""Streams and answers as little tables, so that a test reads like an example of a paper.

A stream is a table of what arrived, in order of arrival. A line ``---`` begins the next source partition, and
a line ``heartbeat 12:05`` is a heartbeat. An empty cell is NULL. A time without a date is on the first day of
2026.
"""

from __future__ import annotations

from datetime import UTC, datetime

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.catalog import Catalog
from millstream.catalog.entries import Stream, Table
from millstream.syntax import parse_script
from millstream.types import Field, Kind, Type
from oracle import Answer, Arrivals, Heartbeat, Input, Row, answer, answers
from oracle.values.texts import from_text

Cells = list[tuple[str, ...]]
DAY = "2026-01-01"


def table(text: str) -> Cells:
    """A little table as rows of texts, the header first."""
    return [tuple(cell.strip() for cell in line.split("|")) for line in text.strip().splitlines()]


def ask(script: str, *, ended: bool = True, **inputs: str) -> Answer:
    """The answer to the query of a script, for streams and tables given as little tables."""
    return answer(script, read_inputs(script, inputs), ended=ended)


def ask_all(script: str, *, ended: bool = True, **inputs: str) -> dict[str, Answer]:
    return answers(script, read_inputs(script, inputs), ended=ended)


def shown(result: Answer, *, time: bool = True) -> Cells:
    """An answer as a little table; its first column is the timestamp."""
    header = (*(("time",) if time else ()), *result.columns)
    return [header, *((*(_cells(row.time) if time else ()), *_cells(*row.values)) for row in result.rows)]


def late(result: Answer, stream: str = "s") -> Cells:
    """The late tuples of a stream, without a header."""
    return [_cells(*values) for values in result.late[stream]]


# ---------------------------------------------------------------- reading


def read_inputs(script: str, inputs: dict[str, str]) -> dict[str, Input]:
    catalog = Catalog()
    for statement in parse_script(script):
        analyse(statement, catalog)
    return {name: _read(catalog.relation(name), text) for name, text in inputs.items()}


def _read(entry: object, text: str) -> Input:
    assert isinstance(entry, Stream | Table)
    header, *lines = text.strip().splitlines()
    fields = {field.name: field for field in entry.schema or ()}
    columns = [fields[name.strip()] for name in header.split("|")]
    if isinstance(entry, Table):
        return [_row(line, columns) for line in lines]
    partitions: list[list[Row | Heartbeat]] = [[]]
    for line in lines:
        if line.strip() == "---":
            partitions.append([])
        elif line.strip().startswith("heartbeat "):
            type_ = entry.timestamp.type
            assert type_ is not None
            partitions[-1].append(Heartbeat(_value(line.strip().removeprefix("heartbeat "), type_)))
        else:
            partitions[-1].append(Row(_row(line, columns)))
    return Arrivals(partitions)


def _row(line: str, columns: list[Field]) -> dict[str, object]:
    cells = [cell.strip() for cell in line.split("|")]
    return {field.name: _value(cell, field.type) for cell, field in zip(cells, columns, strict=True)}


def _value(cell: str, type_: Type) -> object:
    if cell == "":
        return None
    if type_.kind is Kind.STRING:
        return cell
    if type_.kind is Kind.TIMESTAMP and "-" not in cell:
        cell = f"{DAY} {cell}"
    return from_text(cell, type_)


# ---------------------------------------------------------------- writing


def _cells(*values: object) -> tuple[str, ...]:
    return tuple(_cell(value) for value in values)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        text = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        return text.removeprefix(f"{DAY} ").removesuffix(":00")
    return str(value)
