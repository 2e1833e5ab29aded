"""Programs as texts for people: what EXPLAIN CODE shows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

from millstream.program.program import Program, TableLayout

_WIDTH = 100
_BOUND = "\N{NO-BREAK SPACE}"

NO_PROGRAMS = "this query has neither aggregates of your own nor patterns"
_MODES = {
    "base": "INITIALIZE or ITERATE for each tuple",
    "running": "INITIALIZE or ITERATE for each tuple, then TERMINATE",
    "rows": "window version on ROWS: EXPIRE for what has left, then INITIALIZE or ITERATE",
    "range": "window version on RANGE: EXPIRE for what has left, then INITIALIZE or ITERATE",
    "active": "window version on RANGE, EXPIRE at the moment at which a tuple leaves",
    "again": "base version over the content of the window, whenever that has changed",
    "tumble": "base version over the last tuples of each slot, then TERMINATE",
    "content": "all blocks over the content of each window",
    "whole": "all blocks over each group of a table",
    "pattern": "each tuple is offered to all open attempts",
}


def summary(program: Program) -> str:
    """Return a program in a line."""
    types = ", ".join(str(parameter.type) for parameter in program.parameters)
    how = "compiled" if program.is_compiled else "not compiled"
    return f"{_named(program, types)}: {_MODES[program.mode]}; {how}"


def listing(programs: Iterable[Program]) -> str:
    """Return the generated source of programs, each under a head that says what it is."""
    return "\n\n\n".join("\n".join([*_head(program), "", *_source(program)]) for program in programs)


def _head(program: Program) -> Iterator[str]:
    types = ", ".join(f"{p.name} {p.type}" for p in program.parameters)
    returns = ", ".join(f"{r.name} {r.type}" for r in program.returns)
    yield f"# {'-' * (_WIDTH - 2)}"
    kind = "pattern    " if program.mode == "pattern" else "aggregate  "
    yield from _wrapped(f"# {kind}", f"{_named(program, types)} : ({returns})")
    yield f"# runs       {_MODES[program.mode]}"
    if program.is_compiled:
        yield "# compiled   by Numba"
    else:
        outside = ", ".join(sorted({call.name for call in program.outside}))
        yield from _wrapped("# plain      ", f"run by Python, as these functions are not compiled: {outside}")
    for i, layout in enumerate(program.tables):
        yield from _wrapped("# tables     " if i == 0 else "#            ", _table(layout))


def _named(program: Program, types: str) -> str:
    """Return a call of an aggregate, or a pattern and what it looks at."""
    return f"{program.name} of ({types})" if program.mode == "pattern" else f"{program.name}({types})"


def _table(layout: TableLayout) -> str:
    columns = ", ".join(f"{f.name} {f.type} (c{i})" for i, f in enumerate(layout.fields))
    facts = ["one row"] if layout.single else ["of the catalog"] if layout.given else []
    facts += [f"hash index on {_names(layout, columns)}" for columns in layout.hashes]
    facts += [f"ordered by {_names(layout, (column,))}" for column in layout.ordered]
    facts += [f"values of {_names(layout, (column,))} counted" for column in layout.counted]
    return f"{layout.prefix} = {layout.name}({columns}){''.join(f', {fact}' for fact in facts)}"


def _names(layout: TableLayout, columns: Iterable[int]) -> str:
    return ", ".join(layout.fields[column].name for column in columns)


def _source(program: Program) -> Iterator[str]:
    """Yield the source; long lines are broken between the arguments of a call."""
    for line in program.source.rstrip().splitlines():
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        if len(line) <= _WIDTH or text.startswith("#"):
            yield line
            continue
        pieces = textwrap.wrap(
            re.sub("(?<!,) ", _BOUND, text),
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (piece.replace(_BOUND, " ") for piece in pieces)


def _wrapped(lead: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=lead, subsequent_indent=f"#{' ' * (len(lead) + 1)}")
