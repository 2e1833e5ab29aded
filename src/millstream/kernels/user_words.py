"""What programs want to know of words: their order, and their hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from millstream.kernels.arrays import Array, Buffer, frozen
from millstream.kernels.dictionary import Dictionary
from millstream.uda.texts import HASHES, SEED


class KnownWords:
    """Arrays by the codes of a dictionary.

    A program that is not compiled may make new words while it runs. It gets something that looks like an
    array and knows them too.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._hashes: dict[str, Buffer] = {}

    def labels(self, is_compiled: bool) -> Array | Looked:
        if is_compiled:
            return frozen(self._dictionary.labels)
        return Looked(lambda code: self._dictionary.labels[code])

    def hashes(self, function: str, is_compiled: bool) -> Array | Looked:
        values, hash_ = self._dictionary._values, HASHES[function]
        if not is_compiled:
            return Looked(lambda code: hash_(values[code], SEED))
        known = self._hashes.setdefault(function, Buffer(np.int64))
        known.extend(np.array([hash_(word, SEED) for word in values[len(known) :]], np.int64))
        return frozen(known.data)


class Looked:
    """What is asked for is computed then."""

    def __init__(self, compute: Callable[[int], Any]) -> None:
        self._compute = compute

    def __getitem__(self, code: int) -> Any:
        return self._compute(code)
