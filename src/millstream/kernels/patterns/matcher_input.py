"""Tuples as matchers read them: partitions, order and columns as arrays, created once for all matchers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.kernels.core.buffers import Array, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import as_order
from millstream.kernels.patterns.key_encoding import KeyEncoding
from millstream.kernels.udas.local_tables import read
from millstream.types import Field


class MatcherInput:
    """A batch of tuples; a column is encoded when the first matcher reads it."""

    def __init__(self, tuples: Tuples, coding: KeyEncoding) -> None:
        self.tuples = tuples
        self.codes = coding.codes(tuples.columns)
        self.order = (
            frozen(as_order(tuples.time)),
            frozen(tuples.origin.astype(np.int32)),
            frozen(tuples.number),
        )
        self._words = coding.words
        self._columns: dict[str, tuple[Array, Array]] = {}

    @property
    def is_float(self) -> bool:
        """True if times are doubles."""
        return self.tuples.time.dtype == np.float64

    def arguments(self, names: Sequence[str], parameters: Sequence[Field]) -> dict[str, Array]:
        """Return the named columns as arrays, by the names of the program's parameters."""
        arrays = {}
        for i, (name, parameter) in enumerate(zip(names, parameters, strict=True)):
            arrays[f"p{i}"], arrays[f"pn{i}"] = self._column(name, parameter)
        return arrays

    def _column(self, name: str, parameter: Field) -> tuple[Array, Array]:
        if name not in self._columns:
            values, nulls = read(self.tuples.columns[name], parameter, self._words.column)
            self._columns[name] = frozen(values), frozen(nulls)
        return self._columns[name]
