"""CREATE [WINDOW] AGGREGATE: what an aggregate takes and returns, and whether it is blocking."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis.types.coercion import converts
from millstream.analysis.types.data_types import from_datatype
from millstream.analysis.types.type_inference import OpenTypes
from millstream.analysis.udas.body_analyzer import AggregateBody, BodyChecker, declared_fields, local_tables
from millstream.analysis.udas.body_expressions import BodyNames, Fields
from millstream.catalog.entries import Aggregate
from millstream.catalog.functions import FunctionKind, builtin
from millstream.errors import AnalysisError, Source, UnknownNameError, did_you_mean
from millstream.ir.python_aggregate import PythonAggregate, examined, load
from millstream.syntax.spans import span_of
from millstream.types import Field

if TYPE_CHECKING:
    from sqlglot import exp

    from millstream.catalog import Catalog
    from millstream.syntax import nodes

__all__ = ["AggregateBody", "analyse_aggregate", "python_name"]

_PYTHON_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def analyse_aggregate(
    node: nodes.CreateAggregate, catalog: Catalog, source: Source, given: object = None
) -> Aggregate:
    """The catalog entry of an aggregate, its body checked; an AnalysisError says which rule it breaks.

    ``given`` is a class or function that need not be looked for, whatever the statement says.
    """
    window = bool(node.args.get("window"))
    open_types = OpenTypes()
    parameters = declared_fields(node.args.get("parameters") or (), "parameter", open_types)
    returns = _returns(node, open_types)
    _check_other_version(node, parameters, returns, catalog.own_aggregate(node.name, window=not window))
    python = None
    body: AggregateBody | PythonAggregate
    if node.args.get("python") is not None:
        _check_typed(node, returns)
        python = node.name if given is not None else python_name(node.args["python"], catalog)
    else:
        tables = local_tables(node, window, parameters, open_types)
        names = BodyNames(node.name, window, parameters, tables, catalog, open_types)
        body = BodyChecker(node, names, returns).check(source)
    parameters, returns = (
        tuple(Field(f.name, open_types.closed(f.type)) for f in fields) for fields in (parameters, returns)
    )
    algebraic = node.args.get("algebraic")
    if algebraic is not None:
        _check_algebraic(algebraic, node.name, parameters, returns, catalog)
    if python is not None:
        body = _in_python(node.args["python"], python, parameters, given)
    return Aggregate(
        name=node.name,
        parameters=parameters,
        returns=returns,
        window=window,
        blocking=_is_blocking(body) and not window,
        returns_row=len(returns) > 1,
        algebraic=algebraic is not None,
        partial=_name_in(algebraic, "partial"),
        final=_name_in(algebraic, "final"),
        python=python,
        definition=body,
    )


def _is_blocking(body: AggregateBody | PythonAggregate) -> bool:
    return bool(body.terminate) if isinstance(body, AggregateBody) else body.terminates


def _in_python(node: exp.Expr, name: str, parameters: Fields, given: object) -> PythonAggregate:
    try:
        subject = load(name) if given is None else given
        return examined(subject, name, [parameter.name for parameter in parameters])
    except AnalysisError as error:
        error.span = span_of(node)
        raise


def python_name(node: exp.Expr, catalog: Catalog) -> str:
    """``package.module:name``, as Python names things."""
    if not catalog.allow_python:
        raise AnalysisError(
            "LANGUAGE PYTHON is not allowed here",
            span=span_of(node),
            hint="whoever runs this Millstream has to allow it: Python code can do whatever the server can",
        )
    if not _PYTHON_NAME.fullmatch(node.name):
        raise AnalysisError(
            f"'{node.name}' does not name something in Python", span=span_of(node), hint="write 'module:name'"
        )
    return str(node.name)


def _returns(node: nodes.CreateAggregate, open_types: OpenTypes) -> Fields:
    """What is returned; ``:(bcount)`` is one value with a name of its own."""
    columns = node.args.get("columns")
    if columns:
        return declared_fields(columns, "result", open_types)
    return (Field(node.name, from_datatype(node.args["returns"])),)


def _check_typed(node: nodes.CreateAggregate, returns: Fields) -> None:
    for column in returns:
        if not column.type.is_known:
            raise AnalysisError(
                f"the result '{column.name}' of an aggregate in Python needs a type", span=span_of(node.this)
            )


def _check_other_version(
    node: nodes.CreateAggregate, parameters: Fields, returns: Fields, other: Aggregate | None
) -> None:
    """A call does not say which version it means, so both must fit it."""
    if other is None:
        return
    if (len(parameters), len(returns)) != (len(other.parameters), len(other.returns)):
        raise AnalysisError(
            f"{other.label} '{other.name}' has other parameters or results",
            span=span_of(node.this),
            hint="the base and the window version of an aggregate take and return as many values",
        )


# ---------------------------------------------------------------- ALGEBRAIC


def _check_algebraic(
    node: nodes.Algebraic, name: str, parameters: Fields, returns: Fields, catalog: Catalog
) -> None:
    """The results of panes go into the aggregate again, or from one aggregate into the other."""
    if node.args.get("partial") is None:
        if not _fit(returns, parameters):
            raise AnalysisError(
                f"'{name}' cannot take its own results, so it is not ALGEBRAIC by itself",
                span=span_of(node),
                hint="ALGEBRAIC USING (partial, final): one aggregate for a pane, one that combines panes",
            )
        return
    partial = _named_aggregate(node.args["partial"], catalog)
    final = _named_aggregate(node.args["final"], catalog)
    if partial is not None and not _fit(parameters, partial.parameters):
        raise AnalysisError(
            f"'{partial.name}' does not take the arguments of '{name}'", span=span_of(node.args["partial"])
        )
    if partial is not None and final is not None and not _fit(partial.returns, final.parameters):
        raise AnalysisError(
            f"'{final.name}' does not take what '{partial.name}' returns", span=span_of(node.args["final"])
        )
    if final is not None and not _fit(final.returns, returns):
        raise AnalysisError(
            f"'{final.name}' does not return what '{name}' does", span=span_of(node.args["final"])
        )


def _named_aggregate(node: exp.Identifier, catalog: Catalog) -> Aggregate | None:
    """An aggregate of the user's, or None for a built-in one."""
    user = catalog.aggregate(node.name) or catalog.aggregate(node.name, window=True)
    known = builtin(node.name)
    if user is None and (known is None or known.kind is not FunctionKind.AGGREGATE):
        raise UnknownNameError(
            "aggregate",
            node.name,
            span=span_of(node),
            hint=did_you_mean(node.name, [entry.name for entry in catalog.entries(Aggregate)]),
        )
    return user


def _fit(given: Fields, wanted: Fields) -> bool:
    return len(given) == len(wanted) and all(
        converts(a.type, b.type) for a, b in zip(given, wanted, strict=True)
    )


def _name_in(algebraic: nodes.Algebraic | None, part: str) -> str | None:
    named = algebraic.args.get(part) if algebraic is not None else None
    return named.name if named is not None else None
