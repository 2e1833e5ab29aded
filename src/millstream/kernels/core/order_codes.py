"""Columns of any type as integers in Spark's order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.core.kernel import Integers
from millstream.kernels.core.sort_keys import sort_key


def order_codes(
    column: pa.Array | pa.ChunkedArray, *, descending: bool = False, nulls_first: bool = True
) -> Integers:
    """Return an integer for each value: equal for equal values, and in the order of the values.

    >>> order_codes(pa.array(["b", None, "a", "b"]), descending=True).tolist()
    [0, -1, 1, 0]
    """
    keys = sort_key(column)
    keys = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    encoded = keys.dictionary_encode()
    places = np.empty(len(encoded.dictionary), np.int64)
    places[np.asarray(pc.array_sort_indices(encoded.dictionary))] = np.arange(len(places))
    if descending:
        places = len(places) - 1 - places
    null = -1 if nulls_first else len(places)
    found = np.asarray(pc.fill_null(encoded.indices, len(places)))
    codes: Integers = np.append(places, null)[found]
    return codes
