"""UNION ALL of queries in bodies."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types.coercion import common_type
from millstream.analysis.types.implicit_casts import converted
from millstream.analysis.udas.body_expressions import with_outputs
from millstream.analysis.udas.body_names import Attempt
from millstream.ir import typed_nodes


def united_query(
    node: exp.SetOperation, one: Attempt[typed_nodes.Query], other: Attempt[typed_nodes.Query]
) -> typed_nodes.Query:
    arranged = node.args.get("order") or node.args.get("limit")
    if not isinstance(node, exp.Union) or node.args.get("distinct") or arranged:
        raise error_at(
            node,
            f"{node.key.upper()} in this form cannot be used in an aggregate yet",
            hint="UNION ALL can; IN, NOT IN and EXISTS do the work of the others",
        )
    left, right = one.get(), other.get()
    types = []
    for a, b in zip(left.outputs, right.outputs, strict=True):
        common = common_type(a.type, b.type)
        assert common is not None, "the types have been checked"
        types.append(common)
    first = with_outputs(left, [converted(o, t) for o, t in zip(left.outputs, types, strict=True)])
    second = with_outputs(right, [converted(o, t) for o, t in zip(right.outputs, types, strict=True)])
    return replace(first, united=(*first.united, replace(second, united=()), *second.united))
