"""A program in Python: all that kernels need to run a Python UDA, as plain data for workers."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from millstream.ir.python_aggregate import PythonBody
from millstream.types import Field

Dumps = Callable[[Any], bytes]


@dataclass(frozen=True)
class PythonProgram:
    """A Python UDA in one mode (see ``codegen.udas.uda_compiler``).

    ``code`` is the class or function and the pickler of values that plain pickle cannot handle, both pickled:
    kernels do not import that pickler.
    """

    name: str
    mode: str
    parameters: tuple[Field, ...]
    returns: tuple[Field, ...]
    form: str
    way: str
    code: bytes = field(repr=False)

    @classmethod
    def of(cls, body: PythonBody, mode: str, dumps: Dumps = pickle.dumps) -> PythonProgram:
        python = body.python
        code = dumps((python.subject, dumps))
        return cls(body.name, mode, body.parameters, body.returns, python.form, python.way, code)

    @property
    def digest(self) -> str:
        """Identity of a UDA in a query; pickled code is not the same in every process."""
        told = f"{self.name} {self.mode} {self.parameters} {self.returns}"
        return hashlib.sha256(told.encode()).hexdigest()

    def loaded(self) -> tuple[Any, Dumps]:
        subject, dumps = pickle.loads(self.code)
        return subject, dumps
