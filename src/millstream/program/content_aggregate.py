"""Aggregates that are not compiled: they are computed from all values at once, as those of windows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Aggregation, Body
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram

WHOLE_ROW = -1
"""The column that stands for all columns of a row, as a struct."""


@dataclass(frozen=True)
class Direction:
    """How the values of an argument are sorted."""

    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class ContentAggregate(Aggregation):
    """An aggregate by the name that kernels have for it, or (``source``) one of the user's.

    Of what the user's returns for the last value, the last row counts.
    """

    parameters: tuple[Any, ...] = ()
    """Arguments that are constants."""

    ignore_nulls: bool = False
    order: tuple[Direction, ...] = ()
    """WITHIN GROUP: how values (or, of a listagg, the last arguments) are sorted."""

    source: Body | PythonBody | Program | PythonProgram | None = None
    """The user's: as it was checked, and then what runs it."""
