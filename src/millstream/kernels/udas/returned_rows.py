"""Tuples with the rows that UDAs returned for them, and failures that name their tuple."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.core.buffers import Integers, first_numbers
from millstream.kernels.core.kernel import Change, Tuples
from millstream.kernels.core.timestamp_text import shown
from millstream.kernels.result_types import rows_type
from millstream.kernels.specs import UdaSpec
from millstream.kernels.udas.compiled_machine import Returned, UserAggregateError
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram


def expanded(tuples: Tuples, returned: Sequence[Returned], specs: Sequence[UdaSpec]) -> Tuples:
    """Repeat each tuple for every row that was returned for it; drop it if some UDA returned nothing.

    Where several UDAs return several rows for a tuple, each is combined with each of the others.
    """
    sources, rows = _together(len(tuples), returned)
    is_same = len(returned) == 1 and returned[0].is_one_each and len(sources) == len(tuples)
    is_same = is_same or np.array_equal(sources, first_numbers(len(tuples)))
    out = tuples if is_same else tuples.take(sources)
    columns = out.columns
    for spec, own, chosen in zip(specs, returned, rows, strict=True):
        for name, column in zip(spec.results, own.columns, strict=True):
            columns = columns.append_column(name, column.take(chosen) if len(returned) > 1 else column)
    return Tuples(columns, out.time, out.origin, out.number)


def _together(count: int, returned: Sequence[Returned]) -> tuple[Integers, list[Integers]]:
    if len(returned) == 1:
        sources = np.asarray(returned[0].sources, np.int64)
        return sources, [first_numbers(len(sources))]
    counts = np.stack([np.bincount(own.sources, minlength=count) for own in returned])
    each = counts.prod(axis=0)
    sources = np.repeat(np.arange(count), each)
    within = np.arange(len(sources)) - np.repeat(np.cumsum(each) - each, each)
    rows = []
    for i, number in enumerate(counts):
        firsts = np.cumsum(number) - number
        after = counts[i + 1 :].prod(axis=0)[sources]
        rows.append(firsts[sources] + within // after % number[sources])
    return sources, rows


def counted(tuples: Tuples, condition: str | None) -> tuple[Tuples, Integers | None]:
    """Return the tuples that a UDA sees, and (unless it sees all) their indices among the others."""
    if condition is None:
        return tuples, None
    rows = np.flatnonzero(pc.fill_null(tuples.columns[condition], False).to_numpy())
    return tuples.take(rows), rows


def listed(tuples: Tuples, returned: Sequence[Returned], specs: Sequence[UdaSpec]) -> Tuples:
    """Return each tuple with a list of the rows that each UDA returned for it."""
    columns = tuples.columns
    for spec, own in zip(specs, returned, strict=True):
        columns = columns.append_column(spec.whole, lists(spec.program, len(tuples), own))
    return Tuples(columns, tuples.time, tuples.origin, tuples.number)


def lists(program: Program | PythonProgram, count: int, returned: Returned) -> pa.Array:
    lengths = np.bincount(returned.sources, minlength=count)
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = np.cumsum(lengths)
    type_ = rows_type(program)
    rows = pa.StructArray.from_arrays(list(returned.columns), fields=list(type_.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets), rows, type=type_)


def located(failure: UserAggregateError, tuples: Tuples, arguments: Sequence[str]) -> UserAggregateError:
    """Return a failure that names the arguments of the tuple at which it happened."""
    if not 0 <= failure.row < len(tuples):
        return failure
    values = ", ".join(shown(tuples.columns[name][failure.row]) for name in arguments)
    return UserAggregateError(
        failure.aggregate, failure.statement, f"{failure.reason}, for the arguments ({values}),", failure.row
    )


def merged(parts: Iterable[Change]) -> Change:
    """Merge the changes of several parts of a kernel."""
    changes = list(parts)
    return Change(
        {name: table for change in changes for name, table in change.added.items()},
        tuple(name for change in changes for name in change.dropped),
        {name: value for change in changes for name, value in change.meta.items()},
    )


def converted(name: str, column: pa.Array, type_: pa.DataType, sources: Integers) -> pa.Array:
    """Return results of panes as the combining version takes them."""
    try:
        return column.cast(type_, safe=not pa.types.is_floating(type_))
    except pa.ArrowInvalid:
        reason = f"the result of a pane, which is {column.type}, does not fit into {type_}"
        raise UserAggregateError(name, "", reason, int(sources[0])) from None
