"""Report on a pattern: the conditions of its elements, their implications, and their use in the search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from millstream.inference.condition_text import ConditionText
from millstream.inference.implications import Known, Matrix
from millstream.inference.ops_shift_next import (
    Failure,
    PatternFacts,
    ResumePoint,
    TuplePosition,
    facts_of,
    kept_from,
    resumes,
)
from millstream.ir.pattern import End, Pattern
from millstream.ir.typed_nodes import Column, Expr, GroupColumn, walk

_TAKES = {True: "1", False: "0", None: "?"}


def explained(form: Pattern) -> str:
    """Return the whole report as text."""
    facts = facts_of(form)
    table = resumes(facts)
    parts: list[tuple[str, Iterable[str]]] = [
        ("elements", _elements(form)),
        ("automaton", _automaton(form)),
        ("implications (1 holds, 0 fails, ? unknown)", _implications(form, facts)),
        ("after a failure", _table(form, table)),
        ("kept", _kept(form, facts, table)),
    ]
    return "\n".join(line for title, lines in parts for line in (title, *(f"  {one}" for one in lines)))


def _columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Align rows of words in columns."""
    listed = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return ["  ".join(w.ljust(n) for w, n in zip(row, widths, strict=True)).rstrip() for row in listed]


def name_of(form: Pattern, element: int) -> str:
    return f"{'*' if form.elements[element].star else ''}{form.elements[element].name}"


# ---------------------------------------------------------------- elements


def _elements(form: Pattern) -> list[str]:
    texts = ConditionText(form)
    rows = []
    for number, element in enumerate(form.elements):
        when = "each tuple" if element.star else "one tuple"
        rows.append((name_of(form, number), when, texts.conditions(element.per_tuple) or "any"))
        if element.final:
            rows.append(("", "complete", texts.conditions(element.final)))
    return _columns(rows)


def _automaton(form: Pattern) -> list[str]:
    """List the transitions; a star stays in its state while it takes tuples."""
    names = ["start", *(form.elements[i].name for i in range(len(form.elements))), "match"]
    rows = []
    for number, element in enumerate(form.elements):
        rows.append((names[number], "->", names[number + 1], f"{element.name} takes the tuple"))
        if element.star:
            rows.append((element.name, "->", element.name, f"{element.name} takes the tuple"))
    last = form.elements[-1]
    how = f"a tuple that {last.name} does not take, or the end of the input" if last.star else "at once"
    return _columns([*rows, (names[-2], "->", names[-1], how)])


# ---------------------------------------------------------------- implications


def _implications(form: Pattern, facts: PatternFacts) -> list[str]:
    row_names = [form.elements[i].name for i in range(len(form.elements))]
    column_names = [*row_names, *(["before"] if facts.stars[0] else [])]
    lines = _matrix("taken by", row_names, column_names, facts.known.theta)
    lines += _matrix("refused by", row_names, column_names, facts.known.phi)
    if facts.stars[0]:
        lines.append(f"before: {row_names[0]} would take it, so no attempt starts behind it")
    return lines


def _matrix(title: str, row_names: list[str], column_names: list[str], matrix: Matrix) -> list[str]:
    def shown(row: Sequence[Known]) -> list[str]:
        return [_TAKES[known] for known in row[: len(column_names)]]

    rows = [
        (title, "", *column_names),
        *(("", name, *shown(row)) for name, row in zip(row_names, matrix, strict=True)),
    ]
    return _columns(rows)


# ---------------------------------------------------------------- shift and next


def _table(form: Pattern, table: dict[Failure, ResumePoint]) -> list[str]:
    rows = [("at", "shift", "next", "the next attempt starts", "and asks")]
    for failure, resume in table.items():
        at = form.elements[failure.element].name + (", complete" if failure.final else "")
        start = _spot(resume.starts[0], failure, form)
        rows.append((at, str(resume.shift), str(resume.next + 1), start, _asked(resume, failure, form)))
    return _columns(rows)


def _spot(position: TuplePosition, failure: Failure, form: Pattern) -> str:
    if position.element == failure.spot.element:
        what = f"the tuple that ended {form.elements[failure.element].name}" if failure.final else "the tuple"
        return f"{'after' if position.after else 'at'} {what}"
    name = form.elements[position.element].name
    which = "second" if position.after else "first"
    return f"at the {which} tuple of {name}" if form.elements[position.element].star else f"at {name}"


def _asked(resume: ResumePoint, failure: Failure, form: Pattern) -> str:
    name = form.elements[resume.next].name
    if resume.complete:
        return f"whether {name} is as wanted, which is complete"
    where = _spot(resume.offered, failure, form)
    return name if resume.offered == resume.starts[0] else f"{name} {where}"


# ---------------------------------------------------------------- state


def _kept(form: Pattern, facts: PatternFacts, table: dict[Failure, ResumePoint]) -> Iterator[str]:
    rows = []
    for number, element in enumerate(form.elements):
        first = kept_from(number, facts, table)
        tuples = "no tuples" if first is None else f"tuples from {_from(first, form)} on"
        grows = " grows" if element.star else " is asked"
        rows.append((f"while {element.name}{grows}", tuples))
    yield from _columns(rows)
    texts = ConditionText(form)
    for number, element in enumerate(form.elements):
        mentions = [text for owner, text in _mentions(form, texts) if owner == number]
        if mentions:
            yield f"of {element.name}: {', '.join(dict.fromkeys(mentions))}"


def _from(position: TuplePosition, form: Pattern) -> str:
    name = form.elements[position.element].name
    if not form.elements[position.element].star:
        return name
    return f"the {'second' if position.after else 'first'} of {name}"


def _mentions(form: Pattern, texts: ConditionText) -> Iterator[tuple[int, str]]:
    """Yield the references to an element after its tuple: by later elements, in the end, in results."""
    for number, element in enumerate(form.elements):
        for condition in (*element.per_tuple, *element.final):
            for owner, text, now in _parts(condition, form, texts):
                if owner != number or not now:
                    yield owner, text
    for output in form.outputs:
        yield from ((owner, text) for owner, text, _ in _parts(output, form, texts))


def _parts(expr: Expr, form: Pattern, texts: ConditionText) -> Iterator[tuple[int, str, bool]]:
    for part in walk(expr):
        if isinstance(part, Column):
            place = form.places[part.scan]
            yield place.element, texts.of(part), place.end is End.NOW
        elif isinstance(part, GroupColumn):
            yield form.measures[part.index].element, texts.of(part), False
