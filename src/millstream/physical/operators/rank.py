"""Ranking functions over reports, and the first rows of each report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.analysis.queries.call_nodes import OrderKey, RankCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.kernels.specs import OrderColumn, RankSpec, WindowRankSpec
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow, FlowInput, named
from millstream.physical.node import Choice, Column, Role, arrow_of
from millstream.physical.stage_builder import StageBuilder, StageDraft
from millstream.plan import nodes


def plan_rank(
    stages: StageBuilder, flow: Flow, node: nodes.WindowRank, needed: Sequence[ColumnRef], *, marked: bool
) -> Flow:
    """Plan a stage that sees the rows of all reports; these have been aggregated in shards before."""
    refs = list(needed) or list(node.input.schema[:1])
    draft = StageDraft(stages.shipped(flow, refs), marked=marked, anew=True, parallel=False)
    shipped = _Shipped(stages, flow, draft, refs)
    calls = [shipped.call(call, f"r{i}") for i, call in enumerate(node.calls)]
    names = (*draft.columns, *(call.result for call in calls))
    report = shipped.names(map(of_column, node.report))
    order = shipped.order(node.order_by)
    draft.kernels = (WindowRankSpec(report, tuple(calls), names, order, node.limit, node.offset),)
    draft.added = tuple(
        Column(spec.result, call.type, role=Role.RESULT) for spec, call in zip(calls, node.calls, strict=True)
    )
    kept = "the rows of an instant until the watermark has passed it"
    draft.notes = (Choice("state", kept),)
    columns = [*zip(refs, draft.columns, strict=True)]
    columns += [(call.result, spec.result) for spec, call in zip(calls, node.calls, strict=True)]
    return Flow((FlowInput(named(stages.build(flow, draft), columns), marked=marked, staged=True),))


class _Shipped:
    """Columns for the expressions of a stage, each shipped once."""

    def __init__(
        self, stages: StageBuilder, flow: Flow, draft: StageDraft, refs: Iterable[ColumnRef]
    ) -> None:
        self._stages = stages
        self._flow = flow
        self._draft = draft
        self._names = {of_column(ref).sql: f"c{i}" for i, ref in enumerate(refs)}

    def name(self, expr: Expr) -> str:
        found = self._names.get(expr.sql)
        if found is None:
            found = self._names[expr.sql] = f"a{len(self._names)}"
            self._draft.arguments[found] = self._stages.typed(self._flow, expr)
        return found

    def names(self, exprs: Iterable[Expr]) -> tuple[str, ...]:
        return tuple(map(self.name, exprs))

    def order(self, keys: Iterable[OrderKey]) -> tuple[OrderColumn, ...]:
        return tuple(OrderColumn(self.name(key.expr), key.descending, key.nulls_first) for key in keys)

    def call(self, call: RankCall, result: str) -> RankSpec:
        return RankSpec(
            call.name,
            result,
            arrow_of(call.type),
            self.names(call.partition_by),
            self.order(call.order_by),
            None if call.argument is None else self.name(ex.cast(call.argument, call.type)),
            None if call.default is None else self.name(ex.cast(call.default, call.type)),
            call.number,
            call.ignore_nulls,
            call.frame.rows,
            call.frame.start,
            call.frame.end,
            call.text,
        )
