"""PythonMachine: runs a Python UDA as `CompiledMachine` runs one in ESL, with all state of a shard.

Columns in, columns out, all state of a shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.codegen.udas.uda_compiler import ACTIVE, CONTENT, RANGE, ROWS, RUNNING, WHOLE_TABLE
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Codes
from millstream.kernels.python_udas.context import Tuple, Window
from millstream.kernels.python_udas.instance_state import InstanceStates, WindowRows
from millstream.kernels.python_udas.instances import Instance, Methods, instances
from millstream.kernels.python_udas.user_traceback import (
    PythonAggregateError,
    failed_call,
    pickled_state,
    shown_arguments,
)
from millstream.kernels.python_udas.value_conversion import ReturnConverter, to_arrow, to_python
from millstream.kernels.udas.compiled_machine import Keys, Returned
from millstream.program.python_program import PythonProgram


class PythonMachine:
    """One UDA in one mode, for as many instances as there are keys."""

    def __init__(self, program: PythonProgram) -> None:
        self.program = program
        names = ["alive", "latest", "seen"] if program.mode in (ROWS, RANGE, ACTIVE) else ["alive"]
        self.instances = {name: np.zeros(1, np.uint8 if name == "alive" else np.int64) for name in names}
        self._load()
        self.states = InstanceStates(self._made, self._dumps)
        self.kept = [WindowRows(self.states, program.parameters)] if len(names) > 1 else []

    def _load(self) -> None:
        subject, self._pickle_all = self.program.loaded()
        self._methods = Methods(self.program, subject)
        self._make = instances(self.program, self._methods)
        self._fitting = ReturnConverter(self.program.returns)

    def _made(self) -> Instance:
        return self._make()

    def _dumps(self, value: Any) -> bytes:
        return pickled_state(self.program.name, value, self._pickle_all)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "program": self.program,
            "instances": self.instances,
            "states": self.states.cached(),
            "kept": [table.cached() for table in self.kept],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.program, self.instances = state["program"], state["instances"]
        self._load()
        self.states = InstanceStates(self._made, self._dumps)
        self.states.recall(state["states"])
        self.kept = [WindowRows(self.states, self.program.parameters) for _ in state["kept"]]
        for table, cached in zip(self.kept, state["kept"], strict=True):
            table.recall(cached)

    @property
    def words(self) -> int:
        return 0

    def column(self, type_: pa.DataType) -> Any:
        """Return no codec: values are pickled, so there are no dictionaries for them."""
        raise AssertionError(f"values of {type_} are not encoded")

    def reserve(self, instances: int, tuples: int) -> None:
        for name, array in self.instances.items():
            if instances > len(array):
                grown = np.zeros(max(instances, 2 * len(array)), array.dtype)
                grown[: len(array)] = array
                self.instances[name] = grown
        self.states.reserve(instances)

    def encoded(self, table: pa.Table, names: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of tuples as Python values."""
        try:
            columns = [to_python(table[name]) for name in names]
        except (OverflowError, ValueError):
            reason = "an argument is a time that Python cannot hold: before the year 1 or after the year 9999"
            raise PythonAggregateError(self.program.name, reason) from None
        return {"tuples": list(zip(*columns, strict=True))}

    # ------------------------------------------------------------ running

    def call(
        self,
        function: str,
        count: int,
        arguments: Iterable[Any],
        parameters: Mapping[str, Any] | None = None,
        more: int = 0,
    ) -> Returned:
        """Call ``run`` or ``sweep`` of the mode, as for programs."""
        arrays = dict(parameters or {})
        run = _Run(self, self._methods, self._fitting, arrays.pop("tuples", []))
        try:
            if function == "sweep":
                run.sweep(count, *arguments)
            elif self.program.mode in (ROWS, RANGE):
                run.window(count, *arguments)
            elif self.program.mode == ACTIVE:
                run.active(count, arguments, arrays)
            elif self.program.mode in (CONTENT, WHOLE_TABLE):
                run.content(count, *arguments)
            else:
                run.base(count, *arguments)
            columns = tuple(
                to_arrow([row[i] for row in run.rows], column)
                for i, column in enumerate(self.program.returns)
            )
        except PythonAggregateError:
            raise
        except Exception as error:  # noqa: BLE001 (whatever the user's code raises)
            raise failed_call(self.program.name, error, run.about) from None
        times = np.array(run.times, np.int64) if self.program.mode == ACTIVE else NO_INTEGERS
        return Returned(np.array(run.sources, np.int64), columns, times)

    # ------------------------------------------------------------ state

    @property
    def rows(self) -> int:
        return int(self.instances["alive"].sum()) + sum(table.count for table in self.kept)

    def instance_table(self, codes: Codes, keys: Keys) -> pa.Table:
        """Return the state of instances: their progress, and their states, pickled."""
        content: dict[str, Any] = dict(keys(codes))
        for name, array in self.instances.items():
            content[name] = pa.array(array[codes])
        alive = self.instances["alive"]
        states = [self.states.saved(code) if alive[code] else None for code in codes.tolist()]
        content["state"] = pa.array(states, pa.large_binary())
        return pa.table(content)

    def restore_instances(self, stored: pa.Table, codes: Codes) -> None:
        for name, array in self.instances.items():
            array[codes] = np.asarray(stored[name])
        for code, state in zip(codes.tolist(), stored["state"].to_pylist(), strict=True):
            self.states.restore(code, state)


class _Run:
    """One call: the events of tuples, and the rows that are returned meanwhile."""

    def __init__(
        self, machine: PythonMachine, methods: Methods, converter: ReturnConverter, tuples: list[Tuple]
    ) -> None:
        self._states = machine.states
        self._alive = machine.instances["alive"]
        self._latest = machine.instances.get("latest", NO_INTEGERS)
        self._seen = machine.instances.get("seen", NO_INTEGERS)
        self._mode = machine.program.mode
        self._kept = machine.kept[0] if machine.kept else None
        self._methods, self._fitting = methods, converter
        self._tuples = tuples
        self._known: dict[int, tuple[Instance, Window]] = {}
        """Instances that have been touched."""

        self.sources: list[int] = []
        self.rows: list[Tuple] = []
        self.times: list[int] = []
        self.at: Tuple = ()
        self._window = 0

    @property
    def about(self) -> str:
        """Subject of the present call, for errors: a tuple, or a window and its last tuple."""
        if not self._window:
            return shown_arguments(self.at)
        tuples = "a tuple" if self._window == 1 else f"{self._window} tuples"
        return f"a window of {tuples}, the last with {shown_arguments(self.at)}"

    def _return(self, source: int, returned: Sequence[Any]) -> None:
        for row in returned:
            self.rows.append(self._fitting.row(row))
            self.sources.append(source)

    def base(self, count: int, codes: Codes) -> None:
        ends = self._mode == RUNNING
        for i, code in enumerate(codes.tolist()):
            self.at = self._tuples[i]
            if self._alive[code]:
                instance, window = self._instance(code)
            else:
                instance, window = self._known[code] = self._states.new(code)
                self._alive[code] = 1
            self._return(i, instance.enter(self.at, window))
            if ends:
                self._return(i, instance.result(window))

    def window(self, count: int, codes: Codes, places: Array, bounds: Array, reach: int, slide: int) -> None:
        by_rows = self._mode == ROWS
        seen, reach, slide = self._seen, int(reach), int(slide)
        for i, code in enumerate(codes.tolist()):
            values = self.at = self._tuples[i]
            if by_rows:
                place = int(seen[code])
                bound = place - reach
                seen[code] = place + 1
            else:
                place, bound = int(places[i]), int(bounds[i])
            if self._alive[code]:
                self._expire(code, bound)
            instance, window = self._enter(code, place, values)
            returned = instance.enter(values, window)
            # With SLIDE only the last tuple of a slot returns rows.
            if not by_rows or (place + 1) % slide == 0:
                self._return(i, returned)
                self._return(i, instance.result(window))
            self._let_go(window)

    def _instance(self, code: int) -> tuple[Instance, Window]:
        """Return an initialized instance, which may change now."""
        known = self._known.get(code)
        if known is None:
            known = self._known[code] = self._states.begun(code)
        return known

    def _enter(self, code: int, place: int, values: Tuple) -> tuple[Instance, Window]:
        if self._alive[code]:
            known = self._instance(code)
        else:
            known = self._known[code] = self._states.new(code)
            self._alive[code] = 1
        assert self._kept is not None
        self._kept.insert(code, place, values, known[1])
        self._latest[code] = place
        return known

    def _expire(self, code: int, bound: int) -> None:
        """Expire tuples before the bound; with the last tuple the instance is deleted."""
        instance, window = self._instance(code)
        content, comes = window.content, self.at
        while content:
            number = next(iter(content))
            place, values = content[number]
            if place >= bound:
                break
            self.at = values
            instance.leave(values, window)
            if number in content:
                window.remove(number)
        self.at = comes
        self._let_go(window)
        if self._latest[code] < bound:
            self._forget(code, window)

    def _let_go(self, window: Window) -> None:
        if window.gone:
            assert self._kept is not None
            self._kept.let_go(window)

    def _forget(self, code: int, window: Window) -> None:
        """Delete an instance whose tuples have all expired; those left in its window were never to expire."""
        for number in list(window.content):
            window.remove(number)
        self._let_go(window)
        self._alive[code] = 0
        del self._known[code]
        self._states.forget(code)

    def sweep(self, count: int, codes: Codes, bounds: Array) -> None:
        """Expire tuples that have become too old, though no tuple comes."""
        for code, bound in zip(codes.tolist(), bounds.tolist(), strict=True):
            if self._alive[code]:
                self._expire(code, bound)

    def active(self, count: int, given: Iterable[Any], queue: Mapping[str, Array]) -> None:
        """Process tuples and expirations in order of time, as the compiled loop does."""
        codes, places, leaving, upto, span = given
        when, owner, numbers = queue["q_when"], queue["q_code"], queue["q_id"]
        first, last = span.tolist()
        assert self._kept is not None
        for i in range(count + 1):
            until = int(places[i]) if i < count else int(upto)
            while first < last and when[first] < until:
                self._leave(int(owner[first]), int(numbers[first]), int(when[first]))
                first += 1
            if i == count:
                break
            code, place = int(codes[i]), int(places[i])
            self.at = self._tuples[i]
            number = self._kept.next_id
            instance, window = self._enter(code, place, self.at)
            when[last], owner[last], queue["q_row"][last], numbers[last] = leaving[i], code, 0, number
            last += 1
            self._latest[code] = number
            self._return(i, instance.enter(self.at, window))
            self._return(i, instance.result(window))
            self.times += [place] * (len(self.sources) - len(self.times))
            self._let_go(window)
        span[0], span[1] = first, last

    def _leave(self, code: int, number: int, now: int) -> None:
        instance, window = self._instance(code)
        # A tuple that the body has deleted does not leave once more.
        if number in window.content:
            self.at = window.content[number][1]
            returned = list(instance.leave(self.at, window))
            if number in window.content:
                window.remove(number)
            if len(window):
                returned += instance.result(window)
            self._return(-1 - number, returned)
            self.times += [now] * (len(self.sources) - len(self.times))
        self._let_go(window)
        if self._latest[code] == number:
            self._forget(code, window)

    def content(self, count: int, starts: Array, ends: Array) -> None:
        for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            content = self._tuples[start:end]
            if content:
                self._window, self.at = len(content), content[-1]
                self._return(i, self._methods.of_content(content, is_table=self._mode == WHOLE_TABLE))
