"""The automaton of a pattern as a graph, in the languages of Graphviz (DOT) and Mermaid.

A state is an element that has taken a tuple. Solid edges consume a tuple or complete a star. Dotted edges
show where the search continues after a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.inference.condition_text import ConditionText
from millstream.inference.ops_shift_next import Failure, ResumePoint
from millstream.ir.pattern import Pattern

START, MATCH = "start", "match"


@dataclass(frozen=True)
class Edge:
    """An edge between states; ``failure`` if the attempt ends here and another continues there."""

    source: str
    target: str
    label: str
    failure: bool = False


def edges(form: Pattern, table: dict[Failure, ResumePoint]) -> list[Edge]:
    return [*_taken(form), *_failed(form, table)]


def _taken(form: Pattern) -> Iterator[Edge]:
    texts, before, complete = ConditionText(form), START, ""
    for number, element in enumerate(form.elements):
        state = f"e{number}"
        conditions = texts.conditions(element.per_tuple) or "any tuple"
        yield Edge(before, state, f"{complete}, then {conditions}" if complete else conditions)
        if element.star:
            yield Edge(state, state, conditions)
        before = state
        complete = f"complete: {texts.conditions(element.final)}" if element.final else ""
    trailing = form.elements[-1].star
    yield Edge(before, MATCH, complete or ("complete" if trailing else ""))


def _failed(form: Pattern, table: dict[Failure, ResumePoint]) -> Iterator[Edge]:
    """Yield the edges of failures; the attempt that continues is in the state before its next element."""
    for failure, resume in table.items():
        inside = resume.offered != resume.starts[-1]
        state = resume.next if inside else resume.next - 1
        at = failure.element if failure.final else failure.element - 1
        name = form.elements[failure.element].name
        yield Edge(_state(at), _state(state), f"not {name}{', complete' if failure.final else ''}", True)


def _state(element: int) -> str:
    return START if element < 0 else f"e{element}"


def dot(form: Pattern, table: dict[Failure, ResumePoint]) -> str:
    """Return the graph for Graphviz."""
    lines = ["digraph pattern {", "  rankdir=LR;", f"  {START} [shape=point];"]
    lines += [f"  e{i} [shape=circle, label={_quoted(_name(form, i))}];" for i in range(len(form.elements))]
    lines.append(f"  {MATCH} [shape=doublecircle];")
    for edge in edges(form, table):
        style = ", style=dotted" if edge.failure else ""
        lines.append(f"  {edge.source} -> {edge.target} [label={_quoted(edge.label)}{style}];")
    return "\n".join([*lines, "}"])


def mermaid(form: Pattern, table: dict[Failure, ResumePoint]) -> str:
    """Return the graph for Markdown pages."""
    lines = ["flowchart LR", f"  {START}(( ))"]
    lines += [f'  e{i}(("{_escaped(_name(form, i))}"))' for i in range(len(form.elements))]
    lines.append(f"  {MATCH}((({MATCH})))")
    for edge in edges(form, table):
        arrow = "-.->" if edge.failure else "-->"
        label = f'|"{_escaped(edge.label)}"|' if edge.label else ""
        lines.append(f"  {edge.source} {arrow}{label} {edge.target}")
    return "\n".join(lines)


def _name(form: Pattern, element: int) -> str:
    return f"{'*' if form.elements[element].star else ''}{form.elements[element].name}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    """Replace characters by the entity names that Mermaid shares with HTML."""
    for character, name in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, name)
    return text
