"""The type of every expression, by Spark's rules (ANSI mode), without Spark.

Errors are raised where Spark's analyzer raises them. What cannot be known here is UNKNOWN, which goes
together with everything: Spark will check it when the query runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlglot import exp

from millstream.analysis.error_collector import ErrorCollector, error_at
from millstream.analysis.types import literal_types, operator_types
from millstream.analysis.types.coercion import common_type
from millstream.analysis.types.data_types import from_datatype
from millstream.analysis.types.function_types.function_call import Call
from millstream.analysis.types.function_types.result_types import result_type
from millstream.analysis.types.function_types.temporal import difference_in_units, moved_by_units
from millstream.analysis.types.literal_types import field_type
from millstream.catalog.builtin_aggregates import Within, within
from millstream.catalog.functions import BARE_FUNCTIONS, builtin, builtin_names
from millstream.errors import AnalysisError, UnknownNameError, closest, did_you_mean
from millstream.syntax import nodes
from millstream.syntax.foreign_syntax import FUNCTIONS, OTHER_NAMES, WINDOW_FUNCTIONS
from millstream.syntax.spans import span_of
from millstream.types import BOOLEAN, UNKNOWN, Type

__all__ = ["Typer", "common_type", "field_type", "from_datatype"]

# Functions whose first argument may be a unit of time instead of a value.
_WITH_UNIT = {
    **dict.fromkeys(("dateadd", "date_add", "timestampadd"), moved_by_units),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff"), difference_in_units),
}

# Calls with a syntax of their own: the function, and the arguments of the node in the function's order.
SPECIAL_CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.If: ("if", ("this", "true", "false")),
    exp.Any: ("any", ("this",)),
    exp.Transform: ("transform", ("this", "expression")),
    exp.Trim: ("trim", ("this", "expression")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.StrPosition: ("position", ("substr", "this", "position")),
    exp.Overlay: ("overlay", ("this", "expression", "from_", "for_")),
    exp.BitwiseLeftShift: ("shiftleft", ("this", "expression")),
    exp.BitwiseRightShift: ("shiftright", ("this", "expression")),
    exp.Neg: ("negative", ("this",)),
}


class Typer:
    """Typer of expressions, which asks its owner about names.

    Args:
        column: The type of a column; raises AnalysisError, or returns None, if there is no such column.
        call: The type of a call of a function that the owner knows, or None; asked before the built-ins.
        node: The type of a node that is not SQL's, or None.
        query: The type of the only column of a subquery.
        names: Lists the functions that ``call`` knows, for hints.
        collector: Collects errors, each with the smallest expression that has it; without, they are raised.
        remember: Types each node once; only where nothing more is learnt about the types of columns.
    """

    def __init__(
        self,
        *,
        column: Callable[[exp.Column], Type | None],
        call: Callable[[str, exp.Expr, list[Type]], Type | None] = lambda name, node, types: None,
        node: Callable[[exp.Expr], Type | None] = lambda node: None,
        query: Callable[[exp.Query], Type] = lambda query: UNKNOWN,
        names: Callable[[], Collection[str]] = tuple,
        collector: ErrorCollector | None = None,
        remember: bool = False,
    ) -> None:
        self._ask_column = column
        self._ask_call = call
        self._ask_node = node
        self._ask_query = query
        self._function_names = names
        self._mistakes = collector
        self._lambda_parameters: list[dict[str, Type]] = []
        self._remembered: dict[int, tuple[exp.Expr, Type]] | None = {} if remember else None

    def type_of(self, node: exp.Expr) -> Type:
        """Return the type of an expression, or an AnalysisError; UNKNOWN where that is collected."""
        if self._remembered is None or self._lambda_parameters:
            return self._type_of(node)
        if id(node) not in self._remembered:
            # The node is kept, too: while it is there no other one has its identity.
            self._remembered[id(node)] = node, self._type_of(node)
        return self._remembered[id(node)][1]

    def _type_of(self, node: exp.Expr) -> Type:
        rule = next((_RULES[class_] for class_ in type(node).__mro__ if class_ in _RULES), None)
        if rule is None:
            return self._ask_node(node) or UNKNOWN
        try:
            return rule(self, node)
        except AnalysisError as error:
            if self._mistakes is None:
                raise
            self._mistakes.add(error)
            return UNKNOWN

    def types_of(self, several: Iterable[exp.Expr]) -> list[Type]:
        """Return the types of several expressions."""
        return [self.type_of(node) for node in several]

    def _starred_type(self, node: nodes.Starred) -> Type:
        found = self._ask_node(node)
        if found is None:
            raise error_at(
                node,
                "a star before an argument is for aggregates of a pattern's star",
                hint="leave it out, or write count(*) for the number of tuples",
            )
        return found

    # ------------------------------------------------------------ names

    def _column_type(self, node: exp.Column) -> Type:
        if node.is_star:
            return UNKNOWN
        parameter = None if node.table else self._lambda_parameter(node.name)
        if parameter is not None:
            return parameter
        if node.table or node.name.lower() not in BARE_FUNCTIONS:
            return self._ask_column(node) or UNKNOWN
        try:
            found = self._ask_column(node)
        except AnalysisError:
            found = None
        return self._builtin_type(node.name, node, (), ()) if found is None else found

    def _identifier_type(self, node: exp.Identifier) -> Type:
        return self._lambda_parameter(node.name) or UNKNOWN

    def _lambda_parameter(self, name: str) -> Type | None:
        scopes = reversed(self._lambda_parameters)
        return next((scope[name.lower()] for scope in scopes if name.lower() in scope), None)

    def lambda_type(self, node: exp.Expr, parameters: Sequence[Type]) -> Type:
        """Return the type of the body of a lambda, for parameters of these types."""
        if not isinstance(node, exp.Lambda):
            return UNKNOWN
        names = [parameter.name.lower() for parameter in node.expressions]
        self._lambda_parameters.append(dict(zip(names, parameters, strict=False)))
        try:
            return self.type_of(node.this)
        finally:
            self._lambda_parameters.pop()

    def _query_type(self, node: exp.Expr) -> Type:
        query = node.unnest()
        return self._ask_query(query) if isinstance(query, exp.Query) else UNKNOWN

    # ------------------------------------------------------------ calls

    def call(self, name: str, node: exp.Expr, *written: exp.Expr) -> Call:
        """Return a call with the types of its arguments; rules type lambdas when they know the parameters."""
        arguments = [part for argument in written for part in _values(argument)]
        return Call(name, node, arguments, self.types_of(arguments), self.lambda_type)

    def _call_type(self, node: exp.Expr) -> Type:
        name = node.name
        arguments = node.expressions
        with_unit = _WITH_UNIT.get(name.lower())
        if with_unit and arguments and isinstance(arguments[0], exp.Var):
            return with_unit(self.call(name, node, *arguments[1:]))
        return self._function_type(name, node, *arguments)

    def _special_call_type(self, node: exp.Expr) -> Type:
        name, keys = SPECIAL_CALLS[type(node)]
        written = (node.args.get(key) for key in keys)
        return self._function_type(name, node, *(part for part in written if part is not None))

    def _function_type(self, name: str, node: exp.Expr, *written: exp.Expr) -> Type:
        call = self.call(name, node, *written)
        found = self._ask_call(name, node, list(call.types))
        return self._builtin_type(name, node, call.arguments, call.types) if found is None else found

    def _builtin_type(
        self, name: str, node: exp.Expr, arguments: Sequence[exp.Expr], types: Sequence[Type]
    ) -> Type:
        function = builtin(name)
        if function is None:
            raise UnknownNameError(
                "function",
                name,
                span=span_of(node),
                hint=_OF_BODIES.get(name.lower())
                or FUNCTIONS.get(name.lower())
                or WINDOW_FUNCTIONS.get(name.lower())
                or did_you_mean(name, self._function_names())
                or _similar_builtin(name),
            )
        return result_type(function, Call(function.name, node, arguments, types, self.lambda_type))

    def _within_group(self, node: exp.WithinGroup) -> Type:
        function, ordered = node.this, [part.this for part in node.expression.expressions]
        if within(function.name) is Within.FIRST:
            return self._function_type(function.name, function, *ordered, *function.expressions)
        self.types_of(ordered)
        return self.type_of(function)

    def _filtered(self, node: exp.Filter) -> Type:
        operator_types.check_condition(self, node.expression.this, "FILTER")
        return self.type_of(node.this)

    def _over_window(self, node: exp.Window) -> Type:
        order = node.args.get("order")
        self.types_of(node.args.get("partition_by") or ())
        self.types_of(part.this for part in (order.expressions if order else ()))
        return self.type_of(node.this)


def _similar_builtin(name: str) -> str | None:
    """Return a hint that names a function of Spark's, which may be known by another name elsewhere.

    >>> _similar_builtin("avrage"), _similar_builtin("cnt"), _similar_builtin("subst")
    ("did you mean 'avg'?", "did you mean 'count'?", "did you mean 'substr'?")
    """
    known = builtin_names() | OTHER_NAMES.keys()
    alike = closest(name, sorted(known), cutoff=0.6)
    return f"did you mean '{OTHER_NAMES.get(alike, alike)}'?" if alike else None


def _values(argument: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the arguments of a function without DISTINCT, ORDER BY and the like."""
    if isinstance(argument, exp.Distinct):
        yield from argument.expressions
    elif isinstance(argument, exp.IgnoreNulls | exp.RespectNulls | exp.Order | exp.Ordered):
        yield argument.this
    else:
        yield argument


_OF_BODIES = {"oldest": "oldest() is known in the bodies of window aggregates only"}

_RULES: dict[type, Callable[[Typer, Any], Type]] = {
    exp.Column: Typer._column_type,
    exp.Identifier: Typer._identifier_type,
    exp.Query: Typer._query_type,
    exp.Subquery: Typer._query_type,
    exp.Exists: lambda typer, node: BOOLEAN,
    exp.Anonymous: Typer._call_type,
    **dict.fromkeys(SPECIAL_CALLS, Typer._special_call_type),
    exp.WithinGroup: Typer._within_group,
    exp.Filter: Typer._filtered,
    exp.Window: Typer._over_window,
    nodes.Starred: Typer._starred_type,
    **operator_types.RULES,
    **literal_types.RULES,
}
