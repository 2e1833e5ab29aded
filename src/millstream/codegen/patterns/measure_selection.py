"""Selection of the emitter of a measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.codegen.patterns.buffered_measures import MovingMeasure, WholeMeasure
from millstream.codegen.patterns.measure_emitters import MeasureEmitter, ScalarMeasure
from millstream.codegen.patterns.uda_measures import UserMeasure, WindowMeasure
from millstream.codegen.udas.body_emitter import ProgramContext
from millstream.ir.pattern import Measure
from millstream.program.content_aggregate import ContentAggregate

if TYPE_CHECKING:
    from millstream.codegen.patterns.pattern_scope import PatternScope


def measure_code(number: int, measure: Measure, code: PatternScope, shared: ProgramContext) -> MeasureEmitter:
    aggregation = measure.aggregation
    if isinstance(aggregation, ContentAggregate):
        made = WholeMeasure if measure.final else MovingMeasure
        return made(number, measure, code, shared)
    if measure.rows is not None and aggregation.user is not None and aggregation.user.window:
        return WindowMeasure(number, measure, code, shared)
    if measure.rows is not None:
        return MovingMeasure(number, measure, code, shared)
    if aggregation.user is not None:
        return UserMeasure(number, measure, code, shared)
    return ScalarMeasure(number, measure, code)
