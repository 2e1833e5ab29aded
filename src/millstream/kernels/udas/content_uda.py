"""Results of a UDA over windows, from their tuples or from the results of panes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.accumulator import Parts
from millstream.kernels.aggregates.content_aggregates import Elements
from millstream.kernels.core.buffers import frozen
from millstream.kernels.udas.compiled_machine import Returned
from millstream.kernels.udas.machine_protocol import machine_of
from millstream.kernels.udas.returned_rows import lists
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram


class ContentUda:
    """A summary with the list of rows that the UDA returned for each window."""

    def __init__(self, program: Program | PythonProgram) -> None:
        self._machine = machine_of(program)

    def __call__(self, elements: Elements) -> Parts:
        machine = self._machine
        if machine.words > 2 * len(elements.windows) + (1 << 16):
            machine = self._machine = machine_of(machine.program)
        names = [str(i) for i in range(len(machine.program.parameters))]
        table = pa.table([elements.array(i) for i in range(len(names))], names)
        machine.reserve(1, int(elements.lengths.max(initial=0)))
        ends = np.cumsum(elements.lengths)
        arguments = frozen(ends - elements.lengths), frozen(ends)
        parameters = machine.encoded(table, names)
        returned = machine.call("run", elements.count, arguments, parameters)
        return (lists(machine.program, elements.count, returned),)


class PaneRows:
    """A summary with the rows that a UDA returned for the panes of each window, as they are."""

    def __init__(self, program: Program | PythonProgram) -> None:
        self._program = program

    def __call__(self, elements: Elements) -> Parts:
        columns = tuple(elements.array(i) for i in range(len(elements.columns)))
        return (lists(self._program, elements.count, Returned(elements.windows, columns)),)
