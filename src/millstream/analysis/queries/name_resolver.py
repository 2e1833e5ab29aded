"""Resolver of expressions: names, types, and the aggregate calls taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import CollectingBlock, ErrorCollector, error_at
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, cut
from millstream.analysis.queries.scope import Scope
from millstream.analysis.types.coercion import converts
from millstream.analysis.types.expression_types import Typer
from millstream.analysis.types.operator_types import check_condition_type
from millstream.catalog import Catalog
from millstream.catalog.entries import Aggregate
from millstream.catalog.functions import FunctionKind, builtin, is_deterministic
from millstream.errors import AnalysisError, Source, Span, UnknownNameError, did_you_mean
from millstream.syntax.spans import span_of
from millstream.types import UNKNOWN, Kind, Type, struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.catalog import Catalog
    from millstream.catalog.entries import Aggregate, ScalarFunction
    from millstream.types import Type


CallHandler = Callable[[exp.Expr, Type], ColumnRef | None]
"""Takes an aggregate call out of an expression: the column that stands for it, or None to leave it in."""


class Resolver:
    """Resolver of the expressions of one query block.

    ``on_aggregate`` decides about aggregate calls; without it there may be none (in WHERE, for example).
    """

    def __init__(
        self,
        scope: Scope,
        catalog: Catalog,
        source: Source,
        *,
        on_subquery: Callable[[exp.Query, Scope], Type | Expr],
        on_aggregate: CallHandler | None = None,
        where: str = "here",
        collector: ErrorCollector | None = None,
    ) -> None:
        self.mistakes = collector
        """Collects mistakes in expressions; without, the first is raised."""
        self.scope = scope
        self.catalog = catalog
        self.source = source
        self._on_subquery = on_subquery
        self._on_aggregate = on_aggregate
        self._where = where
        self.aliases: dict[str, Expr] = {}
        """Columns of SELECT that later expressions may name, where no relation has such a column."""
        self.stand_ins: list[tuple[exp.Expr, Expr]] = []
        """Whole expressions (of GROUP BY) that have been computed already."""
        self._typer = Typer(
            column=self._type_of_column,
            call=self._type_of_call,
            node=lambda node: None,
            query=self._type_of_query,
            names=catalog.function_names,
            collector=collector,
        )

    def with_aggregates(
        self, handler: CallHandler | None, where: str = "here", scope: Scope | None = None
    ) -> Resolver:
        """Return a resolver with another handler of aggregate calls, and possibly a wider scope."""
        return Resolver(
            scope or self.scope,
            self.catalog,
            self.source,
            on_subquery=self._on_subquery,
            on_aggregate=handler,
            where=where,
            collector=self.mistakes,
        )

    def collected(self) -> CollectingBlock:
        """Return a block whose error is collected, or raised if errors are not collected."""
        return CollectingBlock(self.mistakes)

    def resolve(self, node: exp.Expr) -> Expr:
        """Return a resolved expression, or an AnalysisError."""
        before = self.mistakes.count if self.mistakes else 0
        type_ = self.type_of(node)
        span = _whole(node)
        if self.mistakes and self.mistakes.count > before:
            return Expr((), UNKNOWN, tree=node, span=span)
        holes = list(self._holes(node))
        return Expr(
            cut(self.source.text, span, holes),
            type_,
            tree=node,
            span=span,
            movable=not any(_stays(part) for part in node.walk()),
            calls_python=any(self._is_python(part) for part in node.walk()) or _any_python(holes),
        )

    def _is_python(self, node: exp.Expr) -> bool:
        function = self.catalog.function(node.name) if isinstance(node, exp.Anonymous) else None
        return function is not None and function.python is not None

    def type_of(self, node: exp.Expr) -> Type:
        return self._typer.type_of(node)

    def condition(self, node: exp.Expr, what: str) -> Expr:
        resolved = self.resolve(node)
        check_condition_type(resolved.type, node, what)
        return resolved

    def conditions(self, node: exp.Expr, what: str) -> tuple[Expr, ...]:
        """Resolve a condition, split at its ANDs."""
        inner = node.unnest()
        if isinstance(inner, exp.And):
            return (*self.conditions(inner.left, what), *self.conditions(inner.right, what))
        with self.collected():
            condition = self.condition(node, what)
            if isinstance(node, exp.Or):
                # It may stand beside other conditions later.
                condition = replace(condition, parts=("(", *condition.parts, ")"))
            return (condition,)
        return ()

    # ------------------------------------------------------------ holes

    def _holes(self, node: exp.Expr) -> Iterator[tuple[Span, ColumnRef | Expr]]:
        for tree, computed in self.stand_ins:
            if node == tree:
                yield _whole(node), computed
                return
        if isinstance(node, exp.Query):
            # It is checked here and left as it is: Spark resolves subqueries from their text.
            value = self._on_subquery(node, self.scope)
            if isinstance(value, Expr):
                yield _whole(node), value
            return
        if is_aggregate_call(node, self.catalog):
            yield from self._aggregate_hole(node)
            return
        if isinstance(node, exp.Column):
            alias = self._alias(node)
            if alias is not None:
                yield _whole(node), alias
                return
            found = self.scope.resolve(node)
            if found is not None:
                yield found.span or _whole(node), found.column
            return
        for child in node.iter_expressions():
            yield from self._holes(child)

    def _alias(self, node: exp.Column) -> Expr | None:
        filled = self.scope.filled.get(node.name.lower()) if len(node.parts) == 1 else None
        if filled is not None:
            return filled
        if len(node.parts) > 1 or any(r.find(node.name) for r in self.scope.relations):
            return None
        return self.aliases.get(node.name.lower())

    def _aggregate_hole(self, node: exp.Expr) -> Iterator[tuple[Span, ColumnRef | Expr]]:
        if self._on_aggregate is None:
            name = aggregate_name(node)
            raise error_at(
                node,
                f"aggregate '{name}' cannot be used {self._where}",
                hint="aggregates belong in SELECT and HAVING",
            )
        column = self._on_aggregate(node, self.type_of(node))
        if column is not None:
            yield _whole(node), column
            return
        for child in node.iter_expressions():
            yield from self._holes(child)

    # ------------------------------------------------------------ types

    def _type_of_query(self, node: exp.Query) -> Type:
        found = self._on_subquery(node, self.scope)
        return found.type if isinstance(found, Expr) else found

    def _type_of_column(self, node: exp.Column) -> Type | None:
        alias = self._alias(node)
        if alias is not None:
            return alias.type
        found = self.scope.resolve(node)
        return None if found is None else _field_type(found.column.type, found.fields, node)

    def _type_of_call(self, name: str, node: exp.Expr, arguments: list[Type]) -> Type | None:
        function = self.catalog.function(name)
        if function is not None:
            if function.columns:
                shown = ", ".join("x" for _ in function.parameters)
                raise error_at(
                    node,
                    f"'{function.name}' returns a table",
                    hint=f"it stands in FROM: FROM s, TABLE({function.name}({shown})) AS q",
                )
            check_arguments(function, node, arguments)
            return function.returns
        aggregate = self.catalog.aggregate(name) or self.catalog.aggregate(name, window=True)
        if aggregate is not None:
            check_arguments(aggregate, node, arguments)
            return result_type(aggregate)
        check_clear(self.catalog, name, node)
        return None


def result_type(aggregate: Aggregate) -> Type:
    if aggregate.returns_row:
        return struct(*aggregate.returns)
    return aggregate.returns[0].type


def is_aggregate_call(node: exp.Expr, catalog: Catalog) -> bool:
    """Tell whether this node is a whole aggregate call, with its FILTER, OVER and the like."""
    if isinstance(node, exp.Window):
        return True
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    if not is_call(node):
        return False
    name = aggregate_name(node)
    if catalog.has_aggregate(name):
        return True
    if catalog.function(name) is not None:
        return False
    known = builtin(name)
    return known is not None and known.kind is FunctionKind.AGGREGATE


def aggregate_name(node: exp.Expr) -> str:
    """Return the name of the function behind FILTER, OVER and the like."""
    while not is_call(node) and isinstance(node.this, exp.Expr):
        node = node.this
    return "any" if isinstance(node, exp.Any) else node.name


def is_call(node: exp.Expr) -> bool:
    """Tell whether this is a function with its arguments; ``any`` with a subquery is a comparison."""
    return isinstance(node, exp.Anonymous) or (
        isinstance(node, exp.Any) and not isinstance(node.this, exp.Query | exp.Subquery)
    )


def _any_python(holes: Iterable[tuple[Span, ColumnRef | Expr]]) -> bool:
    return any(isinstance(filling, Expr) and filling.calls_python for _, filling in holes)


def _stays(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return True
    return isinstance(node, exp.Anonymous) and not is_deterministic(node.name.lower(), len(node.expressions))


def _field_type(type_: Type, names: tuple[str, ...], node: exp.Column) -> Type:
    for name in names:
        if type_.kind is not Kind.STRUCT:
            return UNKNOWN
        inner = next((f.type for f in type_.fields if f.name.lower() == name.lower()), None)
        if inner is None:
            known = [f.name for f in type_.fields]
            raise error_at(
                node,
                f"there is no field '{name}' in {type_}",
                hint=did_you_mean(name, known) or f"its fields are {', '.join(known)}",
            )
        type_ = inner
    return type_


def _whole(node: exp.Expr) -> Span:
    span = span_of(node)
    if span is None:
        raise AnalysisError(f"no place is known for {node.key}: this is a mistake in Millstream")
    return span


def check_clear(catalog: Catalog, name: str, node: exp.Expr) -> None:
    """Refuse a name whose definition has a mistake, so that it is not taken for a built-in function."""
    if catalog.is_unclear(name, is_function=True):
        raise UnknownNameError("function", name, span=span_of(node), hint=None)


def check_arguments(called: Aggregate | ScalarFunction, node: exp.Expr, given: Sequence[Type]) -> None:
    """Check that there are as many arguments as parameters, of types that Spark converts."""
    wanted = called.parameters
    star = next((one for one in node.args.get("expressions") or () if isinstance(one, exp.Star)), None)
    if star is not None:
        listed = ", ".join(parameter.name for parameter in wanted)
        raise AnalysisError(
            f"'{called.name}' takes values, not *",
            span=span_of(star) or span_of(node),
            hint=f"name the values: {called.name}({listed})",
        )
    if len(wanted) != len(given):
        count = f"{len(wanted)} argument{'' if len(wanted) == 1 else 's'}"
        raise error_at(node, f"'{called.name}' takes {count}, not {len(given)}")
    for parameter, type_ in zip(wanted, given, strict=True):
        if not converts(type_, parameter.type):
            raise error_at(node, f"'{called.name}' takes {parameter.type} as '{parameter.name}', not {type_}")
