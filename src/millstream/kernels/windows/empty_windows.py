"""Reports of windows without tuples, between the first window with tuples and the watermark (EMIT EMPTY)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.catalog.builtin_aggregates import accumulator_row
from millstream.kernels.core.buffers import Integers
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.kernel_errors import GapError
from millstream.kernels.core.time_order import LEAST, MOST, shifted
from millstream.kernels.specs import USER, AggregateSpec, WindowSpec
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.window_assigner import WindowAssigner

_MANY = 10_000_000
"""Limit of empty windows in a row: a longer gap is more likely a mistake in a timestamp."""


class EmptyWindows:
    """Fills the gaps between reports of the only key; windows are numbered by their visits."""

    def __init__(self, spec: WindowSpec, placing: WindowAssigner) -> None:
        self._spec = spec
        self._placing = placing
        self._last: int | None = None
        """Visit of the last report, None before the first."""

        self._reached: int | None = None
        """Last visit that was due before the end of the input."""

    def among(self, found: Tuples, visits: Integers, due: DueWindows, number: int) -> Tuples:
        """Return reports with those of empty windows among them, in order, and numbered from ``number``."""
        last = int(due.last[0])
        if LEAST < last < MOST - 1:
            self._reached = last
        ends = [visit for visit in (self._last, self._reached, *visits[-1:].tolist()) if visit is not None]
        begin = int(visits[0]) if self._last is None and len(visits) else self._last
        if begin is None:
            return found
        self._last = max(ends)
        if self._last - begin - len(visits) > _MANY:
            raise GapError(self._last - begin, _MANY)
        missing = np.setdiff1d(np.arange(begin + 1, self._last + 1), visits)
        return found if not len(missing) else self._merged(found, visits, missing, number)

    def _merged(self, found: Tuples, visits: Integers, missing: Integers, number: int) -> Tuples:
        edges = self._placing.edges(missing, np.zeros(len(missing), np.int32))
        columns: dict[str, Any] = edges.columns(self._spec.edge_type, self._spec.wid_type)
        for spec in self._spec.aggregates:
            columns[spec.result] = pa.array([_nothing(spec)] * len(missing), spec.type)
        table = pa.concat_tables([found.columns, pa.table(columns).select(found.columns.column_names)])
        order = np.argsort(np.concatenate([visits, missing]), kind="stable")
        stamps = shifted(edges.stamp, self._spec.stamp)
        return Tuples(
            table.take(pa.array(order)),
            np.concatenate([found.time, stamps])[order],
            np.zeros(len(order), np.int32),
            np.arange(number, number + len(order)),
        )

    @property
    def meta(self) -> Mapping[str, Any]:
        return {"last report": self._last, "last due": self._reached}

    def restore(self, meta: Mapping[str, Any]) -> None:
        self._last, self._reached = meta.get("last report"), meta.get("last due")


def _nothing(spec: AggregateSpec) -> Any:
    """Return the result over no tuples; a user-defined aggregate returns a row of NULLs."""
    if spec.function == USER:
        return [{field.name: None for field in spec.type.value_type}]
    return accumulator_row(spec.function).empty
