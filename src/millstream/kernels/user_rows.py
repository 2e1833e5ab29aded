"""Tuples with what aggregates of the user's returned for them, and failures that name their tuple."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from millstream.kernels.arrays import Integers
from millstream.kernels.base import Tuples
from millstream.kernels.specs import UserSpec
from millstream.kernels.user_machine import Returned, UserAggregateError


def expanded(tuples: Tuples, returned: Sequence[Returned], specs: Sequence[UserSpec]) -> Tuples:
    """Each tuple once for every row that was returned for it; none if some aggregate returned nothing.

    Only one of several aggregates may return more than one row for a tuple: the others' row stands beside
    each of them.
    """
    sources, rows = _together(len(tuples), returned, specs)
    is_same = len(sources) == len(tuples) and bool((sources == np.arange(len(tuples))).all())
    out = tuples if is_same else tuples.take(sources)
    columns = out.columns
    for spec, own, chosen in zip(specs, returned, rows, strict=True):
        for name, column in zip(spec.results, own.columns, strict=True):
            columns = columns.append_column(name, column.take(chosen) if len(returned) > 1 else column)
    return Tuples(columns, out.time, out.origin, out.number)


def _together(
    count: int, returned: Sequence[Returned], specs: Sequence[UserSpec]
) -> tuple[Integers, list[Integers]]:
    if len(returned) == 1:
        sources = np.asarray(returned[0].sources, np.int64)
        return sources, [np.arange(len(sources))]
    counts = np.stack([np.bincount(own.sources, minlength=count) for own in returned])
    several = (counts > 1).sum(axis=0)
    if (several > 1).any():
        row = int(np.argmax(several > 1))
        names = " and ".join(
            spec.program.name for spec, n in zip(specs, counts[:, row], strict=True) if n > 1
        )
        raise UserAggregateError(names, "", "both return several rows for one tuple", row)
    each = np.where((counts > 0).all(axis=0), counts.max(axis=0), 0)
    sources = np.repeat(np.arange(count), each)
    within = np.arange(len(sources)) - np.repeat(np.cumsum(each) - each, each)
    rows = []
    for number in counts:
        firsts = np.cumsum(number) - number
        rows.append(firsts[sources] + np.where(number[sources] > 1, within, 0))
    return sources, rows


def counted(tuples: Tuples, condition: str | None) -> tuple[Tuples, Integers | None]:
    """The tuples that an aggregate sees, and (unless it sees all) where they stand among the others."""
    if condition is None:
        return tuples, None
    rows = np.flatnonzero(pc.fill_null(tuples.columns[condition], False).to_numpy())
    return tuples.take(rows), rows


def located(failure: UserAggregateError, tuples: Tuples, arguments: Sequence[str]) -> UserAggregateError:
    """A failure that names the arguments of the tuple at which it happened."""
    if not 0 <= failure.row < len(tuples):
        return failure
    values = [tuples.columns[name][failure.row].as_py() for name in arguments]
    shown = ", ".join("NULL" if value is None else str(value) for value in values)
    return UserAggregateError(
        failure.aggregate, failure.statement, f"{failure.reason}, for the arguments ({shown}),", failure.row
    )
