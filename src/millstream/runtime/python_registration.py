"""Catalog entries for Python code that the caller passes as an object."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pickle import PicklingError
from typing import Any

from millstream.analysis.definitions.create_aggregate import analyse_aggregate
from millstream.catalog import Catalog
from millstream.catalog.entries import Aggregate
from millstream.errors import AnalysisError, MillstreamError, did_you_mean
from millstream.ir.python_aggregate import functions, parameters_of
from millstream.syntax import nodes, parse_script

_LOCAL = (AttributeError, PicklingError, TypeError)
"""Errors of pickle for code that is defined in a function or in the main program."""

_METHODS = ("init", "add", "remove", "merge", "result", "compute")


def python_aggregate(
    catalog: Catalog,
    name: str,
    subject: object,
    returns: str,
    parameters: str | None,
    methods: Mapping[str, Callable[..., object]],
    *,
    window: bool,
) -> Aggregate:
    """Return an aggregate, checked like the CREATE AGGREGATE statement with these types."""
    for method in methods:
        if method not in _METHODS:
            hint = did_you_mean(method, _METHODS) or f"there are {', '.join(_METHODS)}"
            raise AnalysisError(f"unknown function '{method}' of an aggregate", hint=hint)
    if (subject is None) == (not methods):
        count = "both a class and functions" if methods else "neither a class nor functions"
        raise AnalysisError(
            f"aggregate '{name}' has {count}",
            hint="pass either a class (or a function of lists), or init, add and result as functions",
        )
    code = functions(**methods) if subject is None else subject
    declared = ", ".join(parameters_of(code, name)) if parameters is None else parameters
    kind = "WINDOW AGGREGATE" if window else "AGGREGATE"
    text = f"CREATE {kind} `{name}`({declared}) : {returns} LANGUAGE PYTHON AS 'python:object'"
    (statement,) = parse_script(text, "<aggregate_function>")
    assert isinstance(statement.tree, nodes.CreateAggregate), "the text above is a CREATE AGGREGATE"
    try:
        return analyse_aggregate(statement.tree, catalog, statement.source, given=code)
    except MillstreamError as error:
        raise error.locate(statement.source) from None


def dump_code(value: Any) -> bytes:
    """Pickle code that is run in this process; only code that cannot be imported needs PySpark's pickler."""
    try:
        return pickle.dumps(value)
    except _LOCAL:
        from pyspark.cloudpickle import dumps

        return dumps(value)  # type: ignore[no-untyped-call, no-any-return]
