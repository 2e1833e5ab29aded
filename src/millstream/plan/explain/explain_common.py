"""What the sequence patterns of several queries ask in common: once, or not at all if it follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from millstream.analysis.queries.resolved_expression import of_column
from millstream.codegen.patterns.condition_cache import Conditions
from millstream.codegen.patterns.pattern_compiler import questions_of
from millstream.codegen.patterns.shared_conditions import follows, renumbered
from millstream.inference.condition_text import ConditionText
from millstream.ir.pattern import Element, Pattern, Place
from millstream.ir.typed_nodes import Column, walk
from millstream.plan.explain.pattern_report import columns
from millstream.plan.nodes import Node, PatternMatch
from millstream.plan.pattern_parts import PatternSearch, taken_apart
from millstream.plan.scan_sharing import shareable


@dataclass(frozen=True)
class _Query:
    name: str
    search: PatternSearch
    form: Pattern


def explained_common(plans: Sequence[tuple[str, Node]]) -> str:
    """Of queries by name: those that search in the same tuples, and what they ask; empty if none do."""
    groups: list[list[_Query]] = []
    for query in _searching(plans):
        found = next((group for group in groups if _go_together(group[0], query)), None)
        if found is None:
            groups.append([query])
        else:
            found.append(query)
    return "\n".join(line for group in groups if len(group) > 1 for line in _explained(group))


def _searching(plans: Sequence[tuple[str, Node]]) -> Iterator[_Query]:
    """Those that can share a stage: a pattern over a stream, and nothing else that has a state."""
    for name, plan in plans:
        patterns = [node for node in plan.walk() if isinstance(node, PatternMatch)]
        if len(patterns) == 1 and shareable(plan) and patterns[0].pattern.form is not None:
            search = next(n for n in taken_apart(patterns[0]).walk() if isinstance(n, PatternSearch))
            yield _Query(name, search, patterns[0].pattern.form)


def _go_together(one: _Query, other: _Query) -> bool:
    keys = ([name.lower() for name in query.search.pattern.partition_by] for query in (one, other))
    return one.search.input == other.search.input and next(keys) == next(keys)


def _explained(group: Sequence[_Query]) -> Iterator[str]:
    yield f"-- {', '.join(query.name for query in group)}: in the same tuples"
    numbers: dict[tuple[str, str], int] = {}
    asking: dict[Conditions, list[str]] = {}
    texts: dict[Conditions, str] = {}
    for query in group:
        values = [
            *map(of_column, query.search.input.schema),
            *(o.expr for o in query.search.pattern.computed),
        ]
        places = {
            index: numbers.setdefault((value.sql, str(field.type)), len(numbers))
            for index, (value, field) in enumerate(zip(values, query.form.fields, strict=True))
        }
        questions = questions_of(query.form)
        for question, common in zip(questions, renumbered(questions, places), strict=True):
            asking.setdefault(common, []).append(query.name)
            texts[common] = _text(question, query.form)
    once = [(texts[question], ", ".join(names)) for question, names in asking.items() if len(names) > 1]
    if once:
        yield "asked once"
        yield from (f"  {line}" for line in columns(once))
    told = list(_told(asking, texts))
    if told:
        yield "not asked"
        yield from (f"  {line}" for line in columns(told))
    if not once and not told:
        yield "nothing is asked in common"


def _told(
    asking: dict[Conditions, list[str]], texts: dict[Conditions, str]
) -> Iterator[tuple[str, str, str]]:
    """What need not be asked in one query, by an answer of another."""
    questions = list(asking)
    table = follows(questions)
    for wanted, question in enumerate(questions):
        for given, other in enumerate(questions):
            is_part = set(question) <= set(other) or set(other) <= set(question)
            if is_part or set(asking[question]) == set(asking[other]):
                continue
            for outcome, known in zip(("fails", "holds"), table[given][wanted], strict=True):
                if known is not None:
                    said = f"{'holds' if known else 'fails'} in {', '.join(asking[question])}"
                    reason = f"if {texts[other]} {outcome}, in {', '.join(asking[other])}"
                    yield texts[question], said, reason


def _text(question: Conditions, form: Pattern) -> str:
    """Conditions of a tuple, whichever variable it is for."""
    depth = max((p.scan for c in question for p in walk(c) if isinstance(p, Column)), default=0)
    places = tuple(Place(0, back=back) for back in range(depth + 1))
    return ConditionText(replace(form, elements=(Element("tuple", False),), places=places)).conditions(
        question
    )
