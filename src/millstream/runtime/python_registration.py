"""Python code that the caller gives as an object, as an entry of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millstream.analysis.definitions.create_aggregate import analyse_aggregate
from millstream.catalog import Catalog
from millstream.catalog.entries import Aggregate
from millstream.errors import AnalysisError, MillstreamError, did_you_mean
from millstream.ir.python_aggregate import functions, parameters_of
from millstream.syntax import nodes, parse_script

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
    """An aggregate, checked as if a statement had named it: its types are what such a statement says."""
    for method in methods:
        if method not in _METHODS:
            hint = did_you_mean(method, _METHODS) or f"there are {', '.join(_METHODS)}"
            raise AnalysisError(f"an aggregate has no '{method}' among its functions", hint=hint)
    if (subject is None) == (not methods):
        raise AnalysisError(
            f"aggregate '{name}' is a class, or functions, and not {'both' if methods else 'nothing'}"
        )
    code = functions(**methods) if subject is None else subject
    declared = ", ".join(parameters_of(code, name)) if parameters is None else parameters
    kind = "WINDOW AGGREGATE" if window else "AGGREGATE"
    text = f"CREATE {kind} `{name}`({declared}) : {returns} LANGUAGE PYTHON AS 'python:object'"
    (statement,) = parse_script(text, "<aggregate_function>")
    assert isinstance(statement.tree, nodes.CreateAggregate), "that is what was written"
    try:
        return analyse_aggregate(statement.tree, catalog, statement.source, given=code)
    except MillstreamError as error:
        raise error.locate(statement.source) from None
