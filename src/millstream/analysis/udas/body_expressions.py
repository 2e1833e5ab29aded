"""Expressions inside the body of an aggregate: local columns, parameters, ``sqlcode`` and ``oldest()``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.queries.call_arguments import check_arguments, check_clear
from millstream.analysis.queries.name_resolver import aggregate_name, is_aggregate_call, result_type
from millstream.analysis.types.expression_types import Typer, field_type
from millstream.catalog.functions import builtin
from millstream.errors import AnalysisError, did_you_mean
from millstream.syntax.spans import span_of
from millstream.types import BOOLEAN, INT, NULL, UNKNOWN, Field, Type, struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from millstream.analysis.queries.scope import Scope, ScopeRelation
    from millstream.analysis.types.type_inference import OpenTypes
    from millstream.catalog import Catalog

INWINDOW = "inwindow"
"""The table that the system keeps for a window aggregate: the tuples of the window."""
OLDEST = "oldest"
SQLCODE = "sqlcode"

Fields = tuple[Field, ...]
_WITHOUT_PARAMETERS = {
    "EXPIRE": "EXPIRE is about the tuple that leaves: oldest()",
    "TERMINATE": "TERMINATE comes after the last tuple; keep the value in a table in INITIALIZE and ITERATE",
}
"""Blocks that no tuple belongs to, and what to do there instead."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


@dataclass(frozen=True)
class LocalTable:
    """A table of an aggregate's own."""

    name: str
    fields: Fields


@dataclass(frozen=True)
class BodyNames:
    """What the statements of one block may name."""

    aggregate: str
    window: bool
    parameters: Fields
    tables: tuple[LocalTable, ...]
    catalog: Catalog
    open_types: OpenTypes = field(repr=False)
    block: str = ""

    def inside(self, block: str) -> BodyNames:
        return replace(self, block=block)

    def table(self, name: str) -> LocalTable | None:
        return next((t for t in self.tables if t.name.lower() == name.lower()), None)

    def parameter(self, name: str) -> Field | None:
        return next((p for p in self.parameters if p.name.lower() == name.lower()), None)

    def settled(self, fields: Fields) -> Fields:
        """Columns with what is known by now of their types."""
        return tuple(Field(f.name, self.open_types.settled(f.type)) for f in fields)


class BodyTyper:
    """Types the expressions of one statement or SELECT, and learns from them about open types.

    ``query`` gives the columns of a subquery, or None where only Spark knows them.
    """

    def __init__(
        self, names: BodyNames, scope: Scope, query: Callable[[exp.Query, Scope], Fields | None]
    ) -> None:
        self.names = names
        self.scope = scope
        self._query = query
        self._typer = Typer(
            column=self._column,
            call=self._call,
            query=self._subquery,
            names=names.catalog.function_names(),
        )

    def type_of(self, node: exp.Expr) -> Type:
        type_ = self._typer.type_of(node)
        for part in walk(node):
            self._check_unseen_query(part)
            if not self.names.open_types.all_settled:
                self._learn(part)
        return type_

    def settled_type(self, node: exp.Expr) -> Type:
        """The type of an expression in a statement that has been checked, so that all types are settled."""
        self._typer.remember()
        return self._typer.type_of(node)

    def plain(self, node: exp.Expr, where: str) -> Type:
        """The type of an expression that may have no aggregates in it."""
        for part in walk(node):
            if is_aggregate_call(part, self.names.catalog):
                name = aggregate_name(part)
                raise AnalysisError(
                    f"aggregate '{name}' cannot be used {where}",
                    span=span_of(part),
                    hint=f"aggregates belong in SELECT: (SELECT {name}(...) FROM t)",
                )
        return self.type_of(node)

    def condition(self, node: exp.Expr, what: str, *, aggregates: bool = False) -> None:
        type_ = self.type_of(node) if aggregates else self.plain(node, f"in {what}")
        if type_.is_known and type_ not in (BOOLEAN, NULL):
            raise AnalysisError(
                f"{what} must be a condition, but this is of type {type_}", span=span_of(node)
            )

    # ------------------------------------------------------------ names

    def _column(self, node: exp.Column) -> Type | None:
        head = node.parts[0].name
        if not self._is_column(head, qualified=len(node.parts) > 1):
            parameter = self.names.parameter(head)
            if parameter is not None:
                self._check_parameter(parameter, node)
                type_ = self.names.open_types.settled(parameter.type)
                return _part_of(type_, [part.name for part in node.parts[1:]], node)
            if len(node.parts) == 1 and head.lower() == SQLCODE:
                return INT
            if len(node.parts) == 1 and all(r.fields is not None for r in self._relations()):
                raise self._unknown(node)
        found = self.scope.resolve(node)
        return _part_of(found.column.type, found.fields, node) if found is not None else None

    def _is_column(self, name: str, qualified: bool) -> bool:
        """Whether a name is surely a column, or a table before the name of one: they hide parameters."""
        return any(
            (qualified and relation.alias.lower() == name.lower())
            or (relation.fields is not None and relation.find(name))
            for relation in self._relations()
        )

    def _relations(self) -> Iterator[ScopeRelation]:
        scope: Scope | None = self.scope
        while scope is not None:
            yield from scope.relations
            scope = scope.outer

    def _check_parameter(self, parameter: Field, node: exp.Column) -> None:
        hint = _WITHOUT_PARAMETERS.get(self.names.block)
        if hint is not None:
            raise AnalysisError(
                f"parameter '{parameter.name}' is unknown in {self.names.block}",
                span=span_of(node),
                hint=hint,
            )

    def _unknown(self, node: exp.Column) -> AnalysisError:
        columns = [f.name for relation in self._relations() for f in relation.fields or ()]
        parameters = [p.name for p in self.names.parameters]
        return AnalysisError(
            f"unknown column or parameter '{node.name}'",
            span=span_of(node),
            hint=did_you_mean(node.name, [*columns, *parameters]),
        )

    # ------------------------------------------------------------ calls

    def _call(self, name: str, node: exp.Expr, given: list[Type]) -> Type | None:
        catalog = self.names.catalog
        check_clear(catalog, name, node)
        if name.lower() == OLDEST:
            return self._oldest(node, given)
        function = catalog.function(name)
        if function is not None:
            check_arguments(function, node, given)
            return function.returns
        own = name.lower() == self.names.aggregate.lower()
        if own and not self.names.window:
            raise AnalysisError(f"aggregate '{name}' calls itself", span=span_of(node))
        base = catalog.aggregate(name)
        if base is not None:
            check_arguments(base, node, given)
            for parameter, type_ in zip(base.parameters, given, strict=True):
                self.names.open_types.meet(type_, parameter.type)
            return result_type(base)
        if builtin(name) is None and (own or catalog.has_aggregate(name)):
            raise AnalysisError(
                f"'{name}' has only a window version",
                span=span_of(node),
                hint=f"an aggregate calls base aggregates: CREATE AGGREGATE {name}",
            )
        return None

    def _oldest(self, node: exp.Expr, given: list[Type]) -> Type:
        inwindow = self.names.table(INWINDOW)
        if not self.names.window:
            raise AnalysisError("oldest() is for window aggregates", span=span_of(node))
        if inwindow is None:
            raise AnalysisError(
                "oldest() needs the table inwindow",
                span=span_of(node),
                hint="TABLE inwindow(...), with a column for each parameter",
            )
        whole = all(type_.is_integral or not type_.is_known for type_ in given)
        # A position is mostly written as a number, and what is written can be checked.
        positive = all(n.name != "0" and not isinstance(n, exp.Neg) for n in node.expressions)
        if len(given) > 1 or not whole or not positive:
            raise AnalysisError(
                "oldest() takes at most a position: 1 is the oldest tuple, 2 the next", span=span_of(node)
            )
        fields = self.names.settled(inwindow.fields)
        if isinstance(node.parent, exp.Dot):
            return struct(*fields)
        if len(fields) > 1:
            raise AnalysisError(
                "oldest() is a row of several columns",
                span=span_of(node),
                hint=f"name one of them: oldest().{fields[0].name}",
            )
        return fields[0].type

    # ------------------------------------------------------------ subqueries

    def _subquery(self, node: exp.Query) -> Type:
        fields = self._query(node, self.scope)
        if fields is None:
            return UNKNOWN
        self._check_width(node, fields, 1)
        return fields[0].type

    def _check_unseen_query(self, node: exp.Expr) -> None:
        """The queries of EXISTS, and of IN with several values, have no type, but must be right too."""
        if isinstance(node, exp.All | exp.Any) and isinstance(node.this.unnest(), exp.Query):
            raise AnalysisError(
                f"{node.key.upper()} takes no query",
                span=span_of(node),
                hint="compare with (SELECT max(a) FROM t)",
            )
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            self._query(node.this, self.scope)
        if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple) and node.args.get("query"):
            query = node.args["query"].unnest()
            fields = self._query(query, self.scope)
            if fields is not None:
                self._check_width(query, fields, len(node.this.expressions))

    def _check_width(self, node: exp.Query, fields: Fields, wanted: int) -> None:
        if len(fields) != wanted:
            columns = f"{wanted} column{'' if wanted == 1 else 's'}"
            raise AnalysisError(f"this query must have {columns}, not {len(fields)}", span=span_of(node))

    # ------------------------------------------------------------ learning

    def _learn(self, node: exp.Expr) -> None:
        pairs: list[tuple[exp.Expr, exp.Expr]] = []
        if isinstance(node, _COMPARISONS):
            pairs = [(node.this, node.expression)]
        elif isinstance(node, exp.Between):
            pairs = [(node.this, node.args["low"]), (node.this, node.args["high"])]
        elif isinstance(node, exp.In) and not isinstance(node.this, exp.Tuple):
            listed = [node.args["query"]] if node.args.get("query") else node.expressions
            pairs = [(node.this, element) for element in listed]
        for one, other in pairs:
            literal = is_literal(one) or is_literal(other)
            types = self._typer.type_of(one), self._typer.type_of(other)
            self.names.open_types.meet(*types, literal=literal)


def walk(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of an expression, those of its subqueries left out."""
    return node.walk(prune=lambda part: isinstance(part, exp.Query))


def is_literal(node: exp.Expr) -> bool:
    """Whether a value is a number or a text as it stands there."""
    return isinstance(node.unnest(), exp.Literal) or (isinstance(node, exp.Neg) and is_literal(node.this))


def _part_of(type_: Type, path: Iterable[str], node: exp.Expr) -> Type:
    return reduce(lambda whole, name: field_type(whole, name, node), path, type_)
