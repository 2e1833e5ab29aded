"""Expressions of a pattern query in their checked form: columns by the places of their tuples, measures."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.patterns.pattern_expressions import PatternExpressions, with_holes
from millstream.analysis.patterns.pattern_names import (
    ENDS,
    RUNNING,
    Variable,
    is_aggregate,
    is_part_of_row,
    tuple_argument,
)
from millstream.analysis.patterns.star_aggregate_calls import WrittenCall, written_call
from millstream.analysis.patterns.star_aggregates import is_known, of_star, split_arguments
from millstream.analysis.patterns.tuple_columns import TupleColumn, tuple_column
from millstream.analysis.queries.name_resolver import aggregate_name
from millstream.analysis.queries.over_clause import rows_preceding
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_expression import Expr as Text
from millstream.analysis.queries.resolved_query import Output
from millstream.analysis.types.builtin_aggregates import written_arguments
from millstream.analysis.types.elaborator import Elaborator, shown
from millstream.analysis.types.expression_types import OF_GROUP
from millstream.analysis.types.implicit_casts import converted
from millstream.analysis.udas.body_elaborator import bodies_of
from millstream.catalog.functions import is_deterministic
from millstream.errors import AnalysisError
from millstream.ir.pattern import End, Measure, Place
from millstream.ir.typed_nodes import Aggregation, Body, Column, Expr, GroupColumn
from millstream.program.content_aggregate import WHOLE_ROW, ContentAggregate, Direction
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.types import BOOLEAN, Kind, Type, struct

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_KEPT = (Kind.VARIANT, Kind.YEAR_MONTH_INTERVAL, Kind.UNKNOWN)


class PatternElaborator(Elaborator):
    """Makes checked expressions of the conditions and results of one pattern.

    What cannot be compiled, but speaks of one tuple only, is ``computed`` before the search, as a column
    more of the tuples: any function of Spark's or of the user's, a part of a struct.
    """

    where = "in a pattern"

    def __init__(self, expressions: PatternExpressions) -> None:
        super().__init__(expressions.typer.settled_type, expressions.resolver.catalog)
        self._names = expressions.names
        self.places: list[Place] = []
        self.measures: list[Measure] = []
        self.computed: list[Output] = []
        self._growing: Variable | None = None
        self._here = Place(len(self._names.variables) - 1)

    @contextmanager
    def testing(self, variable: Variable, *, final: bool) -> Iterator[None]:
        """While the conditions of an element are made; a star that is not ``final`` grows."""
        before = self._growing, self._here
        self._growing, self._here = None if final else variable, Place(variable.position)
        try:
            yield
        finally:
            self._growing, self._here = before

    def of(self, node: exp.Expr) -> Expr:
        try:
            return super().of(node)
        except AnalysisError:
            computed = self._computed_before(node)
            if computed is None:
                raise
            return computed

    def found(self, node: exp.Expr) -> Expr | None:
        if isinstance(node, nodes.Starred):
            return self.of(node.this)
        column = tuple_column(node, self._names)
        if column is not None:
            if column.fields:
                raise self.refused(node, "a part of a struct")
            return self.of_tuple(column)
        if is_part_of_row(node, self._catalog):
            return self._aggregate(node.this, node.expression.name)
        return self._aggregate(node) if is_aggregate(node, self._catalog) else None

    # ------------------------------------------------------------ tuples

    def of_tuple(self, column: TupleColumn) -> Expr:
        return self._column(self._place(column), column.column.name)

    def _place(self, column: TupleColumn) -> Place:
        """While a star grows, its last tuple is the one that it is to take."""
        if column.end is End.LAST and column.variable == self._growing:
            return Place(column.variable.position)
        return column.place

    def _column(self, place: Place, name: str) -> Column:
        fields = self._names.relation.fields or ()
        index = [field.name.lower() for field in fields].index(name.lower())
        type_ = fields[index].type
        if type_.kind in _NOT_KEPT:
            raise AnalysisError(f"'{fields[index].name}' of type {type_} cannot be used {self.where} yet")
        return self._at(place, index, type_)

    def _at(self, place: Place, index: int, type_: Type) -> Column:
        if place not in self.places:
            self.places.append(place)
        return Column(self.places.index(place), index, type_)

    def column(self, node: exp.Column) -> Expr:
        if len(node.parts) == 1 and self._names.is_partition_column(node.name):
            return self._column(self._here, node.name)
        if len(node.parts) == 1 and self._names.variable_of(node) is None:
            return self.called(node.name.lower(), node, ())
        raise self.refused(node, f"the whole tuple '{shown(node)}'")

    def dot(self, node: exp.Dot) -> Expr:
        raise self.refused(node, "a part of a struct")

    # ------------------------------------------------------------ what Spark computes before

    def _computed_before(self, node: exp.Expr) -> Expr | None:
        """A column more of the tuple that an expression speaks of, if it is one and nothing else counts."""
        columns = [column for part in node.walk() if (column := tuple_column(part, self._names)) is not None]
        places = {self._place(column) for column in columns}
        if len(places) != 1 or not all(map(self._is_plain, node.walk())):
            return None
        type_ = self._typed(node)
        if type_.kind in _NOT_KEPT:
            return None
        text = Text(with_holes(node, self._of_relation), type_)
        index = next((i for i, known in enumerate(self.computed) if known.expr == text), len(self.computed))
        if index == len(self.computed):
            self.computed.append(Output(f"__computed{index}", text))
        return self._at(places.pop(), len(self._names.relation.fields or ()) + index, type_)

    def _is_plain(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Query | nodes.Starred) or is_aggregate(node, self._catalog):
            whole = isinstance(node.parent, exp.Dot) and node.name.lower() in ENDS
            return whole and isinstance(node, exp.Anonymous)
        return not isinstance(node, exp.Anonymous) or is_deterministic(node.name, len(node.expressions))

    def _of_relation(self, node: exp.Expr) -> tuple[ColumnRef, tuple[str, ...]] | None:
        relation = self._names.relation
        column = tuple_column(node, self._names)
        if column is not None:
            return ColumnRef(relation.alias, column.column.name, column.column.type), column.fields
        if isinstance(node, exp.Column) and self._names.is_partition_column(node.name):
            found = relation.find(node.name)
            return (found, ()) if found is not None else None
        return None

    # ------------------------------------------------------------ aggregates

    def _aggregate(self, node: exp.Expr, column: str | None = None) -> Expr:
        """An aggregate of a star; of one that returns rows, all of the row or a column."""
        name = aggregate_name(node).lower()
        written = written_call(node)
        variable = next(v for c in node.find_all(exp.Column) if (v := self._names.variable_of(c)) is not None)
        starred = node.find(nodes.Starred) is not None or (name in ENDS and not self._is_own(name))
        final = starred and variable != self._growing
        rows = None if written.window is None else _rows(written.window)
        with self._at_each_tuple(variable):
            if self._is_own(name):
                made = self._user(name, node, written, column, moving=rows is not None, running=not final)
            else:
                made = self._built_in(RUNNING.get(name, name), node, written)
            if written.condition is not None:
                made = replace(made, filter=self.as_(written.condition, BOOLEAN))
        measure = Measure(variable.position, made, final, rows)
        if measure not in self.measures:
            self.measures.append(measure)
        return GroupColumn(self.measures.index(measure), made.type)

    @contextmanager
    def _at_each_tuple(self, variable: Variable) -> Iterator[None]:
        """While arguments are made: columns of the partition are those of the tuple that is taken."""
        before, self._here = self._here, Place(variable.position)
        try:
            yield
        finally:
            self._here = before

    def _is_own(self, name: str) -> bool:
        return self._catalog.has_aggregate(name)

    def _counts_tuples(self, name: str, call: exp.Expr) -> bool:
        """``count(*Y)``: a whole tuple is there, whatever its columns are."""
        return RUNNING.get(name, name) == "count" and tuple_argument(call, self._names) is not None

    def _built_in(self, name: str, node: exp.Expr, written: WrittenCall) -> Aggregation:
        if not is_known(name):
            raise self.refused(node, f"the aggregate '{name}'")
        given, distinct = written_arguments(written.call)
        # What WITHIN GROUP orders by is the first argument of percentiles, and stands behind those of others.
        if name in OF_GROUP:
            given = [*written.sorted_by, *given]
        values, constants, ignore_nulls = split_arguments(name, given)
        if name not in OF_GROUP:
            values += written.sorted_by
        return of_star(
            name,
            () if self._counts_tuples(name, written.call) else tuple(map(self.of, values)),
            constants,
            self.type_of(node),
            distinct=distinct,
            ignore_nulls=ignore_nulls if written.ignore_nulls is None else written.ignore_nulls,
            order=tuple(
                Direction(bool(by.args.get("desc")), bool(by.args.get("nulls_first"))) for by in written.order
            ),
        )

    def _user(
        self,
        name: str,
        node: exp.Expr,
        written: WrittenCall,
        column: str | None,
        *,
        moving: bool,
        running: bool,
    ) -> Aggregation:
        given_arguments, distinct = written_arguments(written.call)
        arguments = tuple(map(self.of, given_arguments))
        entry = self._catalog.aggregate(name) or self._catalog.aggregate(name, window=True)
        assert entry is not None, "it is the user's"
        bodies = bodies_of(name, [argument.type for argument in arguments], self._catalog)
        if bodies.unfit is not None:
            raise AnalysisError(bodies.unfit, span=span_of(node))
        # As in OVER, what does not see all tuples of its window is computed from those that it sees.
        follows = moving and not distinct and written.condition is None
        body = (bodies.window or bodies.base) if follows else bodies.base or bodies.window
        assert body is not None, "a star asks for the base version, and a moving window takes either"
        given = tuple(converted(a, p.type) for a, p in zip(arguments, body.parameters, strict=True))
        names = [returned.name.lower() for returned in body.returns]
        at = names.index(column.lower()) if column is not None else WHOLE_ROW if entry.returns_row else 0
        type_ = struct(*body.returns) if at == WHOLE_ROW else body.returns[at].type
        # While its star grows, one that has a value only in the end sees all tuples anew.
        anew = running and not moving and entry.blocking
        of_content = isinstance(body, Body) and body.window and not follows
        if isinstance(body, Body) and not (anew or distinct or of_content or at == WHOLE_ROW):
            return Aggregation(name, given, type_, user=body, column=at)
        if isinstance(body, Body) and body.given:
            raise self.refused(node, f"'{name}', which reads a table,")
        return ContentAggregate(name, given, type_, distinct, column=at, source=body)


def _rows(node: exp.Window) -> int | None:
    """The size of a moving window, None if it reaches back to the first tuple of the star."""
    start = node.args["spec"].args["start"]
    return rows_preceding(start).count + 1 if isinstance(start, exp.Expr) else None
