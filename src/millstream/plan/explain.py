"""Plans as text for people."""

from __future__ import annotations

from millstream.plan.nodes import Node


def tree(plan: Node) -> str:
    """A plan as an indented tree, results at the top.

    Every line is an operator; below it stand its inputs.
    """
    lines: list[str] = []
    _write(plan, "", "", lines)
    return "\n".join(lines)


def _write(node: Node, lead: str, below: str, lines: list[str]) -> None:
    lines.append(lead + node.label())
    for i, child in enumerate(node.inputs):
        last = i == len(node.inputs) - 1
        _write(child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), lines)
