"""Types that only Spark knows: noted while a plan is made, and asked for before it is made again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import Expr
from millstream.catalog.builtin_aggregates import Within, builtin_aggregate
from millstream.physical.node import PhysicalNode
from millstream.types import UNKNOWN, Type

Known = dict[str, Type]
"""Types by the texts of expressions."""


@dataclass(frozen=True)
class Question:
    """An expression over the rows of a node, whose type is not known; or the call of an aggregate."""

    node: PhysicalNode
    text: str
    aggregate: bool = False


@dataclass
class UnknownTypes:
    """Types that Spark has told, and questions for those that it has not been asked for."""

    known: Known = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def typed(self, node: PhysicalNode, expr: Expr) -> Expr:
        """Return an expression with its type, as far as that is known."""
        if expr.type.is_known:
            return expr
        below = next((c.type for c in node.shown if c.ref == expr.column), UNKNOWN)
        return replace(expr, type=below if below.is_known else self._told(Question(node, expr.sql)))

    def result_type(self, node: PhysicalNode, call: AggregateCall) -> Type:
        """Return the type of a call of a built-in aggregate, as far as that is known."""
        return call.type if call.type.is_known else self._told(Question(node, _text(call), aggregate=True))

    def _told(self, question: Question) -> Type:
        if question.text in self.known:
            return self.known[question.text]
        self.questions.append(question)
        return UNKNOWN


def _text(call: AggregateCall) -> str:
    """Return a call as text, without DISTINCT and FILTER, which make no difference to its type."""
    name = call.name.lower()
    texts = [argument.sql for argument in call.arguments]
    within = ""
    if call.within:
        count = len(call.within)
        row = builtin_aggregate(name)
        last = row is not None and row.within is Within.LAST
        ordered, texts = (texts[-count:], texts[:-count]) if last else (texts[:count], texts[count:])
        keys = [
            f"{text}{' DESC' if key.descending else ''}"
            for text, key in zip(ordered, call.within, strict=True)
        ]
        within = f" WITHIN GROUP (ORDER BY {', '.join(keys)})"
    return "count(1)" if name == "count" else f"{name}({', '.join(texts)}){within}"
