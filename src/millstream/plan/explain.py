"""Plans as text for people."""

from __future__ import annotations

from collections.abc import Callable

from millstream.analysis.calls import OverCall
from millstream.plan import python_strategies, strategies, versions
from millstream.plan.nodes import Node, OverAggregate, WindowAggregate


def tree(plan: Node) -> str:
    """A plan as an indented tree, results at the top.

    Every line is an operator; below it stand its inputs.
    """
    return _text(plan, lambda node: [])


def explained(plan: Node) -> str:
    """The same for EXPLAIN: below an operator with windows also stands how each aggregate is computed."""
    return _text(plan, _notes)


Notes = Callable[[Node], list[str]]


def _text(plan: Node, notes: Notes) -> str:
    lines: list[str] = []
    _write(plan, "", "", notes, lines)
    return "\n".join(lines)


def _write(node: Node, lead: str, below: str, notes: Notes, lines: list[str]) -> None:
    lines.append(lead + node.label())
    bar = "│    " if node.inputs else "     "
    lines += [f"{below}{bar}{note}" for note in notes(node)]
    for i, child in enumerate(node.inputs):
        last = i == len(node.inputs) - 1
        branch = "└─ " if last else "├─ "
        _write(child, below + branch, below + ("   " if last else "│  "), notes, lines)


def _notes(node: Node) -> list[str]:
    match node:
        case WindowAggregate() if node.streaming:
            return [
                *strategies.notes((call, False) for call in node.aggregates),
                *python_strategies.notes((call, None) for call in node.aggregates),
            ]
        case OverAggregate():
            return [note for over in node.calls for note in _over_notes(over)]
        case _:
            return []


def _over_notes(over: OverCall) -> list[str]:
    bodies = over.call.bodies
    if over.call.user is None:
        return strategies.notes([(over.call, over.frame.preceding is None)])
    if bodies is None or bodies.unfit is not None:
        return []
    return python_strategies.notes([(over.call, over)]) or [f"{over.call.result}: {versions.described(over)}"]
