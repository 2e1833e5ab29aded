"""The oracle: slow, plain definitions of the semantics, against which every engine result is tested."""

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
