"""Typed form of a pattern (``ir.pattern``): columns by the places of their tuples, measures, conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.patterns.pattern_expressions import with_holes
from millstream.analysis.patterns.pattern_names import (
    ENDS,
    PatternNames,
    PatternTyper,
    TupleColumn,
    Variable,
    is_aggregate,
    is_part_of_row,
    tuple_argument,
    tuple_column,
)
from millstream.analysis.patterns.star_aggregates import (
    WrittenCall,
    of_star,
    split_arguments,
    written_call,
)
from millstream.analysis.queries.name_resolver import aggregate_name
from millstream.analysis.queries.over_clause import rows_preceding
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_expression import Expr as Text
from millstream.analysis.queries.resolved_query import Output
from millstream.analysis.types.elaborator import shown
from millstream.analysis.types.implicit_casts import converted
from millstream.analysis.types.typed_aggregates import written_arguments
from millstream.analysis.udas.aggregate_versions import bodies_of
from millstream.catalog.builtin_aggregates import RUNNING_NAMES, Within, builtin_aggregate
from millstream.catalog.functions import is_deterministic
from millstream.codegen.core.expression_emitter import is_supported
from millstream.errors import AnalysisError
from millstream.ir.pattern import Element, End, Measure, Pattern, Place
from millstream.ir.typed_nodes import Aggregation, Body, Call, Column, Expr, GroupColumn
from millstream.program.content_aggregate import WHOLE_ROW, ContentAggregate, Direction
from millstream.syntax import nodes
from millstream.types import BOOLEAN, Field, Kind, Type, struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.patterns.pattern_expressions import Spoken
    from millstream.analysis.patterns.pattern_names import Variable
    from millstream.analysis.queries.name_resolver import Resolver
    from millstream.analysis.queries.resolved_expression import ColumnRef
    from millstream.analysis.queries.resolved_expression import Expr as Text
    from millstream.analysis.queries.resolved_query import Output, PatternClause


_NOT_KEPT = (Kind.VARIANT, Kind.YEAR_MONTH_INTERVAL, Kind.UNKNOWN)


class PatternElaborator(PatternTyper):
    """Elaborator of the conditions and results of one pattern.

    What cannot be compiled, but speaks of one tuple only, is ``computed`` before the search, as a column
    more of the tuples: any function of Spark's or of the user's, a part of a struct.
    """

    def __init__(self, names: PatternNames, resolver: Resolver) -> None:
        super().__init__(names, resolver)
        self.places: list[Place] = []
        self.measures: list[Measure] = []
        self.computed: list[Output] = []
        self._growing: Variable | None = None
        self._here = Place(len(self.names.variables) - 1)

    @contextmanager
    def testing(self, variable: Variable, *, final: bool) -> Iterator[None]:
        """Set the element whose conditions are made; a star that is not ``final`` grows."""
        before = self._growing, self._here
        self._growing, self._here = None if final else variable, Place(variable.position)
        try:
            yield
        finally:
            self._growing, self._here = before

    def of(self, node: exp.Expr) -> Expr:
        try:
            made = super().of(node)
            if isinstance(made, Call) and not is_supported(made):
                types = ", ".join(str(argument.type) for argument in made.arguments)
                raise self.refused(node, f"the function '{made.name}' of {types}")
            return made
        except AnalysisError:
            computed = self._computed_before(node)
            if computed is None:
                raise
            return computed

    def found(self, node: exp.Expr) -> Expr | None:
        if isinstance(node, nodes.Starred):
            return self.of(node.this)
        column = tuple_column(node, self.names)
        if column is not None:
            if column.fields:
                raise self.refused(node, "a part of a struct")
            return self.of_tuple(column)
        if is_part_of_row(node, self._catalog):
            return self._aggregate(node.this, node.expression.name)
        return self._aggregate(node) if is_aggregate(node, self._catalog) else None

    # ------------------------------------------------------------ tuples

    def of_tuple(self, column: TupleColumn) -> Expr:
        return self._column_at(self._place(column), column.column.name)

    def _place(self, column: TupleColumn) -> Place:
        """Return the place of a column; the last tuple of a growing star is the tuple it tests."""
        if column.end is End.LAST and column.variable == self._growing:
            return Place(column.variable.position)
        return column.place

    def _column_at(self, place: Place, name: str) -> Column:
        fields = self.names.relation.fields or ()
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
        if len(node.parts) == 1 and self.names.is_partition_column(node.name):
            return self._column_at(self._here, node.name)
        if len(node.parts) == 1 and self.names.variable_of(node) is None:
            return self.called(node.name.lower(), node, ())
        raise self.refused(node, f"the whole tuple '{shown(node)}'")

    def dot(self, node: exp.Dot) -> Expr:
        raise self.refused(node, "a part of a struct")

    # ------------------------------------------------------------ what Spark computes before

    def _computed_before(self, node: exp.Expr) -> Expr | None:
        """Add a computed column to the tuples, if an expression depends on one tuple only."""
        columns = [column for part in node.walk() if (column := tuple_column(part, self.names)) is not None]
        places = {self._place(column) for column in columns}
        if len(places) != 1 or not all(map(self._is_plain, node.walk())):
            return None
        type_ = self.type_of(node)
        if type_.kind in _NOT_KEPT:
            return None
        text = Text(with_holes(node, self._of_relation), type_)
        index = next((i for i, known in enumerate(self.computed) if known.expr == text), len(self.computed))
        if index == len(self.computed):
            self.computed.append(Output(f"__computed{index}", text))
        return self._at(places.pop(), len(self.names.relation.fields or ()) + index, type_)

    def _is_plain(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Query | nodes.Starred) or is_aggregate(node, self._catalog):
            whole = isinstance(node.parent, exp.Dot) and node.name.lower() in ENDS
            return whole and isinstance(node, exp.Anonymous)
        return not isinstance(node, exp.Anonymous) or is_deterministic(node.name, len(node.expressions))

    def _of_relation(self, node: exp.Expr) -> tuple[ColumnRef, tuple[str, ...]] | None:
        relation = self.names.relation
        column = tuple_column(node, self.names)
        if column is not None:
            return ColumnRef(relation.alias, column.column.name, column.column.type), column.fields
        if isinstance(node, exp.Column) and self.names.is_partition_column(node.name):
            found = relation.find(node.name)
            return (found, ()) if found is not None else None
        return None

    # ------------------------------------------------------------ aggregates

    def _aggregate(self, node: exp.Expr, column: str | None = None) -> Expr:
        """Return an aggregate of a star; of one that returns rows, all of the row or a column."""
        name = aggregate_name(node).lower()
        written = written_call(node)
        variable = next(v for c in node.find_all(exp.Column) if (v := self.names.variable_of(c)) is not None)
        starred = node.find(nodes.Starred) is not None or (name in ENDS and not self._is_own(name))
        final = starred and variable != self._growing
        rows = None if written.window is None else _rows(written.window)
        with self._at_each_tuple(variable):
            if self._is_own(name):
                made = self._user(name, node, written, column, moving=rows is not None, running=not final)
            else:
                made = self._built_in(RUNNING_NAMES.get(name, name), node, written)
            if written.condition is not None:
                made = replace(made, filter=self.as_(written.condition, BOOLEAN))
        measure = Measure(variable.position, made, final, rows)
        if measure not in self.measures:
            self.measures.append(measure)
        return GroupColumn(self.measures.index(measure), made.type)

    @contextmanager
    def _at_each_tuple(self, variable: Variable) -> Iterator[None]:
        """Take partition columns in arguments from the tuple that the star takes."""
        before, self._here = self._here, Place(variable.position)
        try:
            yield
        finally:
            self._here = before

    def _is_own(self, name: str) -> bool:
        return self._catalog.has_aggregate(name)

    def _counts_tuples(self, name: str, call: exp.Expr) -> bool:
        """Tell whether a call counts whole tuples, such as ``count(*Y)``."""
        return RUNNING_NAMES.get(name, name) == "count" and tuple_argument(call, self.names) is not None

    def _built_in(self, name: str, node: exp.Expr, written: WrittenCall) -> Aggregation:
        row = builtin_aggregate(name)
        if row is None:
            raise self.refused(node, f"the aggregate '{name}'")
        given, distinct = written_arguments(written.call)
        # What WITHIN GROUP orders by is the first argument of percentiles, and stands behind those of others.
        if row.within is Within.FIRST:
            given = [*written.sorted_by, *given]
        values, constants, ignore_nulls = split_arguments(row, given)
        if row.within is not Within.FIRST:
            values += written.sorted_by
        return of_star(
            row,
            () if self._counts_tuples(name, written.call) else tuple(map(self.of, values)),
            constants,
            self.known_type(node),
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
            raise error_at(node, bodies.unfit)
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
    """Return the size of a moving window, None if it reaches back to the first tuple of the star."""
    start = node.args["spec"].args["start"]
    return rows_preceding(start).count + 1 if isinstance(start, exp.Expr) else None


def build_pattern(
    clause: PatternClause,
    outputs: Iterable[Output],
    spoken: Mapping[ColumnRef, Spoken],
    values: PatternElaborator,
) -> PatternClause:
    """Add the typed form to a clause, or the reason why it cannot be compiled yet.

    A match gives what conditions after the match and outputs have in their holes. Those are computed from
    that by Spark, after the joins with tables, so there may be anything in them.
    """
    results = (*clause.after_match, *(output.expr for output in outputs))
    returned = tuple(dict.fromkeys(ref for text in results for ref in text.columns() if ref in spoken))
    names = values.names
    if names.relation.fields is None:
        return replace(clause, unfit=f"the columns of '{clause.alias}' are not known before Spark reads it")
    try:
        elements = tuple(_element(clause, variable, values) for variable in names.variables)
        with values.testing(names.variables[-1], final=False) if clause.each else nullcontext():
            made = tuple(_result(spoken[ref], values) for ref in returned)
    except AnalysisError as error:
        return replace(clause, unfit=error.message)
    form = Pattern(
        (*names.relation.fields, *(output.field for output in values.computed)),
        elements,
        tuple(values.places),
        tuple(values.measures),
        made,
        tuple(Field(str(ref), expr.type) for ref, expr in zip(returned, made, strict=True)),
        clause.each,
    )
    return replace(clause, form=form, returned=returned, computed=tuple(values.computed))


def _element(clause: PatternClause, variable: Variable, values: PatternElaborator) -> Element:
    written = clause.elements[variable.position]

    def made(conditions: Iterable[Text], *, final: bool) -> tuple[Expr, ...]:
        with values.testing(variable, final=final):
            return tuple(_condition(condition, values) for condition in conditions)

    return Element(
        written.name, written.star, made(written.per_tuple, final=False), made(written.final, final=True)
    )


def _condition(condition: Text, values: PatternElaborator) -> Expr:
    assert condition.tree is not None
    try:
        return values.as_(condition.tree, BOOLEAN)
    except AnalysisError as error:
        raise AnalysisError(f"in '{condition}', {error.message}", span=error.span) from None


def _result(spoken: Spoken, values: PatternElaborator) -> Expr:
    """Return a whole column, even if only a part of it is wanted in the end, or an aggregate."""
    if isinstance(spoken, TupleColumn):
        return values.of_tuple(replace(spoken, fields=()))
    return values.of(spoken)
