"""From the checked form of a pattern to a program: one loop that offers each tuple to all open attempts.

By definition attempts come one after the other, and one that fails is followed by the one a tuple later. That
would mean to go back in the input, and to keep all tuples since the attempt began. Here no tuple is looked at
twice and none is kept: at each tuple the attempt that begins with it is begun at once, beside the older ones,
as if those had failed. The open attempts of a partition stand in a list, oldest first, and a tuple is offered
to one after the other. That gives the same:

- An attempt is determined by its tuples: it never gives any back, so it fails or matches at the same tuple,
  whether that is looked at now or later.
- If the oldest attempt matches, all others began inside the match, and are forgotten. If it fails, the next
  one is the oldest, and has come as far already as it would have come by going back.
- An attempt that is complete while an older one is open waits, with its results, for what becomes of that.
  All younger ones are forgotten: if it becomes a match they are inside it, and if not, inside an older one.
  What begins after it takes it for a match, also in the rule about leading stars.
- An attempt for which something could not be computed waits too. Only if it becomes the oldest the search
  fails, as it does by definition; otherwise nobody would have asked.

Of an attempt is kept what later conditions or the results will ask: columns of the first and the last tuple
of an element, and measures. Of a partition the last tuples are kept, as far back as ``previous`` goes, and
whether the last one belongs to a run of the leading star.

How many attempts are open does not depend on the length of a star. A leading star is maximal on the left, so
inside a run no attempt begins. If an attempt comes to an element at which an older one is with the same
tuple, and later conditions cannot see a difference between the two (that a count of which ``at least`` is
asked is larger is none), then the younger one is forgotten. An attempt whose count is already too large fails
at once. What is left can grow with the number of tuples: ``(X, *Y, Z)`` with ``Z.v > X.v``, where every tuple
of a long star could be an X. There is a budget of attempts in a partition for that.

What follows from conditions (OPS) is used twice. An attempt that begins with a tuple that an older one has
taken may be sure to fail if that does (``pattern.ops.barren``): it is not begun, and what could not have been
computed in it is not asked for. And what is asked of a tuple is asked once, not for each attempt, and not at
all where it follows from what has been answered (``codegen.patterns.condition_cache``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.codegen.core.array_binding import with_arrays
from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.patterns.attempt_state import AttemptRequirements
from millstream.codegen.patterns.condition_cache import Conditions
from millstream.codegen.patterns.matcher_emitter import MatcherEmitter
from millstream.codegen.patterns.pattern_scope import PatternScope
from millstream.codegen.patterns.shared_condition_emitter import ARRAYS, SharedConditionEmitter
from millstream.codegen.udas.body_emitter import ProgramContext
from millstream.ir.pattern import Pattern
from millstream.program.program import CatalogRows, Program, TableLayout, dtype_of

MODE = "pattern"
ATTEMPTS, PARTITIONS = "attempts", "partitions"


@dataclass(frozen=True)
class SharedProgram:
    """The program of a pattern that has answers in common with others, and the questions that it asks."""

    program: Program
    questions: tuple[Conditions, ...]


def compile_pattern(pattern: Pattern, *, ops: bool = True, counted: bool = False) -> Program:
    """The program of a pattern. Its parameters are the columns that it looks at.

    Without ``ops`` nothing is made of what follows from conditions; matches are the same. How often it has
    asked an element's conditions is ``counted`` on request.
    """
    return _compiled(pattern, ops=ops, counted=counted, together=False).program


def compile_shared_pattern(pattern: Pattern, *, ops: bool = True, counted: bool = False) -> SharedProgram:
    """The same for a pattern that is searched for beside others: what it finds out, these need not ask."""
    return _compiled(pattern, ops=ops, counted=counted, together=True)


def questions_of(pattern: Pattern) -> tuple[Conditions, ...]:
    """What a pattern asks that others may ask too, without its program."""
    plain = replace(pattern, measures=())
    return tuple(
        SharedConditionEmitter(
            plain, PatternScope(plain, ProgramContext(SourceWriter()), AttemptRequirements(), "")
        ).questions
    )


def _compiled(pattern: Pattern, *, ops: bool, counted: bool, together: bool) -> SharedProgram:
    name = ", ".join(f"{'*' if e.star else ''}{e.name}" for e in pattern.elements)
    shared, needs = ProgramContext(SourceWriter()), AttemptRequirements()
    while True:
        learnt = shared.learnt + needs.size
        code = MatcherEmitter(
            pattern, shared, needs, f"({name})", ops=ops, counted=counted, together=together
        )
        code.functions()
        if shared.learnt + needs.size == learnt:
            questions = code.answers.questions if isinstance(code.answers, SharedConditionEmitter) else ()
            return SharedProgram(
                _program(pattern, shared, needs, f"({name})", together=together), tuple(questions)
            )
        shared = shared.again()


def _program(
    pattern: Pattern, shared: ProgramContext, needs: AttemptRequirements, name: str, *, together: bool
) -> Program:
    attempts, partitions = (tuple(cells.fields.values()) for cells in (needs.attempt, needs.partition))
    layouts = (
        TableLayout(ATTEMPTS, needs.attempt.prefix, attempts, False, bound=0),
        TableLayout(PARTITIONS, needs.partition.prefix, partitions, True, bound=0),
        *shared.layouts.values(),
    )
    arrays: dict[str, str] = {}
    for i, index in enumerate(needs.columns):
        arrays |= {f"p{i}": dtype_of(pattern.fields[index].type), f"pn{i}": "uint8"}
    if together:
        arrays |= ARRAYS
    arrays["words"] = "int64"
    arrays |= {f"labels{i}": "int64" for i in range(len(shared.labelled))}
    arrays |= {f"hashes{i}": "int64" for i in range(len(shared.hashed))}
    arrays["o_src"] = "int64"
    for i, column in enumerate(pattern.returns):
        arrays |= {f"o_c{i}": dtype_of(column.type), f"o_n{i}": "uint8"}
    arrays |= {"o_time": "int64", "o_origin": "int64", "o_number": "int64", "alive": "uint8"}
    for layout in layouts:
        arrays |= {f"{layout.prefix}_{array.name}": array.dtype for array in layout.arrays()}
    return Program(
        name,
        MODE,
        tuple(pattern.fields[index] for index in needs.columns),
        pattern.returns,
        layouts,
        with_arrays(shared.writer.text(), arrays),
        tuple(shared.texts),
        tuple(shared.words),
        tuple(shared.labelled),
        tuple(shared.hashed),
        tuple(shared.outside),
        arrays=arrays,
        grows=any(layout.bound is None for layout in layouts),
        returned=1,
        given=tuple(CatalogRows(t.name, t.fields) for t in shared.layouts.values() if t.given),
    )
