"""The oracle: the definitions of the semantics, slow and plain; every engine result is tested against it."""

from millstream.reference.errors import DivisionByZero, Failure, NotConvertible, NotInterpreted, Overflow
from millstream.reference.inputs import Arrivals, Heartbeat, Input, Row
from millstream.reference.interpreter import Answer, ResultRow, run
from millstream.reference.scripts import answer, answers

__all__ = [
    "Answer",
    "Arrivals",
    "DivisionByZero",
    "Failure",
    "Heartbeat",
    "Input",
    "NotConvertible",
    "NotInterpreted",
    "Overflow",
    "ResultRow",
    "Row",
    "answer",
    "answers",
    "run",
]
