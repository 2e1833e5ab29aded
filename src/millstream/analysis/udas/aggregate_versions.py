"""Versions of an aggregate of the user's for the arguments of a call: base, window, and panes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from millstream.analysis.definitions.create_aggregate import analyse_aggregate
from millstream.analysis.queries.call_nodes import Bodies, Panes
from millstream.analysis.udas.body_analyzer import NOT_KEPT, AggregateBody, specialise
from millstream.analysis.udas.body_names import MistakenCallError
from millstream.catalog import Catalog
from millstream.errors import AnalysisError, MillstreamError
from millstream.ir import typed_nodes
from millstream.ir.python_aggregate import PythonAggregate, PythonBody
from millstream.syntax import nodes, parse_script
from millstream.types import Field, Kind, Type

if TYPE_CHECKING:
    from millstream.catalog.entries import Aggregate


def checked_body(aggregate: Aggregate, arguments: Sequence[Type], catalog: Catalog) -> typed_nodes.Body:
    """Return the typed form of an aggregate in ESL for arguments of some types, or raise why it has none."""
    return specialise(aggregate, arguments, catalog).get()


def bodies_of(name: str, arguments: Sequence[Type], catalog: Catalog) -> Bodies:
    """Return both versions of an aggregate of the user's for arguments of some types, and its panes."""
    bodies = _versions(name, arguments, catalog)
    if bodies.unfit is not None:
        return bodies
    return replace(bodies, panes=_panes(name, bodies, arguments, catalog))


def _panes(name: str, bodies: Bodies, arguments: Sequence[Type], catalog: Catalog) -> Panes | None:
    """Return what ALGEBRAIC names, if both the aggregate of panes and the one that combines them can run."""
    entries = (catalog.aggregate(name, window=window) for window in (False, True))
    entry = next((entry for entry in entries if entry is not None and entry.algebraic), None)
    if entry is None:
        return None
    partial = bodies if entry.partial is None else _named(entry.partial, arguments, catalog)
    pane = partial.base or partial.window
    if not isinstance(pane, typed_nodes.Body):
        return None
    combined = _named(entry.final or name, [f.type for f in pane.returns], catalog)
    body = combined.window or combined.base
    if not isinstance(body, typed_nodes.Body) or not all(map(_goes_into, pane.returns, body.parameters)):
        return None
    return Panes(pane, combined)


def _named(name: str, arguments: Sequence[Type], catalog: Catalog) -> Bodies:
    """Return an aggregate that ALGEBRAIC names: one of the user's, or a built-in one."""
    if catalog.has_aggregate(name):
        return _versions(name, arguments, catalog)
    return _of_built_in(name, tuple(arguments))


@cache
def _of_built_in(name: str, arguments: tuple[Type, ...]) -> Bodies:
    """Return a built-in aggregate as if a user had written it."""
    columns = ", ".join(f"x{i} {type_}" for i, type_ in enumerate(arguments))
    given = ", ".join(f"x{i}" for i in range(len(arguments)))
    text = f"""CREATE AGGREGATE built_in_{name}({columns}) : (result) {{
        TABLE given({columns});
        INITIALIZE : {{ INSERT INTO given VALUES ({given}); }}
        ITERATE    : {{ INSERT INTO given VALUES ({given}); }}
        TERMINATE  : {{ INSERT INTO RETURN SELECT {name}({given}) FROM given; }} }}"""
    catalog = Catalog()
    try:
        (statement,) = parse_script(text)
        assert isinstance(statement.tree, nodes.CreateAggregate)
        entry = analyse_aggregate(statement.tree, catalog, statement.source)
        return Bodies(base=checked_body(entry, arguments, catalog))
    except MillstreamError:
        return Bodies(unfit=f"'{name}' cannot be run inside an aggregate")


def _goes_into(given: Field, wanted: Field) -> bool:
    """Tell whether the result of a pane can be taken as it is: nothing is lost, or it is an error."""
    number = given.type.is_integral and (wanted.type.is_integral or wanted.type.kind is Kind.DOUBLE)
    return given.type == wanted.type or number


def _versions(name: str, arguments: Sequence[Type], catalog: Catalog) -> Bodies:
    versions: list[typed_nodes.Body | PythonBody | None] = []
    for window in (False, True):
        entry = catalog.aggregate(name, window=window)
        try:
            version = None if entry is None else _version(entry, arguments, catalog)
        except AnalysisError as error:
            # Types that are unknown before Spark knows them may turn out to fit.
            if not all(type_.is_known for type_ in arguments):
                return Bodies(unfit=f"in aggregate '{name}', {error.message}")
            given = ", ".join(map(str, arguments))
            error.message = f"in aggregate '{name}', called with ({given}): {error.message}"
            if entry is not None and isinstance(entry.definition, AggregateBody):
                error.locate(entry.definition.source)
            raise
        if isinstance(version, str):
            return Bodies(unfit=f"in aggregate '{name}', {version}")
        versions.append(version)
    base, window_version = versions
    if window_version is None and isinstance(base, PythonBody) and base.goes_along:
        window_version = base
    return Bodies(base, window_version)


def _version(
    entry: Aggregate, arguments: Sequence[Type], catalog: Catalog
) -> typed_nodes.Body | PythonBody | str:
    """Return one version, or the reason why it cannot be run yet; raise a mistake."""
    if isinstance(entry.definition, PythonAggregate):
        return python_body(entry, entry.definition, arguments)
    form = specialise(entry, arguments, catalog)
    refusal = form.refusal
    if isinstance(refusal, MistakenCallError):
        raise AnalysisError(refusal.message, span=refusal.span, hint=refusal.hint)
    return form.get() if refusal is None else refusal.message


def python_body(aggregate: Aggregate, definition: PythonAggregate, arguments: Sequence[Type]) -> PythonBody:
    """Return an aggregate in Python for arguments of some types."""
    parameters = tuple(
        p if p.type.is_known else Field(p.name, type_)
        for p, type_ in zip(aggregate.parameters, arguments, strict=True)
    )
    for column in (*parameters, *aggregate.returns):
        if column.type.kind in NOT_KEPT:
            raise AnalysisError(f"'{column.name}' of type {column.type} cannot be kept in an aggregate yet")
        if not column.type.is_known:
            raise AnalysisError(f"the type of '{column.name}' cannot be told", hint="declare it")
    return PythonBody(aggregate.name, parameters, aggregate.returns, definition)
