"""States of the instances of a Python UDA, and the tuples in their windows.

An instance is unpickled when it is needed and pickled again when it may have changed, so that a micro-batch
costs only the instances that it touches.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Codes, Integers
from millstream.kernels.python_udas.context import Tuple, Window
from millstream.kernels.python_udas.instances import Instance
from millstream.kernels.python_udas.value_conversion import to_arrow, to_python
from millstream.kernels.udas.local_tables import ID, PLACE
from millstream.types import Field

Known = tuple[Instance, Window]


class InstanceStates:
    """Instances by their numbers: as objects, or pickled."""

    def __init__(self, make: Callable[[], Instance], dumps: Callable[[Any], bytes]) -> None:
        self._make, self._dumps = make, dumps
        self._known: dict[int, Known] = {}
        self._pickled: dict[int, bytes] = {}
        """Instances with their windows, pickled as they are now."""

        self._written: dict[int, bytes] = {}
        """Persisted states of instances that have not been needed since."""

        self._windows: dict[int, Window] = {}
        """Windows of those instances."""

    def reserve(self, instances: int) -> None:
        """Do nothing: there are no arrays to make room in."""

    def new(self, code: int) -> Known:
        known = self._known[code] = self._make(), Window()
        self._pickled.pop(code, None)
        return known

    def begun(self, code: int) -> Known:
        """Return an instance that may change now."""
        known = self._found(code)
        self._pickled.pop(code, None)
        return known

    def _found(self, code: int) -> Known:
        known = self._known.get(code)
        if known is not None:
            return known
        instance = self._make()
        if code in self._pickled:
            cached, content = pickle.loads(self._pickled[code])
            window = Window(content)
            instance.recall(cached, window)
        else:
            window = self._windows.pop(code)
            instance.restore(pickle.loads(self._written.pop(code)), window)
        self._known[code] = instance, window
        return instance, window

    def forget(self, code: int) -> None:
        self._known.pop(code, None)
        self._pickled.pop(code, None)

    def saved(self, code: int) -> bytes:
        """Return the state of an instance to persist."""
        written = self._written.get(code)
        return self._dumps(self._found(code)[0].saved()) if written is None else written

    def restore(self, code: int, state: bytes) -> None:
        self._written[code] = state
        self._windows.setdefault(code, Window())

    def window(self, code: int) -> Window:
        """Return the window of an instance, which only ``restore`` may change."""
        return self._windows[code] if code in self._windows else self._found(code)[1]

    @property
    def codes(self) -> list[int]:
        return sorted({*self._known, *self._pickled, *self._written})

    def cached(self) -> tuple[dict[int, bytes], dict[int, bytes], dict[int, Any]]:
        for code, (instance, window) in self._known.items():
            if code not in self._pickled:
                self._pickled[code] = self._dumps((instance.cached(), window.content))
        windows = {code: window.content for code, window in self._windows.items()}
        return self._pickled, self._written, windows

    def recall(self, cached: tuple[dict[int, bytes], dict[int, bytes], dict[int, Any]]) -> None:
        self._pickled, self._written, windows = cached
        self._windows = {code: Window(content) for code, content in windows.items()}


Row = tuple[int, int, int, Tuple]
"""Number, instance, place and values of a tuple in a window."""


class WindowRows:
    """Tuples in all windows, persisted like the local tables of ESL aggregates."""

    def __init__(self, states: InstanceStates, parameters: Sequence[Field]) -> None:
        self._states, self._parameters = states, parameters
        self.next_id = 0
        self.count = 0
        self._added: dict[int, Row] = {}
        self._gone: list[int] = []

    def insert(self, code: int, place: int, values: Tuple, window: Window) -> None:
        window.insert(self.next_id, place, values)
        self._added[self.next_id] = self.next_id, code, place, values
        self.next_id += 1
        self.count += 1

    def let_go(self, window: Window) -> None:
        """Note the tuples that have left a window."""
        for number in window.gone:
            if self._added.pop(number, None) is None:
                self._gone.append(number)
        self.count -= len(window.gone)
        window.gone.clear()

    def cached(self) -> Any:
        return self.next_id, self.count, self._added, self._gone

    def recall(self, cached: Any) -> None:
        self.next_id, self.count, self._added, self._gone = cached

    # ------------------------------------------------------------ as a table

    @property
    def is_window(self) -> bool:
        return True

    def changed(self) -> tuple[list[Row], Integers]:
        """Return the rows that are new since the last call, and the numbers of those that are gone."""
        added, gone = list(self._added.values()), np.array(self._gone, np.int64)
        self._added, self._gone = {}, []
        return added, gone

    @property
    def live(self) -> list[Row]:
        rows = [
            (number, code, place, values)
            for code in self._states.codes
            for number, (place, values) in self._states.window(code).content.items()
        ]
        return sorted(rows, key=lambda row: row[0])

    def places(self) -> tuple[Integers, Codes]:
        """Return the places of the tuples, and their instances."""
        rows = self.live
        return np.array([row[2] for row in rows], np.int64), np.array([row[1] for row in rows], np.int32)

    def rows_of(self, numbers: Integers) -> Codes:
        """Return an arbitrary row number for each of these tuples, -1 if it is gone."""
        there = np.array([row[0] for row in self.live], np.int64)
        return np.where(np.isin(numbers, there), 0, -1).astype(np.int32)

    def table(
        self, rows: Sequence[Row], key: Callable[[Codes], Mapping[str, pa.Array]], columns: Any
    ) -> pa.Table:
        content: dict[str, Any] = {ID: pa.array([row[0] for row in rows], pa.int64())}
        content |= key(np.array([row[1] for row in rows], np.int32))
        content[PLACE] = pa.array([row[2] for row in rows], pa.int64())
        for i, parameter in enumerate(self._parameters):
            content[f"c{i}"] = to_arrow([row[3][i] for row in rows], parameter)
        return pa.table(content)

    def restore(self, table: pa.Table, owners: Codes, instances: int, columns: Any) -> None:
        numbers, places = table[ID].to_pylist(), table[PLACE].to_pylist()
        values = [to_python(table[f"c{i}"]) for i in range(len(self._parameters))]
        for number, code, place, row in zip(
            numbers, owners.tolist(), places, zip(*values, strict=True), strict=True
        ):
            self._states.window(code).insert(number, place, row)
        self.count = len(numbers)
        self.next_id = numbers[-1] + 1 if numbers else 0
