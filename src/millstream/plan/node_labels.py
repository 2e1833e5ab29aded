"""Parts of the labels of plan nodes in EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_query import Arrangement, Output, PatternClause
from millstream.catalog.entries import ComputedColumn, Selection


def with_alias(name: str, alias: str) -> str:
    """Return a name with its alias, if they differ."""
    return name if alias.lower() == name.lower() else f"{name} AS {alias}"


def computed(columns: Iterable[ComputedColumn], selection: Selection | None = None) -> str:
    """Return the computed columns of a scan with their expressions, and the query behind which it orders."""
    text = "".join(f", {column.name} := {column.expr}" for column in columns)
    if selection is not None:
        text += f", of {selection.stream.name}{computed(selection.stream.computed)}"
        for step in selection.steps:
            text += f", {', '.join(f'{column.name} := {column.expr}' for column in step.columns)}"
            text += f", where {' AND '.join(map(str, step.conditions))}" if step.conditions else ""
    return text


def listed(outputs: Iterable[Output]) -> str:
    """Return the columns of a result."""
    return ", ".join(map(_output, outputs))


def _output(output: Output) -> str:
    column = output.expr.column
    same = (column is not None and column.name == output.name) or str(output.expr) == output.name
    return str(output.expr) if same else f"{output.expr} AS {output.name}"


def arranged(arrangement: Arrangement, schema: Sequence[ColumnRef]) -> str:
    """Return ORDER BY, LIMIT and OFFSET."""
    keys = [
        f"{schema[key.column].name}{' DESC' if key.descending else ''}"
        f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in arrangement.keys
    ]
    parts = [f"ORDER BY {', '.join(keys)}"] if keys else []
    parts += [f"LIMIT {arrangement.limit}"] if arrangement.limit is not None else []
    parts += [f"OFFSET {arrangement.offset}"] if arrangement.offset else []
    return " ".join(parts)


def pattern(clause: PatternClause) -> str:
    """Return the elements of a pattern and its conditions."""
    elements = ", ".join(f"{'*' if e.star else ''}{e.name}" for e in clause.elements)
    by = f" PARTITION BY {', '.join(clause.partition_by)}" if clause.partition_by else ""
    conditions = [*(c for e in clause.elements for c in (*e.per_tuple, *e.final)), *clause.after_match]
    where = f" WHERE {' AND '.join(map(str, conditions))}" if conditions else ""
    return f"{by} AS ({elements}){where}"
