"""Values of any type as numbers: a growing dictionary whose codes are compared through labels."""

from __future__ import annotations

import bisect
import math
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Buffer, Codes, Integers

_STEP = 1 << 32
"""Distance between labels where there is room: so many values fit between two, at least by halving."""

_PIECE = 1024


class Dictionary:
    """A dictionary from values to codes, in the order in which values are first seen.

    ``labels[code]`` are in the order of the values, so that comparing values is comparing integers. A new
    value gets a label between those of its neighbours; the others keep theirs unless no label is left.

    >>> words = Dictionary(pa.string())
    >>> words.codes(pa.array(["pear", "apple", "pear", "fig"])).tolist()
    [0, 1, 0, 2]
    >>> np.argsort(words.labels[:3]).tolist()
    [1, 2, 0]
    """

    def __init__(self, type_: pa.DataType, *, ordered: bool = True) -> None:
        self.type = type_
        self._codes: dict[Any, int] = {}
        self._values: list[Any] = []
        self._labels = Buffer(np.int64)
        self._ordered = ordered
        self._pieces: list[list[Any]] = []
        """Values in order, in pieces that are cheap to insert into."""

    def __len__(self) -> int:
        return len(self._values)

    @property
    def labels(self) -> Integers:
        return self._labels.data

    def codes(self, array: pa.Array) -> Codes:
        """Return the codes of an array's values; undefined for NULLs."""
        if not len(array):
            return np.zeros(0, np.int32)
        if pa.types.is_nested(self.type):
            return self._nested_codes(array.to_pylist())
        encoded = array.dictionary_encode()
        codes = np.zeros(len(encoded.dictionary) + 1, np.int32)
        words = encoded.dictionary.to_pylist()
        codes[:-1] = self._learn(words, words)
        # The place after the last value is that of NULLs.
        indices: Codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
        return codes[indices]

    def _nested_codes(self, values: list[Any]) -> Codes:
        """Return the codes of lists, structs and maps, which are looked up as tuples in Spark's order."""
        words = [_word(value, self.type) for value in values]
        return np.array(self._learn(words, values), np.int32)

    def _learn(self, words: list[Any], values: list[Any]) -> list[int]:
        """Return the codes of words, adding new ones; a word is a value, or its substitute as a key."""
        codes, fresh = [], []
        for word, value in zip(words, values, strict=True):
            code = self._codes.setdefault(word, len(self._values))
            if code == len(self._values):
                self._values.append(value)
                fresh.append(word)
            codes.append(code)
        if self._ordered:
            self._label(fresh)
        return codes

    def values(self, codes: Integers, valid: Any) -> pa.Array:
        """Return the values of codes, NULL where not valid."""
        used, places = np.unique(np.where(valid, codes, -1), return_inverse=True)
        known = pa.array([None if code < 0 else self._values[code] for code in used.tolist()], self.type)
        return known.take(pa.array(places))

    def _label(self, values: list[Any]) -> None:
        self._labels.resize(len(self))
        crowded = False
        for value in values:
            crowded |= not self._insert(value)
        if crowded:
            everything = [value for piece in self._pieces for value in piece]
            for i, value in enumerate(everything):
                self._labels.data[self._codes[value]] = (i - len(everything) // 2) * _STEP

    def _insert(self, value: Any) -> bool:
        """Insert a value into the order; return False if no label was left for it."""
        if not self._pieces:
            self._pieces.append([value])
            return True
        at = max(bisect.bisect_right(self._pieces, value, key=lambda piece: piece[0]) - 1, 0)
        piece = self._pieces[at]
        place = bisect.bisect(piece, value)
        before = piece[place - 1] if place else None
        after = piece[place] if place < len(piece) else None
        if after is None and at + 1 < len(self._pieces):
            after = self._pieces[at + 1][0]
        piece.insert(place, value)
        if len(piece) > _PIECE:
            self._pieces[at : at + 1] = [piece[: _PIECE // 2], piece[_PIECE // 2 :]]
        label = self._between(before, after)
        self._labels.data[self._codes[value]] = label if label is not None else 0
        return label is not None

    def _between(self, before: Any, after: Any) -> int | None:
        # Python's integers: labels near the limits must not wrap around.
        low = None if before is None else int(self._labels.data[self._codes[before]])
        high = None if after is None else int(self._labels.data[self._codes[after]])
        if low is None:
            assert high is not None, "there is another value"
            return high - _STEP if high - _STEP > -(2**62) else None
        if high is None:
            return low + _STEP if low + _STEP < 2**62 else None
        return (low + high) // 2 if high - low > 1 else None


def _word(value: Any, type_: pa.DataType) -> Any:
    """Return a value that can be a key of a Python dictionary and has Spark's order, NULLs first.

    >>> _word({"a": None, "b": [1, None]}, pa.struct({"a": pa.int64(), "b": pa.list_(pa.int64())}))
    (((), (((1,), ()),)),)
    """
    if value is None:
        return ()
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return (tuple(_word(value[field.name], field.type) for field in fields),)
    if pa.types.is_map(type_):
        return (tuple((_word(k, type_.key_type), _word(v, type_.item_type)) for k, v in value),)
    if pa.types.is_nested(type_):
        return (tuple(_word(element, type_.value_type) for element in value),)
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return (value,)
