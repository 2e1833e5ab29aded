"""A query to start: its plan, its place in the script, and the place of its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from millstream.analysis.queries.resolved_query import Arrangement, Query
from millstream.catalog.entries import Reader, Sink
from millstream.errors import MillstreamError, Place, Source, Span
from millstream.plan import nodes
from millstream.plan.builder import build
from millstream.plan.planner import best_plan
from millstream.plan.refusals import require_executable
from millstream.plan.views import build_view

Form = Callable[[Query], nodes.Node]


@dataclass(frozen=True)
class QueryRequest:
    """A query to start: its place, its name, its sink, and the form of its plan."""

    query: Query
    source: Source
    span: Span
    name: str
    sink: Sink | None = None
    form: Form = build
    """Plan builder: for the rows of the query, or for its current result."""
    arrangement: Arrangement | None = None
    """Order and LIMIT of the current result."""

    @cached_property
    def plan(self) -> nodes.Node:
        return plan_query(self.query, self.source, self.form)

    @property
    def is_view(self) -> bool:
        """Return whether only its current result is requested."""
        return self.form is build_view

    @property
    def bounded(self) -> bool:
        return self.query.facts is not None and self.query.facts.bounded

    def explain(self, error: BaseException) -> MillstreamError:
        """Translate an error, with its place in the query or else the place of the query."""
        return explain_error(error, self.source, self.span, self._declared)

    @property
    def _declared(self) -> Place | None:
        """Return the declaration of the source that is read through options, if there is only one."""
        scans = (node.stream for node in self.form(self.query).walk() if isinstance(node, nodes.StreamScan))
        places = {stream.name: stream.place for stream in scans if isinstance(stream.origin, Reader)}
        return next(iter(places.values())) if len(places) == 1 else None


def plan_query(query: Query, source: Source, form: Form = build) -> nodes.Node:
    """Plan a query; raise an error if it cannot be run."""
    try:
        plan = best_plan(query, form)
        require_executable(plan, query)
    except MillstreamError as error:
        raise error.locate(source) from None
    return plan


def explain_error(
    error: BaseException, source: Source, span: Span, declared: Place | None = None
) -> MillstreamError:
    """Translate an error, with its place in the text or else the place of the whole text.

    A mistake in the declaration of a source has the place of the declaration.
    """
    from millstream.spark.errors.error_chain import translate
    from millstream.spark.session.session import log_with_details

    if isinstance(error, MillstreamError) and error.place is not None:
        return error
    text = source.text[span[0] : span[1] + 1]
    translated = translate(error, text=text, log=log_with_details, declared=declared)
    inner = translated.span
    inside = inner is not None and not isinstance(error, MillstreamError)
    translated.span = (span[0] + inner[0], span[0] + inner[1]) if inside and inner else inner or span
    return translated.locate(source)
