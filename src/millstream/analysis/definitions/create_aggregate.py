"""CREATE [WINDOW] AGGREGATE: what an aggregate takes and returns, and whether it is blocking."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.analysis.error_collector import error_at
from millstream.analysis.types.coercion import converts
from millstream.analysis.types.data_types import from_datatype
from millstream.analysis.udas.body_analyzer import (
    AggregateBody,
    analyse_body,
    declared_body,
    declared_fields,
)
from millstream.analysis.udas.body_names import Fields
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
    """Return the catalog entry of an aggregate, its body checked; an AnalysisError says which rule it breaks.

    ``given`` is a class or function that need not be looked for, whatever the statement says.
    """
    window = bool(node.args.get("window"))
    parameters = declared_fields(node.args.get("parameters") or (), "parameter")
    returns = _returns(node)
    _check_other_version(node, parameters, returns, catalog.own_aggregate(node.name, window=not window))
    algebraic = node.args.get("algebraic")
    aggregate = Aggregate(
        name=node.name,
        parameters=parameters,
        returns=returns,
        window=window,
        blocking=False,
        returns_row=len(returns) > 1,
        algebraic=algebraic is not None,
        partial=_name_in(algebraic, "partial"),
        final=_name_in(algebraic, "final"),
    )
    python = None
    if node.args.get("python") is not None:
        _check_typed(node, returns)
        python = node.name if given is not None else python_name(node.args["python"], catalog)
    else:
        body = declared_body(node, parameters, source)
        aggregate = replace(aggregate, blocking=bool(body.terminate) and not window, definition=body)
        aggregate = analyse_body(aggregate, catalog)
    if algebraic is not None:
        _check_algebraic(algebraic, aggregate, catalog)
    if python is None:
        return aggregate
    definition = _in_python(node.args["python"], python, parameters, given)
    blocking = definition.terminates and not window
    return replace(aggregate, blocking=blocking, python=python, definition=definition)


def _in_python(node: exp.Expr, name: str, parameters: Fields, given: object) -> PythonAggregate:
    try:
        subject = load(name) if given is None else given
        return examined(subject, name, [parameter.name for parameter in parameters])
    except AnalysisError as error:
        error.span = span_of(node)
        raise


def python_name(node: exp.Expr, catalog: Catalog) -> str:
    """Return a name of the form ``package.module:name``."""
    if not catalog.allow_python:
        raise error_at(
            node,
            "LANGUAGE PYTHON is not allowed here",
            hint="its operator has to allow it: Python code can do whatever the server can",
        )
    if not _PYTHON_NAME.fullmatch(node.name):
        raise error_at(node, f"'{node.name}' does not name something in Python", hint="write 'module:name'")
    return str(node.name)


def _returns(node: nodes.CreateAggregate) -> Fields:
    """Return the declared results; ``:(bcount)`` is one value with a name."""
    columns = node.args.get("columns")
    if columns:
        return declared_fields(columns, "result")
    return (Field(node.name, from_datatype(node.args["returns"])),)


def _check_typed(node: nodes.CreateAggregate, returns: Fields) -> None:
    for column in returns:
        if not column.type.is_known:
            raise error_at(node.this, f"the result '{column.name}' of an aggregate in Python needs a type")


def _check_other_version(
    node: nodes.CreateAggregate, parameters: Fields, returns: Fields, other: Aggregate | None
) -> None:
    """Check that the base and the window version take and return as many values."""
    if other is None:
        return
    if (len(parameters), len(returns)) != (len(other.parameters), len(other.returns)):
        raise error_at(
            node.this,
            f"{other.label} '{other.name}' has other parameters or results",
            hint="the base and the window version of an aggregate take and return as many values",
        )


# ---------------------------------------------------------------- ALGEBRAIC


def _check_algebraic(node: nodes.Algebraic, aggregate: Aggregate, catalog: Catalog) -> None:
    """Check that results of panes fit the parameters of the aggregate that combines them."""
    name, parameters, returns = aggregate.name, aggregate.parameters, aggregate.returns
    if node.args.get("partial") is None:
        if not _fit(returns, parameters):
            raise error_at(
                node,
                f"'{name}' cannot take its own results, so it is not ALGEBRAIC by itself",
                hint="ALGEBRAIC USING (partial, final): one aggregate for a pane, one that combines panes",
            )
        return
    partial = _named_aggregate(node.args["partial"], catalog)
    final = _named_aggregate(node.args["final"], catalog)
    if partial is not None and not _fit(parameters, partial.parameters):
        raise error_at(node.args["partial"], f"'{partial.name}' does not take the arguments of '{name}'")
    if partial is not None and final is not None and not _fit(partial.returns, final.parameters):
        raise error_at(node.args["final"], f"'{final.name}' does not take what '{partial.name}' returns")
    if final is not None and not _fit(final.returns, returns):
        raise error_at(node.args["final"], f"'{final.name}' does not return what '{name}' does")


def _named_aggregate(node: exp.Identifier, catalog: Catalog) -> Aggregate | None:
    """Return an aggregate of the user's, or None for a built-in one."""
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
