"""Aggregates in bodies that are computed from all values at once, as those of windows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Aggregation, Body
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram

WHOLE_ROW = -1
"""Name of the column that stands for all columns of a row, as a struct."""


@dataclass(frozen=True)
class Direction:
    """Sort order of the values of an argument."""

    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class ContentAggregate(Aggregation):
    """An aggregate by its name in kernels, or (``source``) a UDA.

    Of the rows that a UDA returns for the last value, the last one counts.
    """

    parameters: tuple[Any, ...] = ()
    """Constant arguments."""

    ignore_nulls: bool = False
    order: tuple[Direction, ...] = ()
    """WITHIN GROUP: sort order of values (or, for a listagg, of the last arguments)."""

    source: Body | PythonBody | Program | PythonProgram | None = None
    """The UDA: first as analyzed, then as a program."""
