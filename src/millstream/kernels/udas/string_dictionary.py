"""Strings as numbers, and their properties that programs use: order and hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.buffers import Array, Buffer, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.dictionary import Dictionary
from millstream.program.spark_text_hash import HASHES, SEED
from millstream.types import Type


class StringDictionary:
    """Codecs for the values of each type; words of the same type have the same dictionary."""

    def __init__(self) -> None:
        self._columns: dict[pa.DataType, Column] = {}
        self._facts: dict[Type, StringProperties] = {}

    def __len__(self) -> int:
        """Return the number of words of the type that has most."""
        return max((column.words for column in self._columns.values()), default=0)

    def column(self, type_: pa.DataType) -> Column:
        if type_ not in self._columns:
            self._columns[type_] = Column(type_)
        return self._columns[type_]

    def dictionary(self, type_: Type) -> Any:
        return self.column(arrow_type(type_)).dictionary

    def known(self, type_: Type) -> StringProperties:
        if type_ not in self._facts:
            self._facts[type_] = StringProperties(self.dictionary(type_))
        return self._facts[type_]


class StringProperties:
    """Arrays by the codes of a dictionary.

    A program that is not compiled may add words while it runs. It gets an object like an array that includes
    them.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._hashes: dict[str, Buffer] = {}

    def labels(self, is_compiled: bool) -> Array | LazyStringProperties:
        if is_compiled:
            return frozen(self._dictionary.labels)
        return LazyStringProperties(lambda code: self._dictionary.labels[code])

    def hashes(self, function: str, is_compiled: bool) -> Array | LazyStringProperties:
        values, hash_ = self._dictionary._values, HASHES[function]
        if not is_compiled:
            return LazyStringProperties(lambda code: hash_(values[code], SEED))
        known = self._hashes.setdefault(function, Buffer(np.int64))
        known.extend(np.array([hash_(word, SEED) for word in values[len(known) :]], np.int64))
        return frozen(known.data)


class LazyStringProperties:
    """Properties that are computed on access."""

    def __init__(self, compute: Callable[[int], Any]) -> None:
        self._compute = compute

    def __getitem__(self, code: int) -> Any:
        return self._compute(code)
