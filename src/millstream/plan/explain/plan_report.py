"""Plans as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from millstream.analysis.queries.call_nodes import AggregateCall, OverCall, ranks_along
from millstream.masking import masked
from millstream.plan import aggregate_strategies, python_strategies, time_panes, uda_versions
from millstream.plan.nodes import Node, OverAggregate, WindowAggregate, Windowed
from millstream.plan.update_patterns import shown_patterns
from millstream.windows.window_properties import context


def tree(plan: Node) -> str:
    """Return a plan as an indented tree, results at the top.

    Every line is an operator; its inputs stand below it.
    """
    return _text(plan, lambda node: "", lambda node: [])


def explained(plan: Node) -> str:
    """Return the tree for EXPLAIN, with the update pattern of every operator whose result varies with time.

    A window is followed by its context, and an operator with windows by the algorithms of its aggregates.
    """
    patterns = shown_patterns(plan)

    def remark(node: Node) -> str:
        words = [str(context(node.window).value)] if isinstance(node, Windowed) else []
        words += [str(patterns[id(node)])] if id(node) in patterns else []
        return f"  -- {', '.join(words)}" if words else ""

    return _text(plan, remark, _notes)


Remark = Callable[[Node], str]
Notes = Callable[[Node], list[str]]


def _text(plan: Node, remark: Remark, notes: Notes) -> str:
    lines: list[str] = []
    _write(plan, "", "", remark, notes, lines)
    return masked("\n".join(lines))


def _write(node: Node, lead: str, below: str, remark: Remark, notes: Notes, lines: list[str]) -> None:
    lines.append(lead + node.label() + remark(node))
    bar = "│    " if node.inputs else "     "
    lines += [f"{below}{bar}{note}" for note in notes(node)]
    for i, child in enumerate(node.inputs):
        last = i == len(node.inputs) - 1
        branch = "└─ " if last else "├─ "
        _write(child, below + branch, below + ("   " if last else "│  "), remark, notes, lines)


def _notes(node: Node) -> list[str]:
    match node:
        case WindowAggregate() if node.streaming:
            return [
                *aggregate_strategies.notes((call, False) for call in node.aggregates if call.user is None),
                *(f"{c.result}: {time_panes.strategy(node, c)}" for c in _in_esl(node.aggregates)),
                *python_strategies.notes((call, None) for call in node.aggregates),
            ]
        case OverAggregate():
            return [note for over in node.calls for note in _over_notes(over)]
        case _:
            return []


def _in_esl(calls: Iterable[AggregateCall]) -> Iterator[AggregateCall]:
    for call in calls:
        if call.user is not None and not python_strategies.notes([(call, None)]):
            yield call


def _over_notes(over: OverCall) -> list[str]:
    bodies = over.call.bodies
    if ranks_along(over.call):
        how = "counted" if not over.call.arguments else "value of another row"
        return [f"{over.call.result}: {how}, O(1)"]
    if over.call.user is None:
        return aggregate_strategies.notes([(over.call, over.frame.preceding is None)])
    if bodies is None or bodies.unfit is not None:
        return []
    return python_strategies.notes([(over.call, over)]) or [
        f"{over.call.result}: {uda_versions.described(over)}"
    ]
