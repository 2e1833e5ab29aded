"""What this version can run: a list, so that nothing falls through in silence."""

from __future__ import annotations

from millstream.analysis.resolved import Query
from millstream.catalog.entries import Rejected, Stream, View
from millstream.errors import NotExecutableError
from millstream.plan import nodes

NOT_YET: dict[type[nodes.Node], str] = {
    nodes.Windowed: "a window on a stream",
    nodes.WindowAggregate: "an aggregate over a window",
    nodes.OverAggregate: "an aggregate with OVER on a stream",
    nodes.BaseAggregate: "a user-defined aggregate on a stream",
    nodes.PatternMatch: "a sequence pattern",
    nodes.WindowJoin: "a join of windows",
    nodes.Distinct: "DISTINCT over a window",
    nodes.WindowSetOperation: "a set operation on windows",
    nodes.RelationToStream: "ISTREAM, DSTREAM, RSTREAM or CHANGES",
}


def why_not(plan: nodes.Node) -> str | None:
    """The first thing in a plan that cannot be run yet, in words, or None."""
    for node in plan.walk():
        if type(node) in NOT_YET:
            return NOT_YET[type(node)]
        match node:
            case nodes.StreamScan(stream=Stream(origin=Rejected(reason="late"))):
                return "reading late tuples (LATE INTO)"
            case nodes.StreamUnion(all=False):
                return "UNION of streams without ALL"
            case nodes.TableScan(table=View()):
                return "reading a view"
            case _:
                pass
    return None


def require_executable(plan: nodes.Node, query: Query) -> None:
    """Refuse by name what cannot be run yet."""
    reason = why_not(plan)
    if reason is not None:
        raise NotExecutableError(
            f"{reason} cannot be run by this version of Millstream yet",
            span=query.span,
            hint="`millstream check` and EXPLAIN LOGICAL work on the whole language",
        )
