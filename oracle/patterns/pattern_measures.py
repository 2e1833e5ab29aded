"""Aggregates of the tuples that a star has taken, recomputed from all of them, or from the last few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from millstream.analysis.queries.aggregate_calls import aggregate_call
from millstream.analysis.queries.call_nodes import AggregateCall, Frame, OverCall
from millstream.analysis.queries.name_resolver import Resolver, aggregate_name
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.catalog import Catalog
from millstream.catalog.builtin_aggregates import RUNNING_NAMES
from millstream.errors import Source
from millstream.ir.python_aggregate import PythonBody
from millstream.quantity import Rows
from millstream.syntax import nodes, parse_expression, to_sql
from millstream.types import Field, Type, struct
from oracle import python_aggregates
from oracle.bodies import of_content
from oracle.errors import NotInterpreted
from oracle.relations import Record
from oracle.uda_versions import arguments_of, over_results, results
from oracle.values.aggregates import aggregation, is_in_python
from oracle.values.casts import cast
from oracle.values.expressions import Function, compiled, holds
from oracle.values.values import Value, same_key

OfTuple = Callable[[Sequence[Record], int], Value]
"""Returns a value of the tuple at a position of a history."""
Argument = Callable[[exp.Expr], tuple[Type, OfTuple] | None]
"""Returns the value of a node of an argument; None if it is computed from its parts."""

WHOLE_TUPLE = struct()
"""The type of ``Y`` itself, which can only be counted."""


@dataclass(frozen=True)
class Measure:
    """An aggregate; ``values`` are the values of a tuple that its arguments need."""

    type: Type
    values: Sequence[OfTuple]
    compute: Callable[[list[Record]], Value]

    def of(self, history: Sequence[Record], positions: range) -> Value:
        """Return the aggregate of the tuples at these positions of a history."""
        content = [tuple(value(history, at) for value in self.values) for at in positions]
        return self.compute([Record(values, None, ()) for values in content])


def measure(node: exp.Expr, argument: Argument, catalog: Catalog) -> Measure:
    """Return a call of an aggregate over a star, with or without a moving window."""
    written = node.this if isinstance(node, exp.Window) else node
    fields: list[Field] = []
    values: list[OfTuple] = []

    def with_holes(part: exp.Expr) -> exp.Expr:
        if isinstance(part, nodes.Starred):
            inside: exp.Expr = part.this.transform(with_holes)
            return inside
        typed = argument(part)
        if typed is None:
            return part
        fields.append(Field(f"value{len(values)}", typed[0]))
        values.append(typed[1])
        return exp.column(fields[-1].name)

    call = _call(written.transform(with_holes), tuple(fields), catalog)
    if WHOLE_TUPLE in [field.type for field in fields] and (call.name != "count" or call.distinct):
        raise NotInterpreted(f"'{call.name}' of whole tuples")
    schema = [ColumnRef("", field.name, field.type) for field in fields]
    return Measure(call.type, values, _computation(call, schema, _frame(node)))


def _frame(node: exp.Expr) -> Frame | None:
    """Return the moving window, which begins with the star at the earliest; None for all of the star."""
    if not isinstance(node, exp.Window):
        return None
    start = node.args["spec"].args["start"]
    return Frame(True, Rows(int(start.name)) if isinstance(start, exp.Expr) else None)


def _call(node: exp.Expr, fields: tuple[Field, ...], catalog: Catalog) -> AggregateCall:
    name = aggregate_name(node)
    if name.lower() in RUNNING_NAMES and not catalog.has_aggregate(name):
        function = next(part for part in node.walk() if isinstance(part, exp.Anonymous))
        function.set("this", RUNNING_NAMES[name.lower()])
    text = to_sql(node)
    scope = Scope([ScopeRelation("", fields)])
    resolver = Resolver(scope, catalog, Source("<pattern>", text), on_subquery=_no_queries)
    tree = parse_expression(text)
    return aggregate_call(tree, resolver.type_of(tree), resolver, "result", lambda part: text)


def _no_queries(query: exp.Query, scope: Scope) -> Type:
    raise NotInterpreted("a query inside an aggregate")


# ---------------------------------------------------------------- values


def _computation(
    call: AggregateCall, schema: Sequence[ColumnRef], frame: Frame | None
) -> Callable[[list[Record]], Value]:
    if call.user is not None and (call.filter is not None or call.distinct):
        return _of_some(call, schema, frame)
    if call.user is None or (frame is not None and is_in_python(call)):
        aggregate = aggregation(call, schema)
        reach = None if frame is None else frame.preceding
        last = slice(-reach.count - 1, None) if isinstance(reach, Rows) else slice(None)
        return lambda content: aggregate.of(content[last])
    if frame is not None:
        over = OverCall(call, (), frame)
        return lambda content: _last(results(call, _moving(over, content, schema)))
    body = None if call.bodies is None else call.bodies.base or call.bodies.window
    if body is None or (not isinstance(body, PythonBody) and body.given):
        raise NotInterpreted(f"the aggregate '{call.name}'")
    if isinstance(body, PythonBody):
        python, functions = body, [compiled(argument, schema) for argument in call.arguments]
        return lambda content: _last(_in_python(call, python, functions, content))
    base, arguments = body, arguments_of(call, body, schema)
    return lambda content: _last(results(call, of_content(base, [arguments(r) for r in content])))


def _of_some(
    call: AggregateCall, schema: Sequence[ColumnRef], frame: Frame | None
) -> Callable[[list[Record]], Value]:
    """Return a user-defined aggregate of the tuples that pass FILTER and DISTINCT."""
    of_those = _computation(replace(call, filter=None, distinct=False), schema, None)
    counts = None if call.filter is None else holds(call.filter, schema)
    arguments = [compiled(argument, schema) for argument in call.arguments]
    reach = None if frame is None else frame.preceding
    last = slice(-reach.count - 1, None) if isinstance(reach, Rows) else slice(None)

    def of(content: list[Record]) -> Value:
        seen = [record for record in content[last] if counts is None or counts(record.values)]
        if call.distinct:
            firsts: dict[Value, Record] = {}
            for record in seen:
                firsts.setdefault(same_key(tuple(a(record.values) for a in arguments)), record)
            seen = list(firsts.values())
        return of_those(seen)

    return of


def _last(returned: Sequence[Value]) -> Value:
    """Return the single value of an aggregate in an expression: that of the last row, else NULL."""
    return returned[-1] if returned else None


def _moving(over: OverCall, content: list[Record], schema: Sequence[ColumnRef]) -> list[tuple[Value, ...]]:
    """Return the rows of the window version for the last tuple."""
    reach = over.frame.preceding
    size = reach.count if isinstance(reach, Rows) else len(content)
    return over_results(over, content, schema, lambda j, i: j < i - size)[-1]


def _in_python(
    call: AggregateCall, body: PythonBody, functions: Sequence[Function], content: list[Record]
) -> list[Value]:
    types = [(a.type, p.type) for a, p in zip(call.arguments, body.parameters, strict=True)]
    rows = [[function(record.values) for function in functions] for record in content]
    given = [tuple(cast(v, *both) for v, both in zip(row, types, strict=True)) for row in rows]
    returned = python_aggregates.of_content(body, given)
    if len(body.returns) == 1:
        return returned
    names = [field.name for field in body.returns]
    return [tuple(map(row.get, names)) if isinstance(row, dict) else tuple(row) for row in returned]
