"""The automaton of a pattern as a graph, in the languages of Graphviz (DOT) and Mermaid.

A state is an element that has taken a tuple. Solid edges are taken with a tuple, or when a star is complete.
Dotted ones show where the search goes on after a failure.
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
    """From a state to another; ``failure`` if the attempt ends here and another goes on there."""

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
        asked = texts.conditions(element.per_tuple) or "any tuple"
        yield Edge(before, state, f"{complete}, then {asked}" if complete else asked)
        if element.star:
            yield Edge(state, state, asked)
        before = state
        complete = f"complete: {texts.conditions(element.final)}" if element.final else ""
    trailing = form.elements[-1].star
    yield Edge(before, MATCH, complete or ("complete" if trailing else ""))


def _failed(form: Pattern, table: dict[Failure, ResumePoint]) -> Iterator[Edge]:
    """The attempt that goes on has what lies before its next element, and so is in the state of that."""
    for failure, resume in table.items():
        inside = resume.offered != resume.starts[-1]
        state = resume.next if inside else resume.next - 1
        at = failure.element if failure.final else failure.element - 1
        name = form.elements[failure.element].name
        yield Edge(_state(at), _state(state), f"not {name}{', complete' if failure.final else ''}", True)


def _state(element: int) -> str:
    return START if element < 0 else f"e{element}"


def dot(form: Pattern, table: dict[Failure, ResumePoint]) -> str:
    """For Graphviz."""
    lines = ["digraph pattern {", "  rankdir=LR;", f"  {START} [shape=point];"]
    lines += [f"  e{i} [shape=circle, label={_quoted(_name(form, i))}];" for i in range(len(form.elements))]
    lines.append(f"  {MATCH} [shape=doublecircle];")
    for edge in edges(form, table):
        style = ", style=dotted" if edge.failure else ""
        lines.append(f"  {edge.source} -> {edge.target} [label={_quoted(edge.label)}{style}];")
    return "\n".join([*lines, "}"])


def mermaid(form: Pattern, table: dict[Failure, ResumePoint]) -> str:
    """For Markdown pages."""
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
    """Mermaid knows characters by the names that they have in HTML."""
    for character, name in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, name)
    return text
