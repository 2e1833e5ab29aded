"""EXPLAIN PATTERN: the sequence patterns of a plan, as text or as graphs."""

from __future__ import annotations

from collections.abc import Callable

from millstream.analysis.queries.resolved_query import PatternClause
from millstream.inference.ops_shift_next import facts_of, resumes
from millstream.ir.pattern import Pattern
from millstream.plan.explain.pattern_graph import dot, mermaid
from millstream.plan.explain.pattern_report import explained
from millstream.plan.nodes import Node, PatternMatch

MODES: dict[str, Callable[[Pattern], str]] = {
    "PATTERN": explained,
    "PATTERN DOT": lambda form: dot(form, resumes(facts_of(form))),
    "PATTERN MERMAID": lambda form: mermaid(form, resumes(facts_of(form))),
}
"""Renderers of a pattern by the mode of EXPLAIN."""


def explained_patterns(plan: Node, mode: str) -> str:
    """Return all patterns of a plan. A graph has no title, so that it can be passed to a drawing program."""
    clauses = [node.pattern for node in plan.walk() if isinstance(node, PatternMatch)]
    if not clauses:
        return "this query has no sequence pattern"
    return "\n\n".join(_explained(clause, mode) for clause in clauses)


def _explained(clause: PatternClause, mode: str) -> str:
    if clause.form is None:
        return f"{_title(clause)}\ncannot be searched for yet: {clause.unfit}"
    shown = MODES[mode](clause.form)
    if mode != "PATTERN":
        return shown
    computed = [f"  {output.name} is {output.expr}" for output in clause.computed]
    before = ["computed before the search", *computed] if computed else []
    after = ["asked of matches", *(f"  {c}" for c in clause.after_match)] if clause.after_match else []
    return "\n".join([_title(clause), *before, shown, *after])


def _title(clause: PatternClause) -> str:
    elements = ", ".join(f"{'*' if e.star else ''}{e.name}" for e in clause.elements)
    by = f" PARTITION BY {', '.join(clause.partition_by)}" if clause.partition_by else ""
    along = f" SEQUENCE BY {', '.join(clause.sequence_by)}" if clause.sequence_by else ""
    return f"{clause.alias}{by}{along} AS ({elements})"
