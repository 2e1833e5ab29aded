"""Types that only Spark knows: it is asked for those of all columns of a plan, which is then made again."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.errors import NotExecutableError
from millstream.physical.node import PhysicalNode
from millstream.physical.nodes import Output, Stage
from millstream.physical.query_plan import QueryPlan
from millstream.physical.unknown_types import Question
from millstream.spark.lowering.translator import Translation
from millstream.spark.session.spark_types import from_spark_type
from millstream.types import Type


def bound_plan(plan: QueryPlan, to: Translation) -> Output:
    """Return a plan all of whose types are known; Spark is asked once for those of each level of stages."""
    while plan.unknown.questions:
        # What comes from a stage with unknown columns is asked for when these are known.
        questions = [one for one in plan.unknown.questions if not _waits(one.node)]
        told = dict(zip((one.text for one in questions), _ask(questions, to), strict=True))
        if not told or not all(type_.is_known for type_ in told.values()):
            raise NotExecutableError("Spark does not know the types of all columns that are aggregated")
        plan.bind({**plan.unknown.known, **told})
    return plan.physical


def _waits(node: PhysicalNode) -> bool:
    stages = (below for below in node.walk() if isinstance(below, Stage))
    return any(not column.type.is_known for stage in stages for column in stage.output)


def _ask(questions: Sequence[Question], to: Translation) -> list[Type]:
    """Ask Spark for types, in one SELECT for each node."""
    answers: dict[int, Type] = {}
    groups: dict[tuple[int, bool], list[int]] = {}
    for number, one in enumerate(questions):
        groups.setdefault((id(one.node), one.aggregate), []).append(number)
    for numbers in groups.values():
        first = questions[numbers[0]]
        columns = [F.expr(questions[n].text).alias(f"t{n}") for n in numbers]
        frame = to.frame(first.node)
        schema = (frame.agg(*columns) if first.aggregate else frame.select(*columns)).schema
        for number, field in zip(numbers, schema.fields, strict=True):
            answers[number] = from_spark_type(field.dataType)
    return [answers[number] for number in range(len(questions))]
