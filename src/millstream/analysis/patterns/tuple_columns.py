"""Columns of the tuples of a pattern, in all the ways in which they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.patterns.pattern_names import ENDS, PREVIOUS, PatternNames, Variable, tuple_argument
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.ir.pattern import End, Place

if TYPE_CHECKING:
    from millstream.types import Field

_ENDS = dict(zip(ENDS, (End.FIRST, End.LAST), strict=True))


@dataclass(frozen=True)
class TupleColumn:
    """``Y.previous.pos.x``: a column of a tuple of the pattern, and the fields of a struct taken from it."""

    variable: Variable
    end: End
    back: int
    column: Field
    fields: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        return Place(self.variable.position, self.end, self.back)

    @property
    def ref(self) -> ColumnRef:
        """The column by which a match has it, whatever the spelling."""
        name, type_ = self.column.name, self.column.type
        if self.end is End.NOW and not self.back:
            return ColumnRef(self.variable.name, name, type_)
        whole = self.variable.name
        if self.end is not End.NOW:
            whole = f"{self.end.value.upper()}({whole})"
        return ColumnRef("", ".".join([whole, *[PREVIOUS] * self.back, name]), type_)


def tuple_column(node: exp.Expr, names: PatternNames) -> TupleColumn | None:
    """What a name says of a tuple of the pattern, or None where it speaks of something else.

    sqlglot cuts long names: the first four parts are a column, the rest are dots around it.
    """
    path: list[str] = []
    while isinstance(node, exp.Dot):
        path.insert(0, node.expression.name)
        node = node.this
    variable, end = None, End.NOW
    if isinstance(node, exp.Column):
        variable = names.variable_of(node)
        path = [*(part.name for part in node.parts[1:]), *path]
    elif isinstance(node, exp.Anonymous) and node.name.lower() in ENDS:
        variable, end = tuple_argument(node, names), _ENDS[node.name.lower()]
    columns = {field.name.lower(): field for field in names.relation.fields or ()}
    back = 0
    while path and path[0].lower() == PREVIOUS and not (len(path) == 1 and PREVIOUS in columns):
        path, back = path[1:], back + 1
    if variable is None or not path or path[0].lower() not in columns:
        return None
    return TupleColumn(variable, end, back, columns[path[0].lower()], tuple(path[1:]))
