"""Expressions of a pattern query, as functions of the tuples that the elements of an attempt have taken.

References to the pattern (``Y.previous.price``, ``FIRST(Y).price``, ``count(*Y)``) are facts about an
attempt. Each is put into the expression as a column of its own; the rest is an ordinary expression. An
aggregate is over all tuples that its star has taken so far, including the present one: so a running aggregate
has a value with every tuple, and when the star is complete that is the final one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from millstream.analysis.patterns.pattern_names import ENDS, PREVIOUS, is_aggregate
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import PatternClause
from millstream.catalog import Catalog
from millstream.syntax import nodes, to_sql
from millstream.types import Type
from oracle.errors import NotInterpreted
from oracle.patterns.pattern_measures import WHOLE_TUPLE, Measure, measure
from oracle.relations import Record
from oracle.values.expressions import compiled
from oracle.values.values import Value


@dataclass(frozen=True)
class Taken:
    """The tuples of a partition that each element has taken, by their positions in its history.

    During an attempt, the last element already has the tuple that it is to take. ``beside`` is the row of the
    tables that a match is joined with.
    """

    history: Sequence[Record]
    elements: tuple[range, ...]
    beside: Sequence[Value] = ()


Fact = Callable[[Taken], Value]
OfTuple = Callable[[Sequence[Record], int], Value]
"""Returns a value of the tuple at a position of a history, or of one before it."""


class _Row(Sequence[Value]):
    """Facts as a row, each computed on demand: a condition before it may guard it."""

    def __init__(self, facts: Sequence[Fact], taken: Taken) -> None:
        self._facts, self._taken = facts, taken

    def __len__(self) -> int:
        return len(self._facts)

    def __getitem__(self, index: int) -> Value:  # type: ignore[override]
        return self._facts[index](self._taken)


class Facts:
    """Compiler of the expressions of one pattern query.

    Args:
        clause: The pattern.
        columns: The columns of the stream or table that is searched.
        beside: The columns of the tables that a match is joined with.
        catalog: Definitions of user-defined aggregates.
    """

    def __init__(
        self,
        clause: PatternClause,
        columns: Sequence[ColumnRef],
        beside: Sequence[ColumnRef],
        catalog: Catalog,
    ) -> None:
        self._variables = [element.name.lower() for element in clause.elements]
        self._partition_by = {name.lower() for name in clause.partition_by}
        self._columns = columns
        self._beside = beside
        self._catalog = catalog

    def compiled(self, expr: Expr) -> Fact:
        """Return the value of an expression for an attempt or a match."""
        assert expr.tree is not None
        schema: list[ColumnRef] = []
        facts: list[Fact] = []

        def with_holes(node: exp.Expr) -> exp.Expr:
            typed = self._fact(node)
            if typed is None:
                return node
            type_, fact = typed
            schema.append(ColumnRef("", f"fact{len(facts)}", type_))
            facts.append(fact)
            return exp.column(schema[-1].name)

        text = to_sql(expr.tree.transform(with_holes))
        value = compiled(Expr((text,)), schema)
        return lambda taken: value(_Row(facts, taken))

    def holds(self, condition: Expr) -> Callable[[Taken], bool]:
        """Return whether a condition is true; NULL is not."""
        value = self.compiled(condition)
        return lambda taken: value(taken) is True

    def has_aggregate(self, expr: Expr) -> bool:
        """Return whether an expression depends on more of a star than its first and its last tuple."""
        assert expr.tree is not None
        return any(self._is_aggregate(node) for node in expr.tree.walk())

    # ------------------------------------------------------------ facts

    def _fact(self, node: exp.Expr) -> tuple[Type, Fact] | None:
        """Return the fact at a node, if it concerns the pattern or a table beside it."""
        base, path = _path(node)
        if isinstance(base, exp.Column):
            return self._column([part.name for part in base.parts] + path)
        if self._is_end(base):
            return self._end(base, path)
        if self._is_aggregate(base):
            return self._aggregate(base, path)
        if isinstance(node, nodes.Starred):
            raise NotInterpreted("an aggregate without a catalog that describes it")
        return None

    def _column(self, names: list[str]) -> tuple[Type, Fact] | None:
        if names[0].lower() in self._variables:
            element = self._variables.index(names[0].lower())
            type_, value = self._of_tuple(names[1:])
            return type_, lambda taken: value(taken.history, taken.elements[element][-1])
        if len(names) == 1 and names[0].lower() in self._partition_by:
            # It is equal in all tuples of a match.
            type_, value = self._of_tuple(names)
            return type_, lambda taken: value(taken.history, taken.elements[0][0])
        beside = [[column.relation.lower(), column.name.lower()] for column in self._beside]
        key = [name.lower() for name in names]
        if key not in beside:
            return None
        place = beside.index(key)
        return self._beside[place].type, lambda taken: taken.beside[place]

    def _end(self, node: exp.Expr, path: list[str]) -> tuple[Type, Fact]:
        """Evaluate ``FIRST(Y).price`` and ``LAST(Y).price``."""
        element, at = self._element(node), 0 if node.name.lower() == ENDS[0] else -1
        type_, value = self._of_tuple(path)
        return type_, lambda taken: value(taken.history, taken.elements[element][at])

    def _aggregate(self, node: exp.Expr, path: list[str]) -> tuple[Type, Fact]:
        element = self._element(node)
        aggregate: Measure = measure(node, self._of_argument, self._catalog)
        if not path:
            return aggregate.type, lambda taken: aggregate.of(taken.history, taken.elements[element])
        fields = [field.name.lower() for field in aggregate.type.fields]
        if len(path) > 1 or path[0].lower() not in fields:
            raise NotInterpreted(f"a part of {aggregate.type}")
        at = fields.index(path[0].lower())

        def part(taken: Taken) -> Value:
            row = aggregate.of(taken.history, taken.elements[element])
            return None if row is None else row[at]

        return aggregate.type.fields[at].type, part

    # ------------------------------------------------------------ tuples

    def _of_tuple(self, path: list[str]) -> tuple[Type, OfTuple]:
        """Return a column of a tuple, or of an earlier one; NULL if there is none."""
        back = 0
        while path and path[0].lower() == PREVIOUS and (len(path) > 1 or self._position(PREVIOUS) is None):
            back, path = back + 1, path[1:]
        if not path:
            return WHOLE_TUPLE, lambda history, at: True if at >= back else None
        position = self._position(path[0])
        if position is None or len(path) > 1:
            raise NotInterpreted(f"the name '{'.'.join(path)}'")
        place: int = position
        return self._columns[
            place
        ].type, lambda history, at: history[at - back].values[place] if at >= back else None

    def _of_argument(self, node: exp.Expr) -> tuple[Type, OfTuple] | None:
        """Return the value at a node of an aggregate's argument, for each tuple that the star takes."""
        base, path = _path(node)
        if not isinstance(base, exp.Column):
            return None
        names = [part.name for part in base.parts] + path
        if names[0].lower() in self._variables:
            return self._of_tuple(names[1:])
        if len(names) == 1 and names[0].lower() in self._partition_by:
            return self._of_tuple(names)
        raise NotInterpreted(f"'{'.'.join(names)}' in an aggregate of a star")

    def _position(self, name: str) -> int | None:
        names = [column.name.lower() for column in self._columns]
        return names.index(name.lower()) if name.lower() in names else None

    # ------------------------------------------------------------ kinds of nodes

    def _is_end(self, node: exp.Expr) -> bool:
        """Return whether this is FIRST or LAST of a whole star."""
        if not isinstance(node, exp.Anonymous) or node.name.lower() not in ENDS or len(node.expressions) != 1:
            return False
        (argument,) = node.expressions
        column = argument.this if isinstance(argument, nodes.Starred) else argument
        is_variable = isinstance(column, exp.Column) and len(column.parts) == 1
        return is_variable and not self._catalog.has_aggregate(node.name)

    def _is_aggregate(self, node: exp.Expr) -> bool:
        return is_aggregate(node, self._catalog) and not self._is_end(node)

    def _element(self, node: exp.Expr) -> int:
        """Return the element that an aggregate refers to."""
        heads = (column.parts[0].name.lower() for column in node.find_all(exp.Column))
        return next(self._variables.index(head) for head in heads if head in self._variables)


def _path(node: exp.Expr) -> tuple[exp.Expr, list[str]]:
    """Return the root of a chain of names, and the names after it."""
    if not isinstance(node, exp.Dot):
        return node, []
    base, path = _path(node.this)
    return base, [*path, node.name]
