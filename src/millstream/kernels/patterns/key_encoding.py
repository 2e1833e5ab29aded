"""Codes of partition keys and strings, shared by the matchers of the same tuples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Codes
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.udas.string_dictionary import StringDictionary


class KeyEncoding:
    """The key table and the string dictionary, and the keys whose state may have changed."""

    def __init__(self) -> None:
        self.keys = KeyTable()
        self.words = StringDictionary()
        self._touched = np.zeros(1, np.bool_)

    def codes(self, table: pa.Table) -> Codes:
        """Return the key codes of tuples, and mark them as touched."""
        codes = self.keys.of(table)
        self.touch(codes)
        return codes

    def touch(self, codes: Codes) -> None:
        if len(self._touched) < len(self.keys):
            grown = np.zeros(2 * len(self.keys), np.bool_)
            grown[: len(self._touched)] = self._touched
            self._touched = grown
        # Without PARTITION BY there is one key.
        self._touched[codes if len(self.keys) > 1 else codes[:1]] = True

    def touched(self) -> Codes:
        """Return the keys touched since the last call."""
        touched = np.flatnonzero(self._touched).astype(np.int32)
        self._touched[:] = False
        return touched
