"""Fixtures of the tests of the engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millstream.kernels.udas import compiled_machine
from millstream.program.jit_loader import plain_functions


@pytest.fixture(scope="module")
def uncompiled() -> Iterator[None]:
    """Users' aggregates run as Python runs their programs: compiling takes seconds for each body."""
    patch = pytest.MonkeyPatch()
    patch.setattr(compiled_machine, "functions", plain_functions)
    yield
    patch.undo()
