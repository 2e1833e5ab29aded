"""From an analysed pattern to its checked form (``ir.pattern``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.analysis.patterns.pattern_elaborator import PatternElaborator
from millstream.analysis.patterns.tuple_columns import TupleColumn
from millstream.errors import AnalysisError
from millstream.ir.pattern import Element, Pattern
from millstream.ir.typed_nodes import Expr
from millstream.types import BOOLEAN, Field

if TYPE_CHECKING:
    from millstream.analysis.patterns.pattern_expressions import PatternExpressions, Spoken
    from millstream.analysis.patterns.pattern_names import Variable
    from millstream.analysis.queries.resolved_expression import Expr as Text
    from millstream.analysis.queries.resolved_query import Output, PatternClause


def build_pattern(
    clause: PatternClause, outputs: Iterable[Output], expressions: PatternExpressions
) -> PatternClause:
    """The clause with its form, or with the reason why there is none: something cannot be compiled yet.

    A match gives what conditions after the match and outputs have in their holes. Those are computed from
    that by Spark, after the joins with tables, so there may be anything in them.
    """
    spoken = expressions.spoken
    results = (*clause.after_match, *(output.expr for output in outputs))
    returned = tuple(dict.fromkeys(ref for text in results for ref in text.columns() if ref in spoken))
    names = expressions.names
    if names.relation.fields is None:
        return replace(clause, unfit=f"the columns of '{clause.alias}' are not known before Spark reads it")
    values = PatternElaborator(expressions)
    try:
        elements = tuple(_element(clause, variable, values) for variable in names.variables)
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
    """A whole column, even if only a part of it is wanted in the end, or an aggregate."""
    if isinstance(spoken, TupleColumn):
        return values.of_tuple(replace(spoken, fields=()))
    return values.of(spoken)
