"""First rows of each partition: a condition on the number of a row is known to OVER."""

from __future__ import annotations

import re
from dataclasses import replace

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan.nodes import Filter, Node, OverAggregate

_PLACES = frozenset({"row_number", "rank", "dense_rank"})
_BOUND = re.compile(
    r"# (?P<less><=?|=) (?P<most>\d+)|(?P<least>\d+) (?P<more>>=?|=) #|# between \d+ and (?P<last>\d+)"
)


def first_rows_of_partitions(node: Node) -> Node:
    """Note in ``Filter n <= 3 (OverAggregate row_number() AS n)`` that rows behind the third are not needed.

    The condition stays. So does the number of each partition, which is all that is kept of it.
    """
    if not isinstance(node, Filter) or not isinstance(node.input, OverAggregate) or node.input.first:
        return node
    over = node.input
    for condition in node.conditions:
        for call in over.calls:
            if call.call.user is None and call.call.name in _PLACES:
                most = _most(condition, call.call.result)
                if most is not None:
                    return replace(node, input=replace(over, first=(call.call.result, most)))
    return node


def _most(condition: Expr, column: ColumnRef) -> int | None:
    """Return the largest whole number for which a condition on a column can hold, if it says one."""
    if list(condition.columns()) != [column]:
        return None
    text = "".join("#" if isinstance(part, ColumnRef) else part for part in condition.parts)
    words = re.findall(r"#|\d+|[<>=!]+|[\w.]+|\S", text.lower())
    while words[:1] == ["("] and words[-1:] == [")"]:
        words = words[1:-1]
    found = _BOUND.fullmatch(" ".join(words).replace("==", "="))
    if found is None:
        return None
    most = int(found["most"] or found["least"] or found["last"])
    return most - 1 if "<" in (found["less"], (found["more"] or "").replace(">", "<")) else most
