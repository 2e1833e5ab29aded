"""Keys and words as numbers, for one machine, or for several that are given the same tuples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Codes
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.udas.string_dictionary import StringDictionary


class KeyEncoding:
    """The numbers of keys and the codes of words, and which keys may have changed."""

    def __init__(self) -> None:
        self.keys = KeyTable()
        self.words = StringDictionary()
        self._touched = np.zeros(1, np.bool_)

    def codes(self, table: pa.Table) -> Codes:
        """The keys of tuples, of which something may change then."""
        codes = self.keys.of(table)
        self.touch(codes)
        return codes

    def touch(self, codes: Codes) -> None:
        if len(self._touched) < len(self.keys):
            grown = np.zeros(2 * len(self.keys), np.bool_)
            grown[: len(self._touched)] = self._touched
            self._touched = grown
        # There are often no keys, and then there is no need to look at all tuples.
        self._touched[codes if len(self.keys) > 1 else codes[:1]] = True

    def touched(self) -> Codes:
        """Those that may have changed since this was asked before."""
        touched = np.flatnonzero(self._touched).astype(np.int32)
        self._touched[:] = False
        return touched
