"""Which streams a query could read together with other queries."""

from __future__ import annotations

from millstream.catalog.entries import Rejected
from millstream.plan import nodes

STATEFUL = (nodes.OverAggregate, nodes.WindowAggregate, nodes.PatternMatch)


def shareable(plan: nodes.Node) -> set[str]:
    """The streams that a query reads, if it is one stage over sources; nothing if it is more, or less."""
    streams: set[str] = set()
    stages = 0
    for node in plan.walk():
        match node:
            case nodes.StreamScan():
                if isinstance(node.stream.origin, Rejected):
                    return set()
                streams.add(node.stream.name.lower())
                # Without a stage there is nothing to share: tuples in order of arrival are never late.
                if not node.stream.can_be_late and not any(isinstance(n, STATEFUL) for n in plan.walk()):
                    return set()
            case nodes.TableJoin() | nodes.StreamUnion() | nodes.RelationToStream():
                return set()
            case nodes.OverAggregate():
                stages += len({tuple(e.sql for e in call.partition_by) for call in node.calls})
            case nodes.WindowAggregate() | nodes.PatternMatch():
                stages += 1
            case _:
                pass
    return streams if stages <= 1 else set()
