"""The ranking functions of one SELECT, its QUALIFY, and the order of its reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.call_nodes import OverCall, RankCall
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.rank_clause import (
    is_of_instants,
    is_ranking,
    rank_call,
    refuse_change_words,
    top_rows,
)
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import Output, TopRows
from millstream.analysis.queries.unsupported_clauses import check_order
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.errors import AnalysisError
from millstream.types import Type


@dataclass
class RankingClauses:
    """Collects what ranks the rows of reports, of contents of windows (``has_content``) or of instants."""

    node: exp.Select
    facts: StreamFacts | None
    has_windows: bool
    has_content: bool
    checked_only: bool
    calls: list[RankCall] = field(default_factory=list)
    qualify: tuple[Expr, ...] = ()
    top: TopRows | None = None
    limit: TopRows | None = None
    """LIMIT and OFFSET of a stream without windows."""

    @property
    def is_asked(self) -> bool:
        return bool(self.calls) or self.top is not None

    def takes(self, node: exp.Window, resolver: Resolver) -> bool:
        """Tell whether a call ranks rows of a report; other calls go along the stream."""
        if self.checked_only or not is_ranking(node, resolver):
            return False
        return self.has_windows or self.has_content or is_of_instants(node, self.facts, resolver)

    def take(
        self, node: exp.Window, type_: Type, resolver: Resolver, text: Callable[[exp.Expr], str]
    ) -> ColumnRef:
        """Take a call out of an expression; ``resolver`` takes the aggregates in it."""
        call = rank_call(node, type_, resolver, f"__rank{len(self.calls)}", text)
        for known in self.calls:
            if replace(known, result=call.result) == call:
                return known.result
        self.calls.append(call)
        return call.result

    def resolve(self, outputs: list[Output], resolver: Resolver, overs: Sequence[OverCall]) -> None:
        """Resolve QUALIFY, and ORDER BY, LIMIT and OFFSET of reports or of the rows of an instant.

        Calls along a stream are among ``overs``, to which QUALIFY may add.
        """
        qualify = self.node.args.get("qualify")
        if qualify is not None:
            self.qualify = resolver.conditions(qualify.this, "QUALIFY")
            if not self.calls and not overs and qualify.find(exp.Window) is None:
                raise error_at(qualify, "QUALIFY without OVER", hint="use WHERE, or HAVING for aggregates")
        if self.checked_only or (self.facts is None and not self.has_windows):
            return
        if self.facts is not None and not self.has_content:
            check_order(self.node, outputs, resolver, self.facts)
        timestamp = self.facts.timestamp.column if self.facts is not None else None
        along = {(timestamp or "").lower()} | ({"window_end"} if self.has_windows else set())
        self.top = top_rows(self.node, outputs, resolver, frozenset(along))
        if self.top is not None and not self.has_content and self.facts is not None:
            top, self.top = self.top, TopRows(self.top.order_by) if self.top.order_by else None
            self.limit = replace(top, order_by=()) if top.limit is not None or top.offset else None

    def check_distinct(self, outputs: list[Output]) -> None:
        """Refuse DISTINCT of ranks, and an order of different rows by what they do not show."""
        distinct = self.node.args.get("distinct")
        if distinct is None or not self.is_asked:
            return
        if self.calls:
            raise error_at(
                distinct,
                f"DISTINCT does not go with '{self.calls[0].name}'",
                hint="rank the rows of a query in FROM: FROM (SELECT DISTINCT ... FROM s [...])",
            )
        shown = {output.expr for output in outputs}
        for key in self.top.order_by if self.top is not None else ():
            if key.expr not in shown:
                raise AnalysisError(
                    "with DISTINCT, ORDER BY names a column of SELECT",
                    span=key.expr.span,
                    hint="select it, or leave DISTINCT out",
                )

    def check_word(self, word: str | None) -> None:
        """Refuse ISTREAM, DSTREAM and CHANGES of ranked rows."""
        if self.is_asked:
            what = "ORDER BY or LIMIT" if self.top is not None else f"'{self.calls[0].name}'"
            refuse_change_words(word, what, self.node)

    def expressions(self) -> Iterator[Expr]:
        for call in self.calls:
            yield from call.expressions()
        yield from (key.expr for key in (self.top.order_by if self.top is not None else ()))
        yield from self.qualify
