"""Programs of the user's aggregates that are called from a search, which is not compiled then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.ir.pattern import Measure, Pattern
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.program.content_aggregate import ContentAggregate
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram

ProgramOf = Callable[[Body | PythonBody], Program | PythonProgram]


def with_programs(pattern: Pattern, program_of: ProgramOf) -> Pattern:
    """Return the pattern with programs in place of the bodies of its aggregates."""

    def made(measure: Measure) -> Measure:
        content = measure.aggregation
        if not isinstance(content, ContentAggregate) or not isinstance(content.source, Body | PythonBody):
            return measure
        return replace(measure, aggregation=replace(content, source=program_of(content.source)))

    return replace(pattern, measures=tuple(map(made, pattern.measures)))
