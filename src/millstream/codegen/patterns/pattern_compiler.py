"""Compiler of sequence patterns: one loop that offers each tuple to all open attempts.

By definition attempts are made one after the other, and a failed attempt is followed by one that starts a
tuple later. That goes back in the input, and needs all tuples since the start of the attempt. The program
reads each tuple once and stores none: at each tuple an attempt starts at once, beside the older ones, as if
those had failed. The open attempts of a partition are a list, oldest first, and a tuple is offered to one
after the other. The matches are the same:

- The tuples of an attempt determine it: it gives none back, so it fails or matches at the same tuple in
  either order.
- If the oldest attempt matches, all others started inside the match, and are dropped. If it fails, the next
  one is the oldest, and is as far as it would be after going back.
- A complete attempt waits, with its results, while an older one is open. All younger ones are dropped: they
  are inside it if it becomes a match, and inside an older match otherwise. Attempts that start after it treat
  it as a match, also in the rule about leading stars.
- An attempt with an evaluation error waits too. The search fails only if the attempt becomes the oldest;
  otherwise the definition does not evaluate the condition.

The state of an attempt has the columns that later conditions or the results read, of the first and the last
tuple of each element, and measures. The state of a partition has its last tuples, as far back as ``previous``
goes, and a mark for a run of the leading star.

The number of open attempts does not depend on the length of a star. A leading star is maximal on the left, so
no attempt starts inside a run. If two attempts are at one element with the same tuple, and later conditions
read no difference between them (a larger count is none for a lower bound), the younger one is dropped. An
attempt whose count exceeds an upper bound fails at once. The number can still grow with the tuples:
``(X, *Y, Z)`` with ``Z.v > X.v``, where every tuple of a long star can be an X. A budget limits the attempts
of a partition.

Inferences from conditions (OPS) have two uses. An attempt that starts with a tuple of an older one may
provably fail if that one does (``inference.ops_shift_next.barren``): it is not started. And a condition on a
tuple is evaluated once for all attempts, and not at all if its outcome follows from others
(``codegen.patterns.condition_cache``).
"""

from __future__ import annotations

from millstream.codegen.core.array_binding import with_arrays
from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.patterns.attempt_state import AttemptRequirements
from millstream.codegen.patterns.matcher_emitter import MatcherEmitter
from millstream.codegen.udas.body_emitter import ProgramContext
from millstream.ir.pattern import Pattern
from millstream.program.program import CatalogRows, Program, TableLayout, dtype_of

MODE = "pattern"
ATTEMPTS, PARTITIONS = "attempts", "partitions"


def compile_pattern(pattern: Pattern, *, ops: bool = True, counted: bool = False) -> Program:
    """Compile a pattern. The parameters of the program are the columns that it reads.

    Without ``ops`` it makes no inferences; matches are the same. With ``counted`` it counts evaluations of
    conditions.
    """
    name = ", ".join(f"{'*' if e.star else ''}{e.name}" for e in pattern.elements)
    shared, needs = ProgramContext(SourceWriter()), AttemptRequirements()
    while True:
        learnt = shared.learnt + needs.size
        MatcherEmitter(pattern, shared, needs, f"({name})", ops=ops, counted=counted).functions()
        if shared.learnt + needs.size == learnt:
            return _program(pattern, shared, needs, f"({name})")
        shared = shared.again()


def _program(pattern: Pattern, shared: ProgramContext, needs: AttemptRequirements, name: str) -> Program:
    attempts, partitions = (tuple(cells.fields.values()) for cells in (needs.attempt, needs.partition))
    layouts = (
        TableLayout(ATTEMPTS, needs.attempt.prefix, attempts, False, bound=0),
        TableLayout(PARTITIONS, needs.partition.prefix, partitions, True, bound=0),
        *shared.layouts.values(),
    )
    arrays: dict[str, str] = {}
    for i, index in enumerate(needs.columns):
        arrays |= {f"p{i}": dtype_of(pattern.fields[index].type), f"pn{i}": "uint8"}
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
