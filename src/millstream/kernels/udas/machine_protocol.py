"""Interface of machines: one runs compiled programs, one Python code of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from millstream.kernels.core.buffers import Array, Codes, Integers
from millstream.kernels.python_udas.python_machine import PythonMachine
from millstream.kernels.udas.compiled_machine import CompiledMachine, Keys, Returned
from millstream.kernels.udas.precompile_program import precompile_program
from millstream.kernels.udas.string_dictionary import StringDictionary
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram


class PersistedTable(Protocol):
    """A table of all instances whose rows are persisted one by one."""

    next_id: int

    @property
    def is_window(self) -> bool: ...

    @property
    def live(self) -> Any: ...

    def changed(self) -> tuple[Any, Integers]: ...

    def places(self) -> tuple[Integers, Codes]: ...

    def rows_of(self, numbers: Integers) -> Codes: ...

    def table(self, rows: Any, key: Callable[[Codes], Mapping[str, pa.Array]], columns: Any) -> pa.Table: ...

    def restore(self, table: pa.Table, owners: Codes, instances: int, columns: Any) -> None: ...


class AggregateMachine(Protocol):
    """A runner of a UDA for all instances of a shard."""

    instances: dict[str, Array]

    @property
    def program(self) -> Program | PythonProgram: ...

    @property
    def kept(self) -> Sequence[PersistedTable]: ...

    @property
    def rows(self) -> int: ...

    @property
    def words(self) -> int: ...

    def column(self, type_: pa.DataType) -> Any: ...

    def reserve(self, instances: int, tuples: int) -> None: ...

    def encoded(self, table: pa.Table, names: Sequence[str]) -> dict[str, Any]: ...

    def call(
        self,
        function: str,
        count: int,
        arguments: Iterable[Any],
        parameters: Mapping[str, Any] | None = None,
        more: int = 0,
    ) -> Returned: ...

    def instance_table(self, codes: Codes, keys: Keys) -> pa.Table: ...

    def restore_instances(self, stored: pa.Table, codes: Codes) -> None: ...


def machine_of(program: Program | PythonProgram, words: StringDictionary | None = None) -> AggregateMachine:
    """Return a machine that is ready to run, with its program compiled."""
    if isinstance(program, PythonProgram):
        return PythonMachine(program)
    precompile_program(program)
    return CompiledMachine(program, words)
