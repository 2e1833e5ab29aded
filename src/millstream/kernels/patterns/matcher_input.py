"""Tuples as searches take them: partitions, order and columns as arrays, made once for all searches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.kernels.core.buffers import Array, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import as_order
from millstream.kernels.patterns.key_encoding import KeyEncoding
from millstream.kernels.udas.local_tables import read
from millstream.types import Field


class MatcherInput:
    """Some tuples; a column is encoded when the first search asks for it."""

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
        self._answered: dict[int, Integers] = {}

    def __len__(self) -> int:
        return len(self.tuples)

    @property
    def is_float(self) -> bool:
        """Whether times are doubles."""
        return self.tuples.time.dtype == np.float64

    def arguments(self, names: Sequence[str], parameters: Sequence[Field]) -> dict[str, Array]:
        """Columns by these names, by the names that a program has for its parameters."""
        arrays = {}
        for i, (name, parameter) in enumerate(zip(names, parameters, strict=True)):
            arrays[f"p{i}"], arrays[f"pn{i}"] = self._column(name, parameter)
        return arrays

    def answered(self, group: int) -> Integers:
        """What searches of a group have found out about each tuple (``shared_conditions``)."""
        if group not in self._answered:
            self._answered[group] = np.zeros(len(self), np.int64)
        return self._answered[group]

    def _column(self, name: str, parameter: Field) -> tuple[Array, Array]:
        if name not in self._columns:
            values, nulls = read(self.tuples.columns[name], parameter, self._words.column)
            self._columns[name] = frozen(values), frozen(nulls)
        return self._columns[name]
