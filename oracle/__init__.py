"""The oracle: the definitions of the semantics, slow and plain; every engine result is tested against it."""

from oracle.errors import DivisionByZero, Failure, NotConvertible, NotInterpreted, Overflow
from oracle.inputs import Arrivals, Heartbeat, Input, Row
from oracle.interpreter import Answer, ResultRow, run
from oracle.scripts import answer, answers

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
