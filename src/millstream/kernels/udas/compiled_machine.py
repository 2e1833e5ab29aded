"""CompiledMachine: runs the program of a UDA on arrays, with the state of all instances of a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.ir.value_kinds import DOUBLE, kind_of
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Codes, Integers, first_numbers, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.udas.local_tables import ID, LocalTableState, read, written
from millstream.kernels.udas.string_dictionary import StringDictionary
from millstream.program.failures import MESSAGES, OutsideError, StoppedError
from millstream.program.interpreted_functions import ValueConverter, interpreted_functions
from millstream.program.jit_loader import functions
from millstream.program.program import Program, dtype_of
from millstream.program.program_arguments import ProgramArguments
from millstream.types import Field

Keys = Callable[[Codes], Mapping[str, pa.Array]]
"""Key columns of instances."""


class UserAggregateError(Exception):
    """Failure of a UDA on a tuple; ``row`` is its number in the batch.

    ``code`` are the numbers of the failure and of the statement.
    """

    code = (0, 0)

    def __init__(self, aggregate: str, statement: str, reason: str, row: int) -> None:
        super().__init__(aggregate, statement, reason, row)
        self.aggregate, self.statement, self.reason, self.row = aggregate, statement, reason, row

    def __str__(self) -> str:
        where = f" in {self.statement}" if self.statement else ""
        return f"aggregate '{self.aggregate}': {self.reason}{where}"


@dataclass(frozen=True)
class Returned:
    """Rows returned by a program: the tuple of each, their columns, and their times, if it sets them."""

    sources: Integers
    columns: tuple[pa.Array, ...]
    times: Integers = field(default_factory=lambda: NO_INTEGERS)
    is_one_each: bool = False
    """True if there is known to be one row for each tuple."""

    def __len__(self) -> int:
        return len(self.sources)


class CompiledMachine:
    """One UDA in one mode, for as many instances as there are keys.

    Machines that take the same tuples may share the dictionaries of ``words``.
    """

    def __init__(self, program: Program, words: StringDictionary | None = None) -> None:
        self.program = program
        self._known_words = StringDictionary() if words is None else words
        self.tables = [LocalTableState(layout) for layout in program.tables]
        self.instances = {
            name: np.zeros(1, dtype)
            for name, dtype in (("alive", np.uint8), ("latest", np.int64), ("seen", np.int64))
            if name in program.arrays
        }
        self._functions = functions(program, self._outside())
        self._words = NO_INTEGERS
        self._scratch: dict[str, Array] = {}
        """Arrays for returned rows; those that were not passed on are reused in the next call."""
        self._count = 1
        self._read_given()
        self._given_words = len(self._known_words)

    def _read_given(self) -> None:
        """Read tables of the catalog, as those of a single instance, the first."""
        states = [table for table in self.tables if table.layout.given]
        for state, given in zip(states, self.program.given, strict=True):
            types = [arrow_type(column.type) for column in given.fields]
            names = [f"c{i}" for i in range(len(types))]
            rows = given.rows
            if rows is None:  # the program is only to be compiled
                rows = pa.schema(list(zip(names, types, strict=True))).empty_table()
            numbered = rows.append_column(ID, pa.array(np.arange(rows.num_rows)))
            state.restore(numbered, np.zeros(rows.num_rows, np.int32), 1, self.column)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_functions", "_scratch")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._scratch = {}
        self._functions = functions(self.program, self._outside())

    def _outside(self) -> dict[str, Callable[..., Any]]:
        """Return the interpreted functions that the program calls."""
        calls = self.program.outside
        known = interpreted_functions(calls, ValueConverter(self._known_words.dictionary))
        if all(call.content is None for call in calls):
            return known
        # content_calls runs programs, so it imports this module.
        from millstream.kernels.udas.content_calls import content_functions

        return known | content_functions(calls, self.column)

    def column(self, type_: pa.DataType) -> Column:
        """Return the codec for values of a type."""
        return self._known_words.column(type_)

    @property
    def words(self) -> int:
        """Number of words added by tuples."""
        return max(len(self._known_words) - self._given_words, 0)

    # ------------------------------------------------------------ running

    def reserve(self, instances: int, tuples: int) -> None:
        self._count = max(self._count, instances)
        for name, array in self.instances.items():
            if instances > len(array):
                grown = np.zeros(max(instances, 2 * len(array)), array.dtype)
                grown[: len(array)] = array
                self.instances[name] = grown
        for table in self.tables:
            if table.layout.given:
                continue
            bound = table.layout.bound
            table.reserve(16 if bound is None else bound * tuples, 1 if table.layout.passing else instances)

    def encoded(self, table: pa.Table, names: Sequence[str]) -> dict[str, Array]:
        """Return the arguments of tuples in the form that programs take."""
        arrays = {}
        for i, (name, parameter) in enumerate(zip(names, self.program.parameters, strict=True)):
            values, nulls = read(table[name], parameter, self.column)
            arrays[f"p{i}"], arrays[f"pn{i}"] = frozen(values), frozen(nulls)
        return arrays

    def call(
        self,
        function: str,
        count: int,
        arguments: Iterable[Any],
        parameters: Mapping[str, Array] | None = None,
        more: int = 0,
    ) -> Returned:
        """Call a function of the program on so many tuples (or instances, or windows).

        ``more`` is the number of other events in the call that can return rows.
        """
        returned, failure = self.tried(function, count, arguments, parameters, more)
        if failure is not None:
            raise failure
        return returned

    def tried(
        self,
        function: str,
        count: int,
        arguments: Iterable[Any],
        parameters: Mapping[str, Array] | None = None,
        more: int = 0,
    ) -> tuple[Returned, UserAggregateError | None]:
        """Call a function; return the rows before a failure, and the failure. Interpreted functions raise."""
        outputs = self._outputs(count + more)
        given = self._arrays({**(parameters or self.nothing()), **outputs})
        handed = ProgramArguments(
            self.program, given, len(outputs["o_src"]), lambda name: self._larger(name, outputs)
        )
        fail = np.zeros(3, np.int64)
        try:
            returned = self._functions[function](count, *arguments, fail, handed)
        except OutsideError as failure:
            raise self._failure(str(failure), fail) from None
        except StoppedError:
            if handed.problem is not None:
                raise handed.problem from None
            raise self._failure(MESSAGES[int(fail[0])], fail) from None
        failed = self._failure(MESSAGES[int(fail[0])], fail) if fail[0] else None
        return self._returned(outputs, count, returned), failed

    def _returned(self, outputs: dict[str, Array], count: int, returned: int) -> Returned:
        """Return the rows returned for so many tuples."""
        columns = []
        for i, column in enumerate(self.program.returns):
            values = outputs[f"o_c{i}"]
            own = values[:returned] if 2 * returned >= len(values) else values[:returned].copy()
            columns.append(written(own, outputs[f"o_n{i}"][:returned], column, self.column))
        times = outputs["o_time"][:returned].copy() if "o_time" in outputs else NO_INTEGERS
        sources, every = outputs["o_src"][:returned], first_numbers(count)
        is_one_each = returned == count and bool((sources == every).all())
        for name, array in outputs.items():
            if not name.startswith("o_c") and len(array) > len(self._scratch.get(name, ())):
                self._scratch[name] = array
        return Returned(every if is_one_each else sources.copy(), tuple(columns), times, is_one_each)

    def _failure(self, reason: str, fail: Integers) -> UserAggregateError:
        failed, statement, row = fail.tolist()
        failure = UserAggregateError(self.program.name, self.program.texts[statement], reason, row)
        failure.code = failed, statement
        return failure

    def nothing(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        for i, parameter in enumerate(self.program.parameters):
            arrays[f"p{i}"] = frozen(np.zeros(0, dtype_of(parameter.type)))
            arrays[f"pn{i}"] = frozen(np.zeros(0, np.uint8))
        return arrays

    def _outputs(self, count: int) -> dict[str, Array]:
        bound = self.program.returned
        size = 16 + ((count + 1) * bound if bound is not None else 2 * count)
        outputs = {"o_src": self._again("o_src", size, "int64")}
        if "o_time" in self.program.arrays:
            outputs["o_time"] = self._again("o_time", size, "int64")
        for i, column in enumerate(self.program.returns):
            outputs[f"o_c{i}"] = np.empty(size, dtype_of(column.type))
            outputs[f"o_n{i}"] = self._again(f"o_n{i}", size, "uint8")
        return outputs

    def _again(self, name: str, size: int, dtype: str) -> Array:
        """Return an array of that size, if possible the one of the call before."""
        before = self._scratch.get(name)
        return before[:size] if before is not None and len(before) >= size else np.empty(size, dtype)

    def _arrays(self, given: Mapping[str, Array]) -> dict[str, Array]:
        if len(self._words) < len(self.program.words):
            self._words = np.array(
                [self._word(value, type_) for value, type_ in self.program.words], np.int64
            )
        known: dict[str, Any] = {**given, **self.instances, "words": frozen(self._words)}
        for i, type_ in enumerate(self.program.labelled):
            known[f"labels{i}"] = self._known_words.known(type_).labels(self.program.is_compiled)
        for i, (function, type_) in enumerate(self.program.hashed):
            known[f"hashes{i}"] = self._known_words.known(type_).hashes(function, self.program.is_compiled)
        for table in self.tables:
            known |= table.named()
        return known

    def _word(self, value: object, type_: Any) -> int:
        array = pa.array([value], arrow_type(type_))
        return int(self.column(array.type).encode(array)[0][0])

    def _larger(self, name: str, outputs: dict[str, Array]) -> tuple[Mapping[str, Array], int]:
        """Enlarge full arrays; return the new ones, and the number of rows that can be returned then."""
        if name not in outputs:
            table = next(t for t in self.tables if name.startswith(f"{t.layout.prefix}_"))
            table.reserve(table.size, 0)
            return table.named(), len(outputs["o_src"])
        for own, array in outputs.items():
            outputs[own] = np.empty(2 * len(array), array.dtype)
            outputs[own][: len(array)] = array
        return outputs, len(outputs["o_src"])

    # ------------------------------------------------------------ state

    @property
    def rows(self) -> int:
        alive = int(self.instances["alive"].sum()) if "alive" in self.instances else 0
        return alive + sum(table.count for table in self.kept)

    @property
    def kept(self) -> list[LocalTableState]:
        """Tables whose rows are persisted one by one."""
        layouts = ((table, table.layout) for table in self.tables)
        return [table for table, how in layouts if not (how.single or how.passing or how.given)]

    def instance_table(self, codes: Codes, keys: Keys) -> pa.Table:
        """Return the state of instances: their progress, and the tables of at most one row."""
        content: dict[str, Any] = dict(keys(codes))
        for name, array in self.instances.items():
            content[name] = pa.array(array[codes])
        for table in self.tables:
            if table.layout.single and not table.layout.passing:
                prefix = table.layout.prefix
                content[f"{prefix}_rows"] = pa.array(table["rows"][codes])
                for i, column in enumerate(table.layout.fields):
                    # A row that is not there has no values, whatever its place in memory has.
                    values, nulls = table[f"c{i}"][codes], table.nulls(i)[codes] | (table["rows"][codes] == 0)
                    content[f"{prefix}_c{i}"] = written(values, nulls, column, self.column)
            elif table.layout.queue:
                content[f"{table.layout.prefix}_first"] = pa.array(table.firsts()[codes])
        return pa.table(content)

    def restore_instances(self, stored: pa.Table, codes: Codes) -> None:
        for name, array in self.instances.items():
            array[codes] = np.asarray(stored[name])
        for table in self.tables:
            if table.layout.single and not table.layout.passing:
                prefix = table.layout.prefix
                table["rows"][codes] = np.asarray(stored[f"{prefix}_rows"])
                for i in range(len(table.layout.fields)):
                    table.put(i, codes, stored[f"{prefix}_c{i}"], self.column)
            elif table.layout.queue:
                table.stored_firsts = np.zeros(len(table["head"]), np.int64)
                table.stored_firsts[codes] = np.asarray(stored[f"{table.layout.prefix}_first"])


def is_double(column: Field) -> bool:
    return kind_of(column.type) == DOUBLE


__all__ = ["ID", "CompiledMachine", "Keys", "Returned", "UserAggregateError", "is_double"]
